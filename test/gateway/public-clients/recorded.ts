/**
 * What five public clients send for the eleven operations and for an instance's life: as they were seen to send it, or as their source has it. `theirs` is
 * what version 2.3.6 of the public server answers to that request for an account that is paired: from its routes, guards and schemas.
 */
import { expect } from 'vitest';
import { ada, hedy } from '../gateway-fixture.ts';

/** What a request is about, in the run. */
export interface Scene {
  readonly instance: string;
  readonly group: string;
  /** Base64. */
  readonly audio: string;
  /** Id of a text that was sent before. */
  readonly sent: string;
}

export interface Recorded {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `{instance}` and `{group}` are put in. */
  readonly path: string;
  readonly body?: (scene: Scene) => object;
  /** Fields of a form that carries the audio as its file. */
  readonly form?: (scene: Scene) => Readonly<Record<string, string>>;
  readonly theirs: number;
  /** What ours answers, where that is another status. */
  readonly ours?: number;
  /** What the client reads of the answer. */
  readonly reads?: (scene: Scene) => unknown;
}

export const OPERATIONS = [
  'create',
  'fetchInstances',
  'connectionState',
  'connect',
  'restart',
  'sendText',
  'sendWhatsAppAudio',
  'updateMessage',
  'settings',
  'sendPresence',
  'updateBlockStatus',
  'inviteCode',
  'sendInvite',
  'participants',
  'findChats',
  'findContacts',
  'fetchPrivacySettings',
  'logout',
  'delete',
] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Client {
  readonly name: string;
  /** It names its instance by a token of that instance. */
  readonly token?: true;
  /** Operations that it does not have are left out. */
  readonly requests: Readonly<Partial<Record<Operation, Recorded>>>;
}

const { number } = ada;
const jid = `${number}@s.whatsapp.net`;
const key = ({ sent }: Scene): object => ({ remoteJid: jid, fromMe: true, id: sent });
const state = ({ instance }: Scene): object => ({ instance: { instanceName: instance, state: 'open' } });
const gone = (): object => ({ status: 'SUCCESS', error: false });
const made = (): object => ({
  instance: { status: 'close', instanceName: expect.any(String) },
  hash: expect.any(String),
});
const message = (): object => ({
  key: { id: expect.any(String), remoteJid: expect.any(String), fromMe: true },
  message: expect.any(Object),
  messageTimestamp: expect.anything(),
  status: 'PENDING',
});
const edited = ({ sent }: Scene): object => ({ key: { id: sent }, message: expect.any(Object) });
const blocked = (): object => ({ block: 'success' });
const invitation = (): object => ({ inviteCode: expect.any(String), inviteUrl: expect.any(String) });
const members = (): object => ({
  participants: expect.arrayContaining([expect.objectContaining({ admin: 'superadmin' })]),
});
/** pyevolutionapi takes `status` for a word of its own, of which `open` is none: the answer may not have it. */
const listed = ({ instance }: Scene): unknown =>
  expect.arrayContaining([
    {
      id: expect.any(String),
      name: instance,
      connectionStatus: 'open',
      ownerJid: expect.any(String),
      instanceName: instance,
      instanceId: expect.any(String),
      transport: 'loopback',
    },
  ]);
const chats = (): unknown =>
  expect.arrayContaining([expect.objectContaining({ id: expect.any(String), remoteJid: ada.jid })]);
const contacts = (): unknown =>
  expect.arrayContaining([expect.objectContaining({ id: ada.jid, pushName: ada.name })]);
const privacy = (): object => ({ readreceipts: expect.any(String), groupadd: expect.any(String) });

