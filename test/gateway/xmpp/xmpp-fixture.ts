/**
 * The XMPP transport by itself, on a real Prosody, with clients of another implementation on the other side. The test
 * plays the core: it keeps the log and hears the reports.
 */

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { MessageLog, plainContext } from 'soundpost-chat/message-log';
import type {
  Chat,
  IncomingCall,
  IncomingEdit,
  IncomingMessage,
  MessageContext,
  ParticipantsChange,
  Session,
  Transport,
  TransportReports,
} from 'soundpost-chat/transport';
import { createXmppTransport } from 'soundpost-chat-xmpp/xmpp-transport';
import { defaultInstanceSettings, type InstanceSettings } from 'soundpost-contract/gateway-instances';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { OutboundRefused } from 'soundpost-outbound/errors';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { DOMAIN, type ProsodySetting, startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { takeOver } from 'soundpost-testing/take-over';
import { until } from 'soundpost-testing/until';
import { startPeer, type XmppPeer } from 'soundpost-testing/xmpp-peer';
import { makeFolder, run } from '../gateway-fixture.ts';

/** Numbers of the accounts; 555-01XX is set aside for fiction. */
export const numbers = {
  soundpost: '12025550111',
  ada: '12025550112',
  hedy: '12025550113',
  nikola: '12025550114',
  nobody: '12025550199',
} as const;

export const jidOf = (number: string): string => `${number}@${DOMAIN}`;
const passwordOf = (number: string): string => `password of ${number}`;

type Report =
  | { readonly kind: 'status'; readonly messageId: string; readonly status: string }
  | { readonly kind: 'message'; readonly message: IncomingMessage }
  | { readonly kind: 'edit'; readonly edit: IncomingEdit }
  | {
      readonly kind: 'presence';
      readonly chatJid: string;
      readonly presence: string;
      readonly whose?: string;
    }
  | { readonly kind: 'connection'; readonly state: string; readonly reason?: string }
  | { readonly kind: 'call'; readonly call: IncomingCall }
  | { readonly kind: 'participants'; readonly change: ParticipantsChange };

export interface World {
  readonly prosody: TestProsody;
  readonly redis: Redis;
  readonly log: MessageLog;
  readonly folder: string;
  /** A client of the other implementation, logged in. */
  peer(number: string): Promise<XmppPeer>;
  /** The instance on its network, open. */
  connect(setting?: ConnectSetting): Promise<Connected>;
  close(): Promise<void>;
}

interface ConnectSetting {
  readonly number?: string;
  readonly settings?: Partial<InstanceSettings>;
  /** Default: a new one. The same one again is the gateway after a restart. */
  readonly instance?: Instance;
  readonly password?: string;
  /** Where to connect to; default: the server itself. */
  readonly port?: number;
  /** The server's name, which only the guard can resolve. Default: its address. */
  readonly host?: string;
  /** Whether the operator has allowed that address. Default true. */
  readonly isAllowed?: boolean;
  /** As with a public address, which no rule has opened for talking in clear. */
  readonly onlyEncrypted?: boolean;
  /** Default true: resolves when the session is open. */
  readonly waitUntilOpen?: boolean;
}

export interface Connected {
  readonly instance: Instance;
  readonly transport: Transport;
  readonly session: Session;
  readonly reports: readonly Report[];
  reported(what: string, fits: (report: Report) => boolean): Promise<Report>;
  chat(number: string): Promise<Chat>;
  /** Sends as the gateway's core does: recorded, handed over, settled. @returns the message's id */
  voice(number: string, file: string, more?: Partial<MessageContext>, messageId?: string): Promise<string>;
  text(number: string, text: string): Promise<string>;
  statuses(messageId: string): string[];
  close(): Promise<void>;
}

export const newId = (): string => randomBytes(16).toString('hex').toUpperCase();

export async function startWorld(more: Partial<ProsodySetting> = {}): Promise<World> {
  const folder = await makeFolder();
  const accounts = Object.fromEntries(
    [numbers.soundpost, numbers.ada, numbers.hedy, numbers.nikola].map((number) => [
      number,
      passwordOf(number),
    ]),
  );
  const prosody = await startTestProsody({ accounts, ...more });
  const server: TestRedis = await startTestRedis();
  const logger = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
  const redis = connectPatiently(server.url);
  const log = new MessageLog(redis, 3600);
  const lease = await takeOver(redis);
  const peers: XmppPeer[] = [];
  const connections: Connected[] = [];
  return {
    prosody,
    redis,
    log,
    folder: folder.path,
    async peer(number) {
      const peer = await startPeer({
        port: prosody.port,
        jid: jidOf(number),
        password: passwordOf(number),
      });
      peers.push(peer);
      return peer;
    },
    async connect(setting = {}) {
      const connected = await connect({ prosody, redis, log, lease, logger }, setting);
      connections.push(connected);
      return connected;
    },
    async close() {
      await Promise.all(peers.map((peer) => peer.close()));
      await Promise.all(connections.map((connected) => connected.close()));
      await closeRedis(redis);
      await server.close();
      await prosody.close();
      await folder.remove();
    },
  };
}

type Parts = Pick<World, 'prosody' | 'redis' | 'log'> & {
  readonly lease: Lease;
  readonly logger: ReturnType<typeof createLogger>;
};

async function connect(parts: Parts, setting: ConnectSetting): Promise<Connected> {
  const { prosody, redis, log, lease, logger } = parts;
  const outbound = outboundFor(prosody, setting, logger);
  const number = setting.number ?? numbers.soundpost;
  const instance: Instance = setting.instance ?? {
    id: randomUUID(),
    name: `instance-${number}`,
    transport: 'xmpp',
    settings: { ...defaultInstanceSettings, ...setting.settings },
    createdAt: new Date().toISOString(),
    tokenHash: '',
    loggedOut: false,
  };
  const reports: Report[] = [];
  const transport = createXmppTransport({ redis, outbound, log, lease, logger });
  await transport.start(recorder(reports, log));
  const connection = {
    jid: jidOf(number),
    password: setting.password ?? passwordOf(number),
    service: `xmpp://${setting.host ?? '127.0.0.1'}:${setting.port ?? prosody.port}`,
  };
  const session = await transport.open({ instance, connection, connect: true });
  const reported: Connected['reported'] = (what, fits) =>
    until(what, () => reports.find(fits)).catch((error: unknown) => {
      throw new Error(`${String(error)}; reported were ${JSON.stringify(reports)}`);
    });
  if (setting.waitUntilOpen ?? true) {
    await until('the session to open', () => session.state() === 'open');
  }
  const record = async (chat: Chat, messageId: string, message: object): Promise<() => Promise<void>> => {
    const intended = await log.intend({
      instanceId: instance.id,
      instanceName: instance.name,
      ownJid: session.ownJid,
      key: { remoteJid: chat.jid, fromMe: true, id: messageId },
      timestampSeconds: Math.floor(Date.now() / 1000),
      message: message as { conversation: string },
      context: plainContext,
    });
    return () => log.settle(intended);
  };
  const chat = (to: string): Promise<Chat> => session.resolve(parseAddress(to, 'number'), 'number');
  const signal = (): AbortSignal => AbortSignal.timeout(20_000);
  return {
    instance,
    transport,
    session,
    reports,
    reported,
    chat,
    async voice(to, file, more = {}, messageId = newId()) {
      const bytes = await readFile(file);
      const content = {
        url: 'http://gateway.example/media/x.enc',
        mimetype: 'audio/ogg; codecs=opus',
        fileSha256: createHash('sha256').update(bytes).digest('base64'),
        fileLength: String((await stat(file)).size),
        seconds: 3,
        ptt: true,
        mediaKey: '',
        fileEncSha256: '',
        directPath: '',
        mediaKeyTimestamp: '',
        waveform: '',
      };
      const to_ = await chat(to);
      const settle = await record(to_, messageId, { audioMessage: content });
      const context = { ...plainContext, quoted: undefined, ...more };
      await session.sendVoice({ messageId, chat: to_, file, durationMs: 2910, content, context }, signal());
      await settle();
      return messageId;
    },
    async text(to, text) {
      const messageId = newId();
      const to_ = await chat(to);
      const settle = await record(to_, messageId, { conversation: text });
      await session.sendText?.({ messageId, chat: to_, text }, signal());
      await settle();
      return messageId;
    },
    statuses: (messageId) =>
      reports.flatMap((report) =>
        report.kind === 'status' && report.messageId === messageId ? [report.status] : [],
      ),
    async close() {
      await transport.close();
      await outbound.close();
    },
  };
}

function outboundFor(
  prosody: TestProsody,
  { host, port, isAllowed = true, onlyEncrypted = false }: ConnectSetting,
  logger: Parts['logger'],
): Outbound {
  const place = `${host ?? '127.0.0.1'}:${port ?? prosody.port}`;
  const outbound = createOutbound({
    allow: parseAllowRules([prosody.outboundAllow, ...(isAllowed ? [place] : [])].join(',')),
    resolve: async () => ['127.0.0.1'],
    ports: [443],
    logger,
    userAgent: 'soundpost-tests',
  });
  return {
    ...outbound,
    async serviceAddresses(hostname, to, withoutTls) {
      if (withoutTls && onlyEncrypted) throw new OutboundRefused('a service needs https');
      return outbound.serviceAddresses(hostname, to, withoutTls);
    },
  };
}

function recorder(reports: Report[], log: MessageLog): TransportReports {
  return {
    async statusChanged(instanceId, messageId, status) {
      // As the core does: a status that does not move the message forward is no news.
      if (await log.advance(instanceId, messageId, status))
        reports.push({ kind: 'status', messageId, status });
    },
    async messageArrived(instanceId, message) {
      // As the core does: the same message again is no news.
      if ((await log.find(instanceId, message.messageId)) !== undefined) return;
      reports.push({ kind: 'message', message });
      const conversation = message.content.kind === 'text' ? message.content.text : 'a voice message';
      const record = await log.intend({
        instanceId,
        instanceName: '',
        ownJid: '',
        key: { remoteJid: message.chatJid, fromMe: message.fromMe ?? false, id: message.messageId },
        authorJid: message.authorJid,
        timestampSeconds: message.timestampSeconds,
        message: { conversation },
        context: plainContext,
      });
      await log.settle(record);
    },
    messageEdited: async (_instanceId, edit) => void reports.push({ kind: 'edit', edit }),
    presenceChanged: async (_instanceId, chatJid, presence, whose) =>
      void reports.push({ kind: 'presence', chatJid, presence, ...(whose === undefined ? {} : { whose }) }),
    connectionChanged: async (_instanceId, state, reason) =>
      void reports.push({ kind: 'connection', state, ...(reason === undefined ? {} : { reason }) }),
    callChanged: async (_instanceId, call) => void reports.push({ kind: 'call', call }),
    participantsChanged: async (_instanceId, change) => void reports.push({ kind: 'participants', change }),
  };
}

/** A voice note as the gateway prepares it. @returns its path */
export async function makeVoiceNote(folder: string, seconds: number): Promise<string> {
  const file = join(folder, `note-${seconds}-${randomUUID()}.ogg`);
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}:sample_rate=48000`],
    ...['-ac', '1', '-c:a', 'libopus', '-b:a', '32k', '-f', 'ogg', '-y', file],
  ]);
  return file;
}
