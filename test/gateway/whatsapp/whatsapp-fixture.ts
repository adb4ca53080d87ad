/** The WhatsApp transport on a Redis of the test's own and a fake of the network, with everything that it reports. */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { type LoggedMessage, plainContext } from 'soundpost-chat/message-log';
import type {
  Chat,
  IncomingCall,
  IncomingEdit,
  IncomingMessage,
  MessageContext,
  OutgoingVoice,
  Pairing,
  ParticipantsChange,
  Session,
  Transport,
  TransportReports,
} from 'soundpost-chat/transport';
import { WhatsAppSession } from 'soundpost-chat-whatsapp/session';
import { createWhatsAppTransport } from 'soundpost-chat-whatsapp/whatsapp-transport';
import { defaultInstanceSettings } from 'soundpost-contract/gateway-instances';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { stubNetwork } from 'soundpost-testing/stub-network';
import { takeOver } from 'soundpost-testing/take-over';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll } from 'vitest';
import { makeFolder } from '../gateway-fixture.ts';
import { FakeWhatsApp, personJid } from './fake-whatsapp.ts';

export const OWN_NUMBER = '4915112345678';
export const ada = { number: '4915100000001', jid: personJid('4915100000001'), name: 'Ada' };
export const hedy = { number: '4915100000002', jid: personJid('4915100000002'), name: 'Hedy' };

export const plain: MessageContext = {
  quoted: undefined,
  mentioned: [],
  mentionsEveryOne: false,
  linkPreview: false,
};

export const adasChat: Chat = { jid: ada.jid, name: ada.name, isGroup: false };

class Reported implements TransportReports {
  readonly statuses: string[] = [];
  readonly messages: IncomingMessage[] = [];
  readonly edits: IncomingEdit[] = [];
  readonly presences: string[] = [];
  readonly connections: string[] = [];
  /** Codes that were made; undefined where there are no more. */
  readonly codes: (string | undefined)[] = [];
  readonly calls: IncomingCall[] = [];
  readonly changes: ParticipantsChange[] = [];
  /** Called while a message is being reported. */
  onMessage: ((message: IncomingMessage) => Promise<void>) | undefined;

  async statusChanged(_instanceId: string, messageId: string, status: string): Promise<void> {
    this.statuses.push(`${messageId} ${status}`);
  }

  async messageArrived(_instanceId: string, message: IncomingMessage): Promise<void> {
    await this.onMessage?.(message);
    this.messages.push(message);
  }

  async messageEdited(_instanceId: string, edit: IncomingEdit): Promise<void> {
    this.edits.push(edit);
  }

  async presenceChanged(_id: string, chatJid: string, presence: string, whose?: string): Promise<void> {
    this.presences.push(`${chatJid} ${whose} ${presence}`);
  }

  async connectionChanged(_instanceId: string, state: string, reason?: string): Promise<void> {
    this.connections.push(reason === undefined ? state : `${state}: ${reason}`);
  }

  async pairingChanged(_instanceId: string, pairing: Pairing | undefined): Promise<void> {
    this.codes.push(pairing?.code);
  }

  async callChanged(_instanceId: string, call: IncomingCall): Promise<void> {
    this.calls.push(call);
  }

  async participantsChanged(_instanceId: string, change: ParticipantsChange): Promise<void> {
    this.changes.push(change);
  }
}

