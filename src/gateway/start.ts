/** The gateway as a process: constructs, wires, starts, closes. */
import type { AddressInfo } from 'node:net';
import { GatewayError } from '../contract/gateway-errors.ts';
import { listen } from '../http/listener.ts';
import { createAuditLog, type Logger } from '../logger.ts';
import type { MediaTools } from '../media/run.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { closeRedis, connectRedis, type Redis } from '../queue/redis.ts';
import type { Storage } from '../storage/storage.ts';
import { createApp } from './app.ts';
import { EventsPost } from './events-post.ts';
import { Idempotency } from './idempotency.ts';
import { InboxSessions } from './inbox/inbox-sessions.ts';
import { LiveEvents } from './inbox/live-events.ts';
import { Viewers } from './inbox/viewer.ts';
import { Incoming } from './incoming.ts';
import { Instances } from './instances.ts';
import { MediaStore } from './media-store.ts';
import { MessageLog } from './message-log.ts';
import { Access } from './middleware/access.ts';
import { WrongKeys } from './middleware/wrong-keys.ts';
import { OutgoingOrder } from './outgoing-order.ts';
import { gatewayKey } from './redis-keys.ts';
import { Sealer } from './sealer.ts';
import { type SendLimits, SendRate } from './send-rate.ts';
import { Sessions } from './sessions.ts';
import { TextSender } from './text-sender.ts';
import { SecretHasher } from './tokens.ts';
import { createLoopbackTransport } from './transports/loopback/loopback-transport.ts';
import { createWhatsAppTransport } from './transports/whatsapp/whatsapp-transport.ts';
import { createXmppTransport } from './transports/xmpp/xmpp-transport.ts';
import { VoiceNotes } from './voice-notes.ts';
import { VoiceSender } from './voice-sender.ts';
import { WebhookSender } from './webhooks/webhook-sender.ts';
import { Webhooks } from './webhooks/webhooks.ts';
import { Workspaces } from './workspace.ts';

export interface GatewayOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Absolute base of media URLs, without a slash at the end. Default: the address that the server listens on. */
  readonly publicUrl: string | undefined;
  /** Brand segments of the send path, such as `Messenger`. */
  readonly brands: readonly string[];
  /** The gateway's own key. */
  readonly apiKey: string;
  /** HMAC key under which tokens and sessions are stored; the same in every process of the gateway. */
  readonly keyPepper: Buffer;
  /** 32 bytes: AES-256 key under which accounts' passwords and webhook secrets are stored. */
  readonly encryptionKey: Buffer;
  /** `redis://…`, `rediss://…`, or `unix:///path/to/socket`. */
  readonly redisUrl: string;
  readonly storage: Storage;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
  /** Folder for the files of a send while it runs. */
  readonly workspacesDir: string;
  /** How long a message and its media are kept, seconds. */
  readonly mediaTtlSeconds: number;
  /** Where messages.update is posted, and the `whsec_` secret that signs it; undefined posts nothing. */
  readonly events: { readonly url: string; readonly secret: string } | undefined;
  readonly logger: Logger;
  /** Messages that an instance may send within 60 s, by network; 0 is no limit. Default: whatsapp 20, xmpp 60. */
  readonly sendsPerMinute?: SendLimits;
  /** When an instance's webhook is told of an event, seconds after it (decisions D). */
  readonly webhookSchedule?: readonly number[];
  /** Proxies in front whose forwarded address is believed. Default 0. */
  readonly trustProxy?: number;
  /** How long preparing and sending a message may take besides its delay, ms. Default 30 s (decisions B "Audio"). */
  readonly sendTimeoutMs?: number;
}

export interface RunningGateway {
  readonly host: string;
  readonly port: number;
  /** Base of the links below and of media URLs. */
  readonly publicUrl: string;
  /** A link to the inbox that is good for 10 minutes and one use. */
  inboxLink(): Promise<string>;
  /** Stops taking requests, gives up sends that have not reached the network (503), and lets the rest finish. */
  close(): Promise<void>;
}

const SEND_TIMEOUT_MS = 30_000;
const WEBHOOK_SCHEDULE_SECONDS = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
const SWEEP_INTERVAL_MS = 60 * 60 * 1000;
/** After this, connections that are still busy are cut. */
const CLOSE_TIMEOUT_MS = 10_000;