const LIFE = {
  fetchInstances: { method: 'GET', path: '/instance/fetchInstances', theirs: 200, reads: listed },
  connectionState: { method: 'GET', path: '/instance/connectionState/{instance}', theirs: 200, reads: state },
  connect: { method: 'GET', path: '/instance/connect/{instance}', theirs: 200, reads: state },
  restart: { method: 'POST', path: '/instance/restart/{instance}', theirs: 200, reads: state },
  logout: { method: 'DELETE', path: '/instance/logout/{instance}', theirs: 200, reads: gone },
  delete: { method: 'DELETE', path: '/instance/delete/{instance}', theirs: 200, reads: gone },
} as const satisfies Partial<Record<Operation, Recorded>>;

const CHATS = {
  updateMessage: {
    method: 'POST',
    path: '/chat/updateMessage/{instance}',
    body: (scene) => ({ number: jid, key: key(scene), text: 'Good evening.' }),
    theirs: 200,
    reads: edited,
  },
  sendPresence: {
    method: 'POST',
    path: '/chat/sendPresence/{instance}',
    body: () => ({ number, presence: 'composing', delay: 20 }),
    theirs: 201,
    reads: () => ({ presence: 'composing' }),
  },
  fetchPrivacySettings: {
    method: 'GET',
    path: '/chat/fetchPrivacySettings/{instance}',
    theirs: 200,
    reads: privacy,
  },
  inviteCode: {
    method: 'GET',
    path: '/group/inviteCode/{instance}?groupJid={group}',
    theirs: 200,
    reads: invitation,
  },
  participants: {
    method: 'GET',
    path: '/group/participants/{instance}?groupJid={group}',
    theirs: 200,
    reads: members,
  },
  sendInvite: {
    method: 'POST',
    path: '/group/sendInvite/{instance}',
    body: ({ group }) => ({
      groupJid: group,
      description: 'Come in',
      numbers: [number, `${hedy.number}@s.whatsapp.net`],
    }),
    theirs: 200,
    reads: () => ({ send: true }),
  },
} as const satisfies Partial<Record<Operation, Recorded>>;

const allSettings = (): object => ({
  rejectCall: false,
  msgCall: '',
  groupsIgnore: false,
  alwaysOnline: true,
  readMessages: false,
  syncFullHistory: false,
  readStatus: true,
});

