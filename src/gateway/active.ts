/** The process with the gateway's lease: constructs, wires, starts, closes. */
import type { Logger } from 'soundpost-base/logger';
import { Instances } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { MessageLog } from 'soundpost-chat/message-log';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { SecretHasher } from 'soundpost-chat/tokens';
import type { Transport, TransportReports } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import type { AuditLog } from 'soundpost-kit/observe/logger';
import { redisClock } from 'soundpost-kit/redis/clock';
import { connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { createApp } from './app.ts';
import { Converter } from './converter.ts';
import { EventReader } from './event-reader.ts';
import type { GatewayOptions } from './gateway-options.ts';
import { InboxSessions, Viewers } from './inbox/viewer.ts';
import { Incoming } from './incoming.ts';
import { createLoopbackTransport } from './loopback/loopback-transport.ts';
import { MediaStore } from './media-store.ts';
import { MessageSender } from './message-sender.ts';
import { Access, WrongKeys } from './middleware/access.ts';
import { OutgoingOrder, SendRate } from './outgoing.ts';
import type { GatewayServices } from './services.ts';
import { Sessions } from './sessions.ts';
import { TextSender } from './text-sender.ts';
import { VoiceNotes } from './voice-notes.ts';
import { EventDeliveries } from './webhooks/event-deliveries.ts';
import { Webhooks } from './webhooks/webhooks.ts';

const SEND_TIMEOUT_MS = 30_000;
const WEBHOOK_SCHEDULE_SECONDS = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

type ActiveOptions = GatewayOptions & {
  readonly redis: Redis;
  readonly lease: Lease;
  readonly audit: AuditLog;
  /** Absolute base URL without trailing slash. */
  readonly publicUrl: string;
  /** Aborted when the process stops. */
  readonly stopping: AbortSignal;
};

export async function startActive(options: ActiveOptions) {
  const { services, incoming, sweeper } = wire(options);
  const { redis, instances, sessions, deliveries, events } = services;
  const app = createApp(services);

  const close = async (): Promise<void> => {
    sweeper.close();
    await Promise.all([events.close(), sessions.close()]);
    await deliveries.close();
  };
  try {
    await deliveries.start();
    await events.start();
    await seedFirstInstance(redis, instances);
    await sessions.start(incoming);
    sweeper.start();
  } catch (error) {
    await close();
    throw error;
  }
  return { app, instanceStates: () => sessions.present(), close };
}

function wire(options: ActiveOptions) {
  const { redis, lease, storage, probes, outbound, tools, workspaces } = options;
  const { publicUrl, audit, logger, observer, tracing } = options;
  const closing = AbortSignal.any([options.stopping, lease.lost]);
  const keepSeconds = options.mediaTtlSeconds;
  /** For blocking commands. */
  const connect = (): Redis =>
    connectRedis({ url: options.redisUrl, tls: options.redisTls, role: 'worker', logger });

  const hasher = new SecretHasher(options.keyPepper);
  const sealer = new Sealer(options.encryptionKey);
  const instances = new Instances({ redis, hasher, sealer, apiKey: options.apiKey });
  const log = new MessageLog(redis, keepSeconds);
  const media = new MediaStore({ redis, storage, publicUrl, keepSeconds, logger });
  const notes = new VoiceNotes({ media, outbound, tools });
  const converter = new Converter({ notes, outbound, tools, transcriber: options.transcriber });

  const transports = transportsOf(options, { instances, log, sealer });
  const sessions = new Sessions({ instances, transports, lease, logger });

  const order = new OutgoingOrder();
  const rate = new SendRate(redis, options.sendsPerMinute);
  const texts = new TextSender({ log, rate, order, lease, closing });
  const sendTimeoutMs = options.sendTimeoutMs ?? SEND_TIMEOUT_MS;
  const sender = new MessageSender({
    ...{ sessions, log, notes, rate, hasher, lease, closing },
    ...{ sendTimeoutMs, observer, tracing },
  });
  const incoming = new Incoming({
    redis,
    instances,
    sessions,
    log,
    notes,
    texts,
    workspaces,
    closing,
    logger,
  });

  const webhooks = new Webhooks(redis, sealer);
  const scheduleSeconds = options.webhookSchedule ?? WEBHOOK_SCHEDULE_SECONDS;
  const deliveries = new EventDeliveries({
    ...{ redis, workerRedis: connect(), webhooks, media, outbound },
    publicUrl: options.answersAsPublic ? publicUrl : undefined,
    ...{ scheduleSeconds, relay: options.events, probes, logger, observer },
  });
  const events = new EventReader({ redis, blockingRedis: connect(), deliveries, lease, logger });
  const sweeper = new Sweeper([media, workspaces], logger);

  const wrongKeys = new WrongKeys(redis);
  const access = new Access({ instances, apiKey: options.apiKey, wrongKeys });
  const inboxSessions = new InboxSessions(redis, hasher);
  const services: GatewayServices = {
    ...{ instances, sessions, log, notes, converter, workspaces, order, texts, sender },
    ...{ events, deliveries, webhooks, outbound, redis, wrongKeys, inboxSessions },
    ...{ access, probes, storage, publicUrl, closing, audit, logger, observer },
    viewers: new Viewers({ access, inboxSessions, instances, wrongKeys }),
    sandbox: tools.sandbox?.level ?? 'none',
    brands: options.brands,
    answersAsPublic: options.answersAsPublic ?? false,
    trustProxy: options.trustProxy ?? 0,
    corsOrigins: options.corsOrigins ?? [],
  };
  return { services, incoming, sweeper };
}

function transportsOf(
  options: ActiveOptions,
  { instances, log, sealer }: { instances: Instances; log: MessageLog; sealer: Sealer },
): Transport[] {
  const { redis, lease, outbound, workspaces, publicUrl, logger } = options;
  const keepSeconds = options.mediaTtlSeconds;
  const loopback = createLoopbackTransport({
    redis,
    log,
    instances,
    publicUrl,
    keepSeconds,
    lease,
    logger,
  });
  const xmpp = onDemand('xmpp', async () => {
    const { createXmppTransport } = await import('soundpost-chat-xmpp/xmpp-transport');
    return createXmppTransport({ redis, outbound, log, lease, logger });
  });
  const whatsappCloud = onDemand('whatsapp-cloud', async () => {
    const { createWhatsAppCloudTransport } = await import(
      'soundpost-chat-whatsapp-cloud/whatsapp-cloud-transport'
    );
    return createWhatsAppCloudTransport({
      ...{ redis, outbound, log, workspaces, lease, logger },
      graphUrl: options.graphUrl,
    });
  });
  const whatsapp = onDemand('whatsapp', async () => {
    const { createWhatsAppTransport } = await import('soundpost-chat-whatsapp/whatsapp-transport');
    return createWhatsAppTransport({
      ...{ redis, outbound, sealer, workspaces, lease, log, logger },
      version: options.whatsappVersion,
    });
  });
  const telegram = onDemand('telegram', async () => {
    const { createTelegramTransport } = await import('soundpost-chat-telegram/telegram-transport');
    return createTelegramTransport({
      ...{ redis, outbound, workspaces, lease, log, logger, publicUrl },
      apiUrl: options.telegramUrl,
    });
  });
  return [loopback, xmpp, telegram, whatsappCloud, whatsapp];
}

/** Gives a new gateway its first instance, so that it can send without setup. */
async function seedFirstInstance(redis: Redis, instances: Instances): Promise<void> {
  const seeded = gatewayKey('seeded');
  if ((await redis.exists(seeded)) === 1) {
    return;
  }
  if ((await instances.list()).length === 0) {
    try {
      await instances.create({ instanceName: 'main', transport: 'loopback' });
    } catch (error) {
      // Another process was faster.
      if (!(error instanceof GatewayError && error.code === 'name_in_use')) {
        throw error;
      }
    }
  }
  await redis.set(seeded, '1');
}

// A transport whose code and packages are loaded with its first instance.

function onDemand(kind: TransportKind, load: () => Promise<Transport>): Transport {
  let reports: TransportReports | undefined;
  let loading: Promise<Transport> | undefined;
  const begin = async (): Promise<Transport> => {
    if (reports === undefined) {
      throw new Error(`the ${kind} transport was not started`);
    }
    const transport = await load();
    await transport.start(reports);
    return transport;
  };
  const loaded = (): Promise<Transport> => {
    loading ??= begin().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
  return {
    kind,
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    missing: async () => (await loaded()).missing?.(),
    open: async (opening) => (await loaded()).open(opening),
    webhook: async (instance, call) => (await (await loaded()).webhook?.(instance, call)) ?? { status: 404 },
    remove: async (instance) => (await loaded()).remove(instance),
    close: async () => (await loading)?.close(),
  };
}

// Removes expired data, at the start and every hour.

const INTERVAL_MS = 60 * 60 * 1000;

class Sweeper {
  readonly #swept: readonly { sweep(): Promise<void> }[];
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(swept: readonly { sweep(): Promise<void> }[], logger: Logger) {
    this.#swept = swept;
    this.#logger = logger;
  }

  /** Does not wait for the first sweep, so that a takeover can serve at once. */
  start(): void {
    this.#timer = setInterval(() => this.#sweep(), INTERVAL_MS);
    void this.#sweep();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #sweep(): Promise<void> {
    if (!redisClock.isRight) return;
    await Promise.all(this.#swept.map((one) => one.sweep())).catch((error: unknown) =>
      this.#logger.warn({ err: error }, 'removing expired data failed'),
    );
  }
}