export interface Setting {
  readonly network: FakeWhatsApp;
  readonly reported: Reported;
  readonly redis: Redis;
  readonly instance: Instance;
  readonly retries: number[];
  /** Authors of group messages that the gateway has on record, by the message's id. */
  readonly logged: Map<string, string>;
  transport(): Transport;
  /** What the transport may act by. */
  lease(): Lease;
  /** @param connect false for an instance that was logged out */
  open(connect: boolean): Promise<Session>;
  session(): Promise<WhatsAppSession>;
  /** Pairs the instance with the phone of {@link OWN_NUMBER}. */
  openSession(): Promise<WhatsAppSession>;
  /** Ends the transport and starts another one on the same Redis. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

function onRecord(id: string, authorJid: string | undefined): LoggedMessage | undefined {
  if (authorJid === undefined) return undefined;
  return {
    instanceId: '',
    instanceName: 'phone',
    ownJid: '',
    key: { remoteJid: '', fromMe: false, id },
    authorJid,
    timestampSeconds: 0,
    message: { conversation: '' },
    context: plainContext,
    status: 'DELIVERY_ACK',
    settled: true,
    marked: false,
    networkId: undefined,
    edited: false,
  };
}

const KEY = Buffer.alloc(32, 3);

/** One for all tests of a file: each setting has an instance of its own, whose id stands in all its keys. */
let redisOfFile: TestRedis;

/** Called by each file that starts settings. */
export function useSettings(): void {
  beforeAll(async () => {
    redisOfFile = await startTestRedis();
  });
  afterAll(() => redisOfFile.close());
}

export async function startSetting(
  settings: Partial<Instance['settings']> = {},
  version?: [number, number, number],
): Promise<Setting> {
  const folder = await makeFolder();
  const logger = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
  const redis = connectPatiently(redisOfFile.url);
  const network = new FakeWhatsApp();
  network.addPerson(ada.number, ada.name);
  network.addPerson(hedy.number, hedy.name);
  const reported = new Reported();
  const retries: number[] = [];
  const logged = new Map<string, string>();
  const instance: Instance = {
    id: randomUUID(),
    name: 'phone',
    transport: 'whatsapp',
    settings: { ...defaultInstanceSettings, ...settings },
    createdAt: new Date().toISOString(),
    tokenHash: '',
    loggedOut: false,
  };
  let lease: Lease;
  const begin = async (): Promise<Transport> => {
    lease = await takeOver(redis);
    const transport = createWhatsAppTransport({
      redis,
      outbound: stubNetwork().outbound,
      sealer: new Sealer(KEY),
      workspaces: await Workspaces.open(join(folder.path, 'workspaces')),
      lease,
      log: { find: async (_instanceId, id) => onRecord(id, logged.get(id)) },
      logger,
      version,
      library: async () => network.library,
      retryDelayMs: (attempt) => {
        retries.push(attempt);
        return 0;
      },
    });
    await transport.start(reported);
    return transport;
  };
  let transport = await begin();
  const open = (connect: boolean): Promise<Session> =>
    transport.open({ instance, connection: undefined, connect });
  const session = async (): Promise<WhatsAppSession> => {
    const opened = await open(true);
    if (!(opened instanceof WhatsAppSession)) {
      throw new Error('the transport opened something else');
    }
    return opened;
  };
  return {
    network,
    reported,
    redis,
    instance,
    retries,
    logged,
    transport: () => transport,
    lease: () => lease,
    open,
    session,
    async openSession() {
      const opened = await session();
      await opened.connect();
      network.socket.scan(OWN_NUMBER);
      await until('the session is open', () => opened.state() === 'open');
      return opened;
    },
    async restart() {
      await transport.close();
      transport = await begin();
    },
    async close() {
      await transport.close();
      await closeRedis(redis);
      await folder.remove();
    },
  };
}

/** A voice note as the gateway hands it over. @param file on the local disk */
export function voiceNote(file: string, more: Partial<OutgoingVoice> = {}): OutgoingVoice {
  return {
    messageId: '3EB0000000000000000A',
    chat: adasChat,
    file,
    durationMs: 2910,
    content: {
      url: 'http://127.0.0.1/media/x.enc',
      mimetype: 'audio/ogg; codecs=opus',
      fileSha256: '',
      fileLength: '1',
      seconds: 3,
      ptt: true,
      mediaKey: '',
      fileEncSha256: '',
      directPath: '/media/x.enc',
      mediaKeyTimestamp: '1',
      waveform: Buffer.from(Array.from({ length: 64 }, (_, index) => index)).toString('base64'),
    },
    context: plain,
    ...more,
  };
}
