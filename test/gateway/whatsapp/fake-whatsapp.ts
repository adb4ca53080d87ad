/**
 * WhatsApp as far as the transport sees it through Baileys: a fake socket for each connection, and behind them people,
 * groups and messages that outlive it. Contents of messages are made and read by Baileys itself, media is encrypted and
 * decrypted by Baileys itself; only the wire is missing.
 *
 * The fake is typed by what the transport uses of Baileys, so a change of Baileys' types is a fault of the compiler here too.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  AnyMessageContent,
  BinaryNode,
  GroupMetadata,
  MiscMessageGenerationOptions,
  UserFacingSocketConfig,
  WAMessage,
  WAPresence,
} from 'baileys';
import * as baileys from 'baileys';
import type { SocketEvents } from 'soundpost-chat-whatsapp/connection';
import type { BaileysLibrary, WhatsAppSocket } from 'soundpost-chat-whatsapp/library';

export interface FakePerson {
  readonly jid: string;
  readonly name: string;
}

/** What the account did, in order. */
export interface Sent {
  readonly jid: string;
  readonly message: WAMessage;
}

type Call = readonly [method: string, ...args: unknown[]];

export const personJid = (digits: string): string => `${digits}@s.whatsapp.net`;

const silent = {
  level: 'silent',
  child: () => silent,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export class FakeWhatsApp {
  readonly people = new Map<string, FakePerson>();
  readonly groups = new Map<string, GroupMetadata>();
  readonly inviteCodes = new Map<string, string>();
  /** Whose LID the server tells to who asks: by JID. */
  readonly lids = new Map<string, string>();
  /** How the server answers the request for a pairing code; undefined: not at all. */
  pairingAnswer: Pick<BinaryNode, 'attrs' | 'content'> | undefined = { attrs: { type: 'result' } };
  readonly blocked = new Set<string>();
  readonly sent: Sent[] = [];
  readonly media = new Map<string, Buffer>();
  readonly sockets: FakeSocket[] = [];
  privacy: Record<string, string> = {
    readreceipts: 'all',
    profile: 'contacts',
    status: 'contact_blacklist',
    online: 'match_last_seen',
    last: 'none',
    groupadd: 'contacts',
    calladd: 'known',
  };
  /** Codes with which the server refuses messages, by message id. */
  readonly refused = new Map<string, string>();
  /** What WhatsApp's own page names; undefined: it cannot be reached. */
  latestVersion: [number, number, number] | undefined;
  /** Whether the server acknowledges messages. */
  acknowledges = true;
  /** Whether the phones of the recipients are on and say so. */
  delivers = false;
  /** The number of the phone that scans every picture at once; undefined waits for {@link FakeSocket.scan}. */
  phone: string | undefined;
  readonly #waiting: ((socket: FakeSocket) => void)[] = [];

  /** As the transport loads it. */
  readonly library: BaileysLibrary = {
    BufferJSON: baileys.BufferJSON,
    extractMessageContent: baileys.extractMessageContent,
    getBinaryNodeChild: baileys.getBinaryNodeChild,
    jidDecode: baileys.jidDecode,
    initAuthCreds: baileys.initAuthCreds,
    proto: baileys.proto,
    fetchLatestWaWebVersion: async () => ({
      version: this.latestVersion ?? [2, 3000, 1],
      isLatest: this.latestVersion !== undefined,
    }),
    makeWASocket: (config) => this.#connected(config),
    downloadContentFromMessage: (media, type) => this.#download(media, type),
  };

  addPerson(digits: string, name: string): FakePerson {
    const person = { jid: personJid(digits), name };
    this.people.set(person.jid, person);
    return person;
  }

  addGroup(
    id: string,
    subject: string,
    members: Readonly<Record<string, 'superadmin' | 'admin' | null>>,
  ): string {
    const jid = `${id}@g.us`;
    const participants = Object.entries(members).map(([member, admin]) => ({ id: member, admin }));
    this.groups.set(jid, { id: jid, subject, owner: undefined, participants });
    this.inviteCodes.set(jid, randomBytes(11).toString('base64url'));
    return jid;
  }

  /** Resolves with the next connection that the transport makes, or the one that nobody has asked for yet. */
  nextSocket(): Promise<FakeSocket> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#handOut();
    });
  }

  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) {
      throw new Error('nobody has connected yet');
    }
    return socket;
  }

  async upload(file: string): Promise<{ mediaUrl: string; directPath: string }> {
    const directPath = `/v/t62.7117-24/${randomBytes(8).toString('hex')}.enc`;
    this.media.set(directPath, await readFile(file));
    return { mediaUrl: `https://mmg.whatsapp.net${directPath}`, directPath };
  }

  #fresh: FakeSocket[] = [];

  #connected(config: UserFacingSocketConfig): FakeSocket {
    const socket = new FakeSocket(this, config);
    this.sockets.push(socket);
    this.#fresh.push(socket);
    this.#handOut();
    return socket;
  }

  #handOut(): void {
    while (this.#waiting.length > 0 && this.#fresh.length > 0) {
      const [resolve, socket] = [this.#waiting.shift(), this.#fresh.shift()];
      if (socket !== undefined) {
        resolve?.(socket);
      }
    }
  }

  /** Baileys' own decryption, fed from memory. */
  readonly #download: BaileysLibrary['downloadContentFromMessage'] = async (
    { directPath, url, mediaKey },
    type,
  ) => {
    const bytes = this.media.get(directPath ?? '');
    if (bytes === undefined || url || !mediaKey) {
      throw new Error(`nothing is stored at ${directPath ?? url}`);
    }
    const address = `data:application/octet-stream;base64,${bytes.toString('base64')}`;
    return baileys.downloadEncryptedContent(address, await baileys.getMediaKeys(mediaKey, type));
  };
}