export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { logger, storage, outbound, tools } = options;
  const connect = (role: 'request' | 'worker'): Redis =>
    connectRedis({ url: options.redisUrl, role, logger });
  const redis = connect('request');
  // Connections that wait for Redis would wait here for ever; this one says at once that it is not there.
  await redis.ping().catch(async (error: unknown) => {
    await closeRedis(redis);
    throw error;
  });
  const closing = new AbortController();
  let publicUrl = options.publicUrl ?? '';

  const hasher = new SecretHasher(options.keyPepper);
  const sealer = new Sealer(options.encryptionKey);
  const instances = new Instances({ redis, hasher, sealer, apiKey: options.apiKey });
  const log = new MessageLog(redis, options.mediaTtlSeconds);
  const loopback = createLoopbackTransport({
    redis,
    blockingRedis: connect('worker'),
    log,
    instances,
    publicUrl: () => publicUrl,
    keepSeconds: options.mediaTtlSeconds,
    logger,
  });
  const xmpp = createXmppTransport({ redis, outbound, log, logger });
  const workspaces = new Workspaces(options.workspacesDir);
  const whatsapp = createWhatsAppTransport({ redis, sealer, workspaces, logger });
  const sessions = new Sessions({ instances, transports: [loopback, xmpp, whatsapp], logger });
  const media = new MediaStore({
    redis,
    storage,
    publicUrl: () => publicUrl,
    keepSeconds: options.mediaTtlSeconds,
    logger,
  });
  const notes = new VoiceNotes({ media, outbound, tools });
  const order = new OutgoingOrder();
  const rate = new SendRate(redis, options.sendsPerMinute);
  const texts = new TextSender({ log, rate, order, closing: closing.signal });
  const sender = new VoiceSender({
    sessions,
    log,
    notes,
    rate,
    hasher,
    closing: closing.signal,
    sendTimeoutMs: options.sendTimeoutMs ?? SEND_TIMEOUT_MS,
  });
  const incoming = new Incoming({
    redis,
    instances,
    sessions,
    log,
    notes,
    texts,
    workspaces,
    closing: closing.signal,
    logger,
  });
  const webhooks = new Webhooks(redis, sealer);
  const webhookSender = new WebhookSender({
    redis,
    blockingRedis: connect('worker'),
    webhooks,
    outbound,
    scheduleSeconds: options.webhookSchedule ?? WEBHOOK_SCHEDULE_SECONDS,
    logger,
  });
  const wrongKeys = new WrongKeys(redis);
  const access = new Access({ instances, hasher, apiKey: options.apiKey, wrongKeys });
  const inboxSessions = new InboxSessions(redis, hasher);
  const events = new LiveEvents(redis, connect('worker'), logger);
  const eventsPost =
    options.events && new EventsPost({ ...options.events, blockingRedis: connect('worker'), logger });

  await eventsPost?.start();
  await webhookSender.start();
  await events.start();
  await seedFirstInstance(redis, instances);
  await sessions.start(incoming);
  const sweep = async (): Promise<void> => {
    await Promise.all([media.sweep(), workspaces.sweep()]).catch((error: unknown) =>
      logger.warn({ err: error }, 'removing expired media failed'),
    );
  };
  await sweep();
  const sweeper = setInterval(sweep, SWEEP_INTERVAL_MS);

  const handlerFor = ({ address, port, family }: AddressInfo) => {
    publicUrl ||= `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    return createApp({
      access,
      audit: createAuditLog(logger),
      brands: options.brands,
      closing: closing.signal,
      events,
      idempotency: new Idempotency(redis),
      inboxSessions,
      instances,
      log,
      logger,
      notes,
      order,
      outbound,
      publicUrl: () => publicUrl,
      redis,
      sandbox: tools.sandbox?.level ?? 'none',
      sender,
      sessions,
      storage,
      texts,
      trustProxy: options.trustProxy ?? 0,
      viewers: new Viewers({ access, inboxSessions, instances, wrongKeys }),
      webhooks,
      workspaces,
      wrongKeys,
    });
  };
  const listener = await listen(options.host, options.port, handlerFor);
  const { address, port } = listener.address;
  logger.info({ host: address, port }, 'gateway is listening');

  return {
    host: address,
    port,
    publicUrl,
    inboxLink: async () => `${publicUrl}/inbox?code=${await inboxSessions.createCode()}`,
    async close() {
      clearInterval(sweeper);
      const closed = listener.close(CLOSE_TIMEOUT_MS);
      closing.abort(new Error('the gateway is stopping'));
      await closed;
      await Promise.all([eventsPost?.close(), webhookSender.close(), events.close(), sessions.close()]);
      await closeRedis(redis);
    },
  };
}

/** A gateway that never had an instance begins with one, so that the first message needs no preparation. */
async function seedFirstInstance(redis: Redis, instances: Instances): Promise<void> {
  const seeded = gatewayKey('seeded');
  if ((await redis.exists(seeded)) === 1) {
    return;
  }
  if ((await instances.list()).length === 0) {
    try {
      await instances.create({ instanceName: 'main', transport: 'loopback' });
    } catch (error) {
      // Another process was quicker.
      if (!(error instanceof GatewayError && error.code === 'name_in_use')) {
        throw error;
      }
    }
  }
  await redis.set(seeded, '1');
}
