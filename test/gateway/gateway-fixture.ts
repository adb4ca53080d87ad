/** A gateway as it runs in production, on a Redis, a folder and a port of the test's own. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Redis } from 'ioredis';
import { Instances } from 'soundpost-chat/instances';
import { SecretHasher } from 'soundpost-chat/tokens';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Probes } from 'soundpost-kit/observe/probes';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { withDeadline } from 'soundpost-kit/storage/deadline';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { StorageWatch } from 'soundpost-kit/storage/storage-watch';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound } from 'soundpost-outbound/outbound';
import { fetch } from 'soundpost-testing/http';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaTools } from 'soundpost-testing/media-tools';
import { nativeNoteOf } from 'soundpost-testing/native-note';
import type { GatewayOptions, RunningGateway } from '../../src/gateway/gateway-options.ts';
import { Incoming } from '../../src/gateway/incoming.ts';
import { startGateway } from '../../src/gateway/start.ts';

export const API_KEY = 'gateway-key-of-the-tests-0123456789';
const PEPPER = Buffer.alloc(32, 7);
const ENCRYPTION_KEY = Buffer.alloc(32, 8);

/** The people of every loopback network (decisions B "Loopback"). */
export const ada = { number: '12025550101', jid: '12025550101@people.loopback', name: 'Ada Lovelace' };
export const hedy = { number: '12025550102', jid: '12025550102@people.loopback', name: 'Hedy Lamarr' };

async function onlyLocal(hostname: string): Promise<string[]> {
  if (hostname === 'localhost') return ['127.0.0.1'];
  throw Object.assign(new Error(`${hostname} is not asked for in tests`), { code: 'ENOTFOUND' });
}

export interface GatewaySetting {
  readonly answersAsPublic?: boolean;
  readonly corsOrigins?: readonly string[];
  readonly redisUrl: string;
  /** Folder of storage and workspaces. */
  readonly dataDir: string;
  /** Default: the server's own address. */
  readonly publicUrl?: string;
  /** Base of the Bot API. */
  readonly telegramUrl?: string;
  /** `host:port` rules for audio URLs. */
  readonly outboundAllow?: string;
  readonly events?: GatewayOptions['events'];
  /** Default: a free one. */
  readonly port?: number;
  readonly mediaTtlSeconds?: number;
  readonly sendTimeoutMs?: number;
  readonly sendsPerMinute?: GatewayOptions['sendsPerMinute'];
  readonly webhookSchedule?: readonly number[];
  readonly trustProxy?: number;
  readonly election?: GatewayOptions['election'];
  readonly graphUrl?: string;
  /** Gets every line of the log, of all levels. */
  readonly log?: { write(line: string): void };
}

export async function gatewayOptions(setting: GatewaySetting): Promise<GatewayOptions> {
  const { redisUrl, dataDir, outboundAllow, events, port } = setting;
  const logger = createLogger(setting.log ? 'trace' : (process.env.TEST_LOG_LEVEL ?? 'silent'), setting.log);
  const storage = createFileStorage({ root: join(dataDir, 'storage') });
  const probes = new Probes(logger);
  // Asked when something has failed; its timer holds nobody up.
  const storageWatch = new StorageWatch({ storage, deadlineMs: 10_000, probes });
  return {
    host: '127.0.0.1',
    port: port ?? 0,
    publicUrl: setting.publicUrl,
    ...(setting.telegramUrl === undefined ? {} : { telegramUrl: setting.telegramUrl }),
    brands: ['Messenger', 'WhatsApp'],
    apiKey: API_KEY,
    keyPepper: PEPPER,
    encryptionKey: ENCRYPTION_KEY,
    redisUrl,
    storage: withDeadline(storage, 10_000, storageWatch),
    probes,
    outbound: createOutbound({
      allow: parseAllowRules(outboundAllow ?? ''),
      ports: [80, 443],
      logger,
      userAgent: 'soundpost-tests',
      // Nothing is asked outside of this machine.
      resolve: onlyLocal,
    }),
    tools: mediaTools,
    workspaces: await Workspaces.open(join(dataDir, 'workspaces')),
    mediaTtlSeconds: setting.mediaTtlSeconds ?? 3600,
    ...(setting.sendTimeoutMs === undefined ? {} : { sendTimeoutMs: setting.sendTimeoutMs }),
    ...(setting.sendsPerMinute === undefined ? {} : { sendsPerMinute: setting.sendsPerMinute }),
    ...(setting.webhookSchedule === undefined ? {} : { webhookSchedule: setting.webhookSchedule }),
    ...(setting.trustProxy === undefined ? {} : { trustProxy: setting.trustProxy }),
    events,
    ...(setting.election === undefined ? {} : { election: setting.election }),
    ...(setting.graphUrl === undefined ? {} : { graphUrl: setting.graphUrl }),
    answersAsPublic: setting.answersAsPublic ?? false,
    corsOrigins: setting.corsOrigins ?? [],
    logger,
  };
}

