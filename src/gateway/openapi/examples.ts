/** Examples of bodies and answers, by operation. A test holds each against its schema. */
import { defaultInstanceSettings, settingsAnswer } from '../../contract/gateway-instances.ts';
import type { SchemaObject } from './schemas.ts';

const ada = '12025550101@people.loopback';
const group = '120363000000000001@groups.loopback';
const id = '7F0C2A9BE41D47839C4E2B7D1A6F0E35';
const instanceId = '0c8f3f5e-1f5b-4b6e-9a43-6a1f4b0f7d11';
const inviteCode = 'AaucOUSgAAGx1nVq0x4Lr0pXbS8';
const inviteUrl = `http://127.0.0.1:8081/i/${inviteCode}`;
const key = { remoteJid: ada, fromMe: true, id };
const settings = settingsAnswer(defaultInstanceSettings);

const audioMessage = {
  url: 'http://127.0.0.1:8081/media/5b7a0c3c9f1e4d7a8b2c6d5e4f3a2b1c.enc',
  mimetype: 'audio/ogg; codecs=opus',
  fileSha256: 'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=',
  fileLength: '8412',
  seconds: 3,
  ptt: true,
  mediaKey: '<MEDIA_KEY>',
  fileEncSha256: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
  directPath: '/media/5b7a0c3c9f1e4d7a8b2c6d5e4f3a2b1c.enc',
  mediaKeyTimestamp: '1795000000',
  waveform: 'AAUKDxQZHiMoLTI3PEFGS1BVWl9kX1pVUEtGQTw3Mi0oIx4ZFA8KBQAFCg8UGR4jKC0yNzxBRktQVVpfZA==',
};

const sent = { key, message: { audioMessage }, messageTimestamp: '1795000000', status: 'PENDING' };
const gone = (message: string): SchemaObject => ({ status: 'SUCCESS', error: false, response: { message } });

const sending = {
  url: {
    summary: 'A file with an address',
    value: { number: '12025550101', audio: 'https://example.com/greeting.mp3' },
  },
  answer: {
    summary: 'An answer to a message, recorded for two seconds',
    value: {
      number: '12025550101',
      audio: 'data:audio/mpeg;base64,SUQzBAAAAAAAI1RTU0UAAAAP',
      delay: 2000,
      quoted: { key: { id }, message: { conversation: 'Shall we hear it?' } },
      mentioned: ['12025550102'],
    },
  },
};
const blocking = { block: { summary: 'Block', value: { number: '12025550103', status: 'block' } } };

type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

export const exampleBodies: Readonly<Record<string, Examples>> = {
  sendMessengerAudio: sending,
  sendWhatsAppAudio: sending,
  setSettings: {
    calls: {
      summary: 'Reject calls',
      value: { rejectCall: true, msgCall: 'I cannot talk, please write.' },
    },
  },
  updateMessage: {
    caption: {
      summary: 'A caption for a voice message',
      value: { number: 12025550101, text: 'The second part', key },
    },
  },
  sendInvite: {
    one: {
      summary: 'Invite somebody',
      value: { groupJid: group, description: 'Come and listen', numbers: ['12025550101'] },
    },
  },
  sendPresence: {
    recording: {
      summary: 'Recording for two seconds',
      value: { number: '12025550101', presence: 'recording', delay: 2000 },
    },
    options: {
      summary: 'The same in the other form',
      value: {
        number: '12025550101',
        options: { number: '12025550101', presence: 'recording', delay: 2000 },
      },
    },
  },
  updateBlockStatus: blocking,
  updateBlockStatusOfChat: blocking,
  findContacts: {
    all: { summary: 'Everybody', value: {} },
    one: { summary: 'One of them', value: { where: { id: ada } } },
  },
  findChats: { all: { summary: 'All', value: {} } },
  createInstance: {
    loopback: { summary: 'On the gateway’s own network', value: { instanceName: 'office' } },
    xmpp: {
      summary: 'On XMPP',
      value: {
        instanceName: 'support',
        transport: 'xmpp',
        connection: { jid: 'support@chat.example', password: '<PASSWORD>' },
        rejectCall: true,
        msgCall: 'Please write.',
      },
    },
  },
  replayWebhookDelivery: {
    one: { summary: 'By its webhook-id', value: { deliveryId: 'evt_1795282462044-0' } },
  },
  setWebhook: {
    two: {
      summary: 'Two kinds of events',
      value: {
        webhook: {
          enabled: true,
          url: 'https://example.com/hooks/messages',
          headers: { 'X-Office': 'Paris' },
          events: ['messages.upsert', 'MESSAGES_UPDATE'],
        },
      },
    },
  },
};

const webhook = {
  webhook: {
    instanceName: 'office',
    enabled: true,
    url: 'https://example.com/hooks/messages',
    headers: { 'X-Office': 'Paris' },
    events: ['messages.upsert', 'messages.update'],
    secret: 'whsec_<SECRET>',
  },
};
const deliveries = {
  deliveries: [
    {
      event: 'messages.upsert',
      deliveryId: 'evt_1795282462044-0',
      status: 'delivered',
      nextAttemptAt: null,
      attempts: [
        {
          at: '2026-11-21T17:34:22.051Z',
          httpStatus: 503,
          latencyMs: 31,
          error: 'the receiver answered 503',
        },
        { at: '2026-11-21T17:34:27.102Z', httpStatus: 204, latencyMs: 12, error: null },
      ],
    },
  ],
};
const instance = { instanceName: 'office', instanceId, transport: 'loopback', status: 'open' };

export const exampleAnswers: Readonly<Record<string, unknown>> = {
  sendMessengerAudio: sent,
  sendWhatsAppAudio: sent,
  setSettings: { settings: { instanceName: 'office', settings } },
  sendInvite: { send: true, inviteUrl },
  findContacts: [
    {
      id: ada,
      remoteJid: ada,
      pushName: 'Ada Lovelace',
      profilePicUrl: null,
      isGroup: false,
      isSaved: true,
      blocked: false,
    },
  ],
  findChats: [
    {
      id: ada,
      remoteJid: ada,
      pushName: 'Ada Lovelace',
      isGroup: false,
      updatedAt: '2026-11-18T12:26:40.000Z',
      unreadCount: 0,
      lastMessage: { ...sent, pushName: null, status: 'READ' },
    },
  ],
  fetchInviteCode: { inviteUrl, inviteCode },
  revokeInviteCode: { revoked: true, inviteUrl, inviteCode },
  acceptInviteCode: { accepted: true, groupJid: group },
  fetchParticipants: {
    participants: [
      { id: '99900000001@people.loopback', admin: 'superadmin', name: 'office' },
      { id: ada, admin: 'admin', name: 'Ada Lovelace' },
      { id: '12025550102@people.loopback', admin: null, name: 'Hedy Lamarr' },
    ],
  },
  fetchPrivacySettings: {
    readreceipts: 'all',
    profile: 'all',
    status: 'all',
    online: 'match_last_seen',
    last: 'contacts',
    groupadd: 'none',
  },
  createInstance: { instance, hash: '<TOKEN>', settings },
  fetchInstances: [instance],
  connectInstance: { instance: { instanceName: 'office', state: 'open' } },
  fetchConnectionState: { instance: { instanceName: 'office', state: 'open' } },
  logoutInstance: gone('Instance logged out'),
  deleteInstance: gone('Instance deleted'),
  setWebhook: webhook,
  findWebhook: webhook,
  listWebhookDeliveries: deliveries,
  replayWebhookDelivery: deliveries,
};