export class FakeSocket implements WhatsAppSocket {
  readonly calls: Call[] = [];
  readonly config: UserFacingSocketConfig;
  ended = false;
  readonly #secret: string;
  readonly #network: FakeWhatsApp;
  readonly #handlers: ((events: SocketEvents) => void | Promise<void>)[] = [];
  readonly #listeners: (readonly [event: string, listener: (node: BinaryNode) => void])[] = [];
  #tags = 0;

  constructor(network: FakeWhatsApp, config: UserFacingSocketConfig) {
    this.#network = network;
    this.config = config;
    this.#secret = config.auth.creds.advSecretKey;
    void this.#greet();
  }

  readonly ev: WhatsAppSocket['ev'] = {
    process: (handler) => {
      this.#handlers.push(handler);
      return () => undefined;
    },
  };

  readonly ws: WhatsAppSocket['ws'] = {
    on: (event, listener) => this.#listeners.push([event, listener]),
  };

  /** Baileys keeps pairs in the session's keys, and asks the server for a LID that it has not. */
  readonly signalRepository: WhatsAppSocket['signalRepository'] = {
    lidMapping: {
      getLIDForPN: async (pn) => {
        const user = pn.split('@')[0] ?? '';
        const { [user]: kept } = await this.config.auth.keys.get('lid-mapping', [user]);
        const lid = kept === undefined ? this.#network.lids.get(pn) : `${kept}@lid`;
        if (lid !== undefined) await this.signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn }]);
        return lid ?? null;
      },
      storeLIDPNMappings: async (pairs) => {
        const users = pairs.map(({ lid, pn }) => [lid.split('@')[0] ?? '', pn.split('@')[0] ?? ''] as const);
        await this.config.auth.keys.set({
          'lid-mapping': Object.fromEntries(
            users.flatMap(([lid, pn]) => [
              [pn, lid],
              [`${lid}_reverse`, pn],
            ]),
          ),
        });
      },
    },
  };

  get authState(): WhatsAppSocket['authState'] {
    const { creds, keys } = this.config.auth;
    return { creds, keys: { set: (data) => keys.set(data), transaction: (work) => work() } };
  }

  generateMessageTag(): string {
    this.#tags += 1;
    return `1.2-${this.#tags}`;
  }

  async waitForMessage<Node>(id: string): Promise<Node | undefined> {
    const expected = `1.2-${this.#tags + 1}`;
    if (id !== expected) {
      throw new Error(`nothing is sent under ${id}, the next is ${expected}`);
    }
    const answer = this.#network.pairingAnswer;
    return answer && ({ tag: 'iq', ...answer } as Node);
  }

  get #ownJid(): string {
    return this.config.auth.creds.me?.id ?? '';
  }

  /** As Baileys emits them; it changes its own credentials first. */
  emit(events: SocketEvents): void {
    if (events['creds.update'] !== undefined) {
      Object.assign(this.config.auth.creds, events['creds.update']);
    }
    for (const handler of this.#handlers) {
      void handler(events);
    }
  }

  open(): void {
    this.emit({ 'connection.update': { connection: 'open' } });
  }

  /** As Baileys makes it: the secret in it is that of when it connected. */
  showQr(ref = `2@${randomBytes(24).toString('base64')}`): string {
    const keys = [this.config.auth.creds.noiseKey, this.config.auth.creds.signedIdentityKey];
    const parts = [ref, ...keys.map((key) => Buffer.from(key.public).toString('base64'))];
    const code = `https://wa.me/settings/linked_devices#${[...parts, this.#secret, '1'].join(',')}`;
    this.emit({ 'connection.update': { qr: code } });
    return code;
  }

  /** The phone with this number takes the device in, and the server asks to connect again. */
  scan(digits: string): void {
    this.emit({
      'creds.update': {
        me: { id: `${digits}:7@s.whatsapp.net`, name: 'The account' },
        account: { details: Buffer.from('details'), accountSignature: Buffer.from('signature') },
      },
      'connection.update': { isNewLogin: true },
    });
    this.drop(515);
  }

  /** Ends the connection with a code of the server, or none. */
  drop(code?: number): void {
    this.ended = true;
    const error =
      code === undefined ? undefined : Object.assign(new Error('ended'), { output: { statusCode: code } });
    this.emit({ 'connection.update': { connection: 'close', lastDisconnect: { error, date: new Date() } } });
  }

  /** A message of this id reached the state. */
  status(jid: string, id: string, status: number, parameters?: string[]): void {
    const update = { status, ...(parameters ? { messageStubParameters: parameters } : {}) };
    this.emit({ 'messages.update': [{ key: { remoteJid: jid, fromMe: true, id }, update }] });
  }

  /** The phone of `whose` tells how far a message of this id got there: of groups in a form of its own. */
  receipt(jid: string, id: string, whose: string, word: 'DELIVERY_ACK' | 'READ' | 'PLAYED'): void {
    if (!jid.endsWith('@g.us')) {
      this.status(jid, id, baileys.proto.WebMessageInfo.Status[word]);
      return;
    }
    const when = word === 'DELIVERY_ACK' ? { receiptTimestamp: 1 } : { readTimestamp: 1 };
    this.emit({
      'message-receipt.update': [
        {
          key: { remoteJid: jid, fromMe: true, id, participant: whose },
          receipt: { userJid: whose, ...when },
        },
      ],
    });
  }

  acknowledge(id: string, error?: string): void {
    const attrs = { class: 'message', id, ...(error === undefined ? {} : { error }) };
    this.#stanza('CB:ack,class:message', { tag: 'ack', attrs });
  }

  /** The server retires what the picture offers. */
  retirePicture(): void {
    const attrs = { type: 'companion_reg_refresh' };
    this.#stanza('CB:notification,type:companion_reg_refresh', { tag: 'notification', attrs });
  }

  #stanza(event: string, node: BinaryNode): void {
    for (const [name, listener] of this.#listeners) {
      if (name === event) listener(node);
    }
  }

  async sendMessage(
    jid: string,
    content: AnyMessageContent,
    options: MiscMessageGenerationOptions = {},
  ): Promise<WAMessage> {
    this.#record('sendMessage', jid, content, options);
    const message = await baileys.generateWAMessage(jid, content, {
      logger: silent,
      userJid: this.#ownJid,
      upload: (file) => this.#network.upload(file),
      messageId: 'made by Baileys',
      ...options,
    });
    this.#network.sent.push({ jid, message });
    void this.#answer(jid, message.key.id ?? '');
    return message;
  }

  async sendPresenceUpdate(presence: WAPresence, jid?: string): Promise<void> {
    this.#record('sendPresenceUpdate', presence, jid);
  }

  async onWhatsApp(...numbers: string[]): Promise<{ jid: string; exists: boolean }[]> {
    this.#record('onWhatsApp', ...numbers);
    // In no order that could be relied on.
    return numbers.toReversed().map((number) => {
      const jid = personJid(number);
      return { jid, exists: this.#network.people.has(jid) };
    });
  }

  async groupMetadata(jid: string): Promise<GroupMetadata> {
    this.#record('groupMetadata', jid);
    return structuredClone(this.#group(jid));
  }

  async groupFetchAllParticipating(): Promise<Record<string, GroupMetadata>> {
    this.#record('groupFetchAllParticipating');
    return structuredClone(Object.fromEntries(this.#network.groups));
  }

  async groupInviteCode(jid: string): Promise<string | undefined> {
    this.#record('groupInviteCode', jid);
    return this.#network.inviteCodes.get(this.#group(jid).id);
  }

  async groupRevokeInvite(jid: string): Promise<string | undefined> {
    this.#record('groupRevokeInvite', jid);
    this.#network.inviteCodes.set(this.#group(jid).id, randomBytes(11).toString('base64url'));
    return this.#network.inviteCodes.get(jid);
  }

  async groupAcceptInvite(code: string): Promise<string | undefined> {
    this.#record('groupAcceptInvite', code);
    const found = [...this.#network.inviteCodes].find(([, known]) => known === code)?.[0];
    if (found === undefined) {
      throw refusal(406);
    }
    return found;
  }

  async updateBlockStatus(jid: string, action: 'block' | 'unblock'): Promise<void> {
    this.#record('updateBlockStatus', jid, action);
    this.#network.blocked[action === 'block' ? 'add' : 'delete'](jid);
  }

  async fetchBlocklist(): Promise<string[]> {
    this.#record('fetchBlocklist');
    return [...this.#network.blocked];
  }

  async fetchPrivacySettings(force?: boolean): Promise<Record<string, string>> {
    this.#record('fetchPrivacySettings', force);
    return this.#network.privacy;
  }

  async readMessages(keys: baileys.WAMessageKey[]): Promise<void> {
    this.#record('readMessages', keys);
  }

  async rejectCall(callId: string, from: string): Promise<void> {
    this.#record('rejectCall', callId, from);
  }

  async requestPairingCode(number: string): Promise<string> {
    this.#record('requestPairingCode', number);
    this.generateMessageTag();
    this.emit({ 'creds.update': { me: { id: personJid(number), name: '~' }, pairingCode: 'ABCD1234' } });
    return 'ABCD1234';
  }

  async logout(): Promise<void> {
    this.#record('logout');
    this.drop(401);
  }

  async end(_error: Error | undefined): Promise<void> {
    if (!this.ended) {
      this.drop(428);
    }
  }

  /** Arguments of every call of a method. */
  callsOf(method: string): readonly (readonly unknown[])[] {
    return this.calls.filter(([name]) => name === method).map(([, ...args]) => args);
  }

  async #greet(): Promise<void> {
    await nextTurn();
    this.emit({ 'connection.update': { connection: 'connecting' } });
    if (this.config.auth.creds.account !== undefined) {
      this.open();
      return;
    }
    this.showQr();
    if (this.#network.phone !== undefined) {
      await nextTurn();
      this.scan(this.#network.phone);
    }
  }

  async #answer(jid: string, id: string): Promise<void> {
    await nextTurn();
    const refused = this.#network.refused.get(id);
    if (refused !== undefined) {
      this.acknowledge(id, refused);
      this.status(jid, id, baileys.proto.WebMessageInfo.Status.ERROR, [refused]);
    } else if (this.#network.acknowledges) {
      this.acknowledge(id);
      await nextTurn();
      if (this.#network.delivers) {
        for (const { id: member } of this.#network.groups.get(jid)?.participants ?? [{ id: jid }]) {
          this.receipt(jid, id, member, 'DELIVERY_ACK');
        }
      }
    }
  }

  #group(jid: string): GroupMetadata {
    const group = this.#network.groups.get(jid);
    if (group === undefined) {
      throw refusal(404);
    }
    return group;
  }

  #record(...call: Call): void {
    this.calls.push(call);
  }
}

/** As Baileys throws what the server refuses: a Boom error whose data is the server's code. */
export function refusal(code: number): Error {
  return Object.assign(new Error('refused'), { data: code, output: { statusCode: 500 } });
}