/** No network of these tests pairs: what one reports is put in where it would. */
export async function reportPairing(
  redis: Redis,
  instanceId: string,
  pairing: Parameters<Incoming['pairingChanged']>[1],
): Promise<void> {
  const [hasher, sealer] = [new SecretHasher(Buffer.alloc(32)), new Sealer(Buffer.alloc(32))];
  const instances = new Instances({ redis, hasher, sealer, apiKey: '' });
  const sessions = { ownJid: async () => '99900000001@people.loopback', isRemoved: () => false };
  await new Incoming({ redis, instances, sessions } as never).pairingChanged(instanceId, pairing);
}

export interface TestGateway extends RunningGateway {
  readonly url: string;
  /** A request with the gateway's own key unless the headers say otherwise; a plain object becomes JSON. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
  readonly body: any;
}

export async function startTestGateway(setting: GatewaySetting): Promise<TestGateway> {
  const gateway = await startGateway(await gatewayOptions(setting));
  const url = `http://127.0.0.1:${gateway.port}`;
  return { ...gateway, url, call: caller(url) };
}

export function caller(url: string): TestGateway['call'] {
  return async (method, path, body, headers = {}) => {
    const encoded = encode(body);
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { apikey: API_KEY, ...encoded.headers, ...headers },
      body: encoded.body ?? null,
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: parse(text) };
  };
}

function encode(body: unknown): { body?: string | FormData | Buffer; headers: Record<string, string> } {
  if (body === undefined) {
    return { headers: {} };
  }
  return body instanceof FormData || body instanceof Buffer || typeof body === 'string'
    ? { body, headers: {} }
    : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export async function makeFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'soundpost-test-gateway-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

export const run = promisify(execFile);

/**
 * A tone that swells and fades, so that its waveform has a shape.
 * @param file its extension chooses the format; `.ogg` is a voice note as phones make it, which a gateway looks into once and then sends as it is
 */
export async function makeTone(file: string, seconds: number): Promise<void> {
  const swelling = `aevalsrc='sin(440*2*PI*t)*abs(sin(PI*t/${seconds}*3))*0.8':d=${seconds}:s=48000`;
  const tone = await cachedMedia(`tone${file.endsWith('.ogg') ? '.wav' : extname(file)}`, [
    ...['-f', 'lavfi', '-i', swelling],
  ]);
  await copyFile(file.endsWith('.ogg') ? await nativeNoteOf(tone) : tone, file);
}

export interface InboxMessage {
  readonly key: { readonly id: string };
  readonly status: string;
}

/** The messages of a chat as the inbox shows them. */
export async function chatMessages(
  gateway: Pick<TestGateway, 'call'>,
  instance: string,
  jid: string,
): Promise<InboxMessage[]> {
  const { body } = await gateway.call('GET', `/inbox/api/instances/${instance}/chats/${jid}/messages`);
  return body;
}

/** Asks until the answer is the wanted one; the test's own timeout is the limit. */
export async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) {
      return answer;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
