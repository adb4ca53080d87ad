/** The gateway as a process: constructs, wires, starts, closes. */
import type { AddressInfo } from 'node:net';
import { listen } from '../http/listener.ts';
import type { Around } from '../http/watched.ts';
import { createAuditLog } from '../logger.ts';
import { closeRedis, connectRedis, pingRedis, type Redis } from '../queue/redis.ts';
import { createApp } from './app.ts';
import { EventsPost } from './events-post.ts';
import { seedFirstInstance } from './first-instance.ts';
import type { GatewayOptions, RunningGateway } from './gateway-options.ts';
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
import { Replicas } from './replicas/replicas.ts';
import { Sealer } from './sealer.ts';
import { SendRate } from './send-rate.ts';
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

const SEND_TIMEOUT_MS = 30_000;
const WEBHOOK_SCHEDULE_SECONDS = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
const SWEEP_INTERVAL_MS = 60 * 60 * 1000;
/** After this, connections that are still busy are cut. */
const CLOSE_TIMEOUT_MS = 10_000;

export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { logger, storage, outbound, tools } = options;
  const connect = (role: 'request' | 'worker'): Redis =>
    connectRedis({ url: options.redisUrl, tls: options.redisTls, role, logger });
  const redis = connect('request');
  // Connections that wait for Redis would wait here for ever; this one says at once that it is not there.
  await pingRedis(redis).catch(async (error: unknown) => {
    await closeRedis(redis);
    throw error;
  });
  const closing = new AbortController();
  let publicUrl = options.publicUrl ?? '';

  const hasher = new SecretHasher(options.keyPepper);
  const sealer = new Sealer(options.encryptionKey);
  const replicas = await Replicas.open({ ...options.replica, redis, closing: closing.signal, logger });
  const { placement, states, forwarding } = replicas;
  const instances = new Instances({ redis, hasher, sealer, apiKey: options.apiKey });
  const log = new MessageLog(redis, options.mediaTtlSeconds);
  const loopback = createLoopbackTransport({
    redis,
    blockingRedis: connect('worker'),
    log,
    instances,
    publicUrl: () => publicUrl,
    keepSeconds: options.mediaTtlSeconds,
    onDuty: replicas.onDuty('loopbackRelay'),
    logger,
  });
  const xmpp = createXmppTransport({ redis, outbound, log, logger });
  const workspaces = new Workspaces(options.workspacesDir);
  const whatsapp = createWhatsAppTransport({ redis, sealer, workspaces, logger });
  const transports = [loopback, xmpp, whatsapp];
  const sessions = new Sessions({ instances, transports, placement, states, logger });
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
  const texts = new TextSender({ log, rate, order, sessions, closing: closing.signal });
  const sender = new VoiceSender({
    sessions,
    log,
    notes,
    rate,
    hasher,
    closing: closing.signal,
    sendTimeoutMs: options.sendTimeoutMs ?? SEND_TIMEOUT_MS,
    observer: options.observer,
    tracing: options.tracing,
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
    onDuty: replicas.onDuty('webhooks'),
    logger,
    observer: options.observer,
  });
  const wrongKeys = new WrongKeys(redis);
  const access = new Access({ instances, apiKey: options.apiKey, wrongKeys });
  const inboxSessions = new InboxSessions(redis, hasher);
  const events = new LiveEvents(redis, connect('worker'), logger);
  const eventsPost =
    options.events &&
    new EventsPost({
      ...options.events,
      blockingRedis: connect('worker'),
      onDuty: replicas.onDuty('eventsPost'),
      logger,
    });

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

  const around: Around = options.around ?? ((handler) => handler);
  const handlerFor = ({ address, port, family }: AddressInfo) => {
    publicUrl ||= `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    const app = createApp({
      access,
      audit: createAuditLog(logger),
      brands: options.brands,
      closing: closing.signal,
      events,
      forwarding,
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
    return around(app);
  };
  const listener = await listen(options.host, options.port, handlerFor);
  await replicas.join(listener.address, sessions);
  const { address, port } = listener.address;
  logger.info({ host: address, port }, 'gateway is listening');

  return {
    instanceStates: () => sessions.present(),
    host: address,
    port,
    publicUrl,
    inboxLink: async () => `${publicUrl}/inbox?code=${await inboxSessions.createCode()}`,
    async close() {
      clearInterval(sweeper);
      placement.rest();
      const closed = listener.close(CLOSE_TIMEOUT_MS);
      closing.abort(new Error('the gateway is stopping'));
      await closed;
      await Promise.all([eventsPost?.close(), webhookSender.close(), events.close(), sessions.close()]);
      // Only now: whoever takes the instances must find them free on their networks, too.
      await placement.close();
      await closeRedis(redis);
    },
  };
}