export const CLIENTS: readonly Client[] = [
  {
    name: 'n8n-nodes-evolution-api 1.0.4',
    requests: {
      ...LIFE,
      ...CHATS,
      create: {
        method: 'POST',
        path: '/instance/create',
        body: () => ({
          instanceName: 'by-n8n',
          integration: 'WHATSAPP-BAILEYS',
          number: '4930123456',
          rejectCall: true,
        }),
        theirs: 201,
        reads: made,
      },
      sendText: {
        method: 'POST',
        path: '/message/sendText/{instance}',
        body: () => ({ number, text: 'Hello.', delay: 10 }),
        theirs: 201,
        reads: message,
      },
      sendWhatsAppAudio: {
        method: 'POST',
        path: '/message/sendWhatsAppAudio/{instance}',
        body: ({ audio }) => ({
          number: jid,
          audio,
          mimetype: 'audio/mp3',
          fileName: 'tone.mp3',
          delay: 10,
          quoted: { key: { id: 'X' } },
          mentioned: [`${hedy.number}@s.whatsapp.net`],
        }),
        theirs: 201,
        ours: 200,
        reads: message,
      },
      settings: { method: 'POST', path: '/settings/set/{instance}', body: allSettings, theirs: 201 },
      updateBlockStatus: {
        method: 'POST',
        path: '/chat/updateBlockStatus/{instance}',
        body: () => ({ number: `${hedy.number}@s.whatsapp.net`, status: 'unblock' }),
        theirs: 201,
        reads: blocked,
      },
      findChats: {
        method: 'POST',
        path: '/chat/findChats/{instance}',
        body: () => ({ where: { remoteJid: jid, id: '' }, page: 1, offset: 10 }),
        theirs: 200,
        reads: chats,
      },
      findContacts: {
        method: 'POST',
        path: '/chat/findContacts/{instance}',
        body: () => ({}),
        theirs: 200,
        reads: contacts,
      },
    },
  },
  {
    name: 'evolution-client-python 043a7f9',
    token: true,
    requests: {
      ...LIFE,
      ...CHATS,
      create: {
        method: 'POST',
        path: '/instance/create',
        body: () => ({ instanceName: 'by-python', integration: 'WHATSAPP-BAILEYS', qrcode: true }),
        theirs: 201,
        reads: made,
      },
      sendText: {
        method: 'POST',
        path: '/message/sendText/{instance}',
        body: () => ({ number, text: 'Hello.', delay: 10 }),
        theirs: 201,
        reads: message,
      },
      // It writes what it was given as Python prints it.
      sendWhatsAppAudio: {
        method: 'POST',
        path: '/message/sendWhatsAppAudio/{instance}',
        form: ({ sent }) => ({
          number,
          encoding: 'True',
          mentionsEveryOne: 'False',
          quoted: `{'key': {'remoteJid': '${jid}', 'fromMe': True, 'id': '${sent}'}}`,
        }),
        theirs: 201,
        ours: 200,
        reads: message,
      },
    },
  },
  {
    name: 'pyevolutionapi eb9a5bf',
    requests: {
      ...LIFE,
      ...CHATS,
      create: {
        method: 'POST',
        path: '/instance/create',
        body: () => ({ instanceName: 'by-pyevolutionapi', qrcode: true, integration: 'WHATSAPP-BAILEYS' }),
        theirs: 201,
        reads: made,
      },
      // Its model refuses the answer of either server: it wants a key inside of `message`.
      sendText: {
        method: 'POST',
        path: '/message/sendText/{instance}',
        body: () => ({ number, text: 'Hello.', linkPreview: true }),
        theirs: 201,
        reads: message,
      },
      sendWhatsAppAudio: {
        method: 'POST',
        path: '/message/sendWhatsAppAudio/{instance}',
        body: ({ audio }) => ({ number, audio, encoding: true }),
        theirs: 201,
        ours: 200,
        reads: message,
      },
      updateMessage: undefined,
      sendInvite: undefined,
      // Only the document of this interface has this path.
      updateBlockStatus: {
        method: 'POST',
        path: '/message/updateBlockStatus/{instance}',
        body: () => ({ number: hedy.number, status: 'unblock' }),
        theirs: 404,
        ours: 201,
        reads: blocked,
      },
      findChats: { method: 'POST', path: '/chat/findChats/{instance}', theirs: 200, reads: chats },
      findContacts: {
        method: 'POST',
        path: '/chat/findContacts/{instance}',
        body: () => ({ where: {} }),
        theirs: 200,
        reads: contacts,
      },
    },
  },
  {
    name: 'evolution-api-sdk 0.6.17 (npm)',
    requests: {
      fetchInstances: { ...LIFE.fetchInstances, path: '/instance/fetchInstances/' },
      connectionState: { ...LIFE.connectionState, path: '/instance/connectionState/{instance}/' },
      connect: { ...LIFE.connect, path: '/instance/connect/{instance}/' },
      restart: { ...LIFE.restart, path: '/instance/restart/{instance}/' },
      logout: { ...LIFE.logout, path: '/instance/logout/{instance}/' },
      delete: { ...LIFE.delete, path: '/instance/delete/{instance}/' },
      create: {
        method: 'POST',
        path: '/instance/create/',
        body: () => ({ instanceName: 'by-sdk', integration: 'WHATSAPP-BAILEYS', qrcode: true }),
        theirs: 201,
        reads: made,
      },
      sendText: {
        method: 'POST',
        path: '/message/sendText/{instance}/',
        body: () => ({ number, text: 'Hello.', delay: 10, linkPreview: true }),
        theirs: 201,
        reads: message,
      },
      sendWhatsAppAudio: {
        method: 'POST',
        path: '/message/sendWhatsAppAudio/{instance}/',
        body: ({ audio }) => ({ number, audio, encoding: true, delay: 10, mentionsEveryOne: false }),
        theirs: 201,
        ours: 200,
        reads: message,
      },
      updateMessage: {
        method: 'PUT',
        path: '/chat/updateMessage/{instance}/',
        body: ({ sent }) => ({ number, messageId: sent, message: 'Good evening.' }),
        theirs: 404,
        ours: 405,
      },
      settings: { method: 'POST', path: '/settings/set/{instance}/', body: allSettings, theirs: 201 },
      sendPresence: {
        method: 'POST',
        path: '/chat/sendPresence/{instance}/',
        body: () => ({ number, presence: 'composing', duration: 20 }),
        theirs: 400,
        ours: 201,
        reads: () => ({ presence: 'composing' }),
      },
      inviteCode: {
        method: 'GET',
        path: '/group/fetchInviteCode/{instance}/?groupJid={group}',
        theirs: 404,
      },
      sendInvite: {
        method: 'POST',
        path: '/group/sendGroupInvite/{instance}/',
        body: ({ group }) => ({ groupJid: group, description: 'Come in', numbers: [number] }),
        theirs: 404,
      },
      participants: {
        method: 'GET',
        path: '/group/findGroupMembers/{instance}/?groupJid={group}',
        theirs: 404,
      },
      findChats: { method: 'GET', path: '/chat/findChats/{instance}/', theirs: 404, ours: 405 },
      findContacts: {
        method: 'POST',
        path: '/chat/findContacts/{instance}/',
        body: () => ({ number }),
        theirs: 200,
        reads: contacts,
      },
      fetchPrivacySettings: { ...CHATS.fetchPrivacySettings, path: '/chat/fetchPrivacySettings/{instance}/' },
    },
  },
  {
    name: 'laravel-evolution-api cc883b8 (PHP)',
    requests: {
      ...LIFE,
      create: {
        method: 'POST',
        path: '/instance/create',
        body: () => ({ instanceName: 'by-laravel', integration: 'WHATSAPP-BAILEYS' }),
        theirs: 201,
        reads: made,
      },
      restart: {
        method: 'PUT',
        path: '/instance/restart/{instance}',
        body: () => [],
        theirs: 404,
        ours: 405,
      },
      sendText: {
        method: 'POST',
        path: '/message/sendText/{instance}',
        body: () => ({ number, text: 'Hello.', delay: 10 }),
        theirs: 201,
        reads: message,
      },
      sendWhatsAppAudio: {
        method: 'POST',
        path: '/message/sendWhatsAppAudio/{instance}',
        body: (scene) => ({ number, audio: scene.audio, delay: 10, quoted: { key: key(scene) } }),
        theirs: 201,
        ours: 200,
        reads: message,
      },
      updateMessage: {
        method: 'PUT',
        path: '/message/update/{instance}',
        body: ({ sent }) => ({ remoteJid: jid, messageId: sent, text: 'Good evening.' }),
        theirs: 404,
      },
      // One at a time, where the public server wants all of them.
      settings: {
        method: 'POST',
        path: '/settings/set/{instance}',
        body: () => ({ alwaysOnline: true }),
        theirs: 400,
        ours: 201,
      },
      sendPresence: {
        method: 'POST',
        path: '/message/sendPresence/{instance}',
        body: () => ({ number, presence: 'composing' }),
        theirs: 404,
      },
      updateBlockStatus: {
        method: 'POST',
        path: '/chat/blockContact/{instance}',
        body: () => ({ number, status: 'unblock' }),
        theirs: 404,
      },
      inviteCode: CHATS.inviteCode,
      sendInvite: CHATS.sendInvite,
      participants: CHATS.participants,
      findChats: { method: 'GET', path: '/chat/findChats/{instance}', theirs: 404, ours: 405 },
      findContacts: { method: 'GET', path: '/chat/findContacts/{instance}', theirs: 404, ours: 405 },
      fetchPrivacySettings: { method: 'GET', path: '/profile/fetchPrivacySettings/{instance}', theirs: 404 },
    },
  },
];
