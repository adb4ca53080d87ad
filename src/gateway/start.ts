/** The gateway as a process: an HTTP server, in front of what only the lease holder runs. */
import type { AddressInfo } from 'node:net';
import type { Express } from 'express';
import { Election } from 'soundpost-chat/lease/election';
import { standby } from 'soundpost-chat/lease/lease';
import { SecretHasher } from 'soundpost-chat/tokens';
import { pageOrigins } from 'soundpost-kit/http/cross-origin';
import { type Listener, listen } from 'soundpost-kit/http/listener';
import { application } from 'soundpost-kit/http/routes';
import { createAuditLog } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, linkProbe, pingRedis } from 'soundpost-kit/redis/connection';
import { withDeadline } from 'soundpost-kit/storage/deadline';
import type { Config } from '../process/config.ts';
import { observed, publicUrlOf, type Resources } from '../process/resources.ts';
import { startActive } from './active.ts';
import type { GatewayOptions, RunningGateway } from './gateway-options.ts';
import { InboxSessions } from './inbox/viewer.ts';
import { gatewayFromElsewhere } from './middleware/access.ts';
import { errorAnswer } from './middleware/error-answer.ts';
import { requestLog } from './middleware/request-log.ts';
import { live, ready } from './routes/health.ts';
import type { GatewayServices } from './services.ts';

/** Then connections that are still busy are cut. */
const CLOSE_TIMEOUT_MS = 10_000;

/**
 * Runs the gateway with this configuration.
 * @param apiPort port of the API, if known, for its events
 */
export async function runGateway(resources: Resources, apiPort?: number): Promise<RunningGateway> {
  const { config, secrets } = resources;
  const gateway = await startGateway({
    host: config.HOST,
    port: config.GATEWAY_PORT,
    publicUrl: config.GATEWAY_PUBLIC_URL,
    brands: config.GATEWAY_BRANDS,
    whatsappVersion: config.WHATSAPP_VERSION,
    graphUrl: config.GRAPH_URL,
    telegramUrl: config.TELEGRAM_URL,
    answersAsPublic: config.GATEWAY_ANSWERS === 'public',
    apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
    keyPepper: secrets.keyPepper,
    encryptionKey: secrets.encryption,
    redisUrl: resources.redisAddress.url,
    redisTls: resources.redisAddress.tls,
    redisDeadlineMs: resources.redisAddress.deadlineMs,
    storage: withDeadline(resources.storage, config.STORAGE_DEADLINE_SECONDS * 1000, resources.storageWatch),
    probes: resources.probes,
    outbound: resources.outbound,
    tools: await resources.tools(),
    workspaces: await resources.workspaces(),
    transcriber: transcriberOf(config),
    mediaTtlSeconds: config.MEDIA_TTL_SECONDS,
    sendsPerMinute: config.SENDS_PER_MINUTE,
    webhookSchedule: config.WEBHOOK_SCHEDULE_SECONDS,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: [...config.CORS_ORIGINS, ...consoleOrigins(config, apiPort)],
    events: {
      url: config.GATEWAY_EVENTS_URL ?? `${publicUrlOf(config, apiPort)}/hooks/gateway`,
      secret: secrets.gatewayEventsSecret,
    },
    logger: resources.logger,
    observer: resources.metrics.observer,
    tracing: resources.traces.tracing,
    around: observed('gateway', resources),
  });
  resources.metrics.read({ instances: () => gateway.instanceStates() });
  return gateway;
}

function transcriberOf(config: Config): GatewayOptions['transcriber'] {
  const { TRANSCRIBER_URL: url, TRANSCRIBER_API_KEY: apiKey, TRANSCRIBER_MODEL: model } = config;
  const timeoutMs = config.TRANSCRIBER_TIMEOUT_SECONDS * 1000;
  return url === undefined ? undefined : { url, apiKey, model, timeoutMs };
}

/** Origins that the console calls from. */
function consoleOrigins(config: Config, apiPort: number | undefined): string[] {
  return config.CONSOLE === 'on' ? pageOrigins(publicUrlOf(config, apiPort)) : [];
}

/** Resolves once this process serves, or stands by for another. */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { probes, tools, logger, around = (handler) => handler } = options;
  const redis = connectRedis({
    url: options.redisUrl,
    tls: options.redisTls,
    deadlineMs: options.redisDeadlineMs,
    role: 'request',
    logger,
  });
  probes.add('gatewayLink', linkProbe(redis));
  const audit = createAuditLog(logger);
  const stopping = new AbortController();
  const inboxSessions = new InboxSessions(redis, new SecretHasher(options.keyPepper));
  const election = new Election<Awaited<ReturnType<typeof startActive>>>({
    redis,
    ...options.election,
    logger,
  });
  const standby = createStandbyApp({
    redis,
    probes,
    sandbox: tools.sandbox?.level ?? 'none',
    logger,
    observer: options.observer,
    corsOrigins: options.corsOrigins ?? [],
  });
  let listener: Listener | undefined;

  const close = async (): Promise<void> => {
    const closed = listener?.close(CLOSE_TIMEOUT_MS);
    stopping.abort(new Error('the gateway is stopping'));
    await closed;
    await election.close();
    await probes.close('gatewayLink');
    await closeRedis(redis);
  };
  try {
    // Commands would wait for Redis; this one fails at once if it is down.
    await pingRedis(redis);
    void probes.ask('gatewayLink');
    listener = await listen(options.host, options.port, () =>
      around((request, response) => (election.active?.app ?? standby)(request, response)),
    );
    const { address: host, port } = listener.address;
    const publicUrl = options.publicUrl ?? baseOf(listener.address);
    await election.start((lease) =>
      startActive({ ...options, redis, lease, audit, publicUrl, stopping: stopping.signal }),
    );
    logger.info({ host, port, serves: election.active !== undefined }, 'gateway is listening');
    return {
      host,
      port,
      publicUrl,
      instanceStates: async () => (await election.active?.instanceStates()) ?? [],
      inboxLink: async () => `${publicUrl}/inbox?code=${await inboxSessions.createCode()}`,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function baseOf({ address, port, family }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

// Answers of a standby process: it lives, is not ready, and accepts nothing.

function createStandbyApp(
  options: Pick<GatewayServices, 'redis' | 'probes' | 'sandbox' | 'logger' | 'observer' | 'corsOrigins'>,
): Express {
  const { redis, probes, sandbox, logger, observer, corsOrigins } = options;
  const app = application(0);
  app.use(requestLog(logger));
  app.get('/health/live', live(probes));
  app.get('/health/ready', ready({ redis, probes, sandbox, serves: false }));
  app.use(gatewayFromElsewhere(corsOrigins));
  app.use(() => {
    // Without Redis no process serves, and callers get that error.
    throw redis.status === 'ready' ? standby() : new Error('Redis is away');
  });
  app.use(errorAnswer({ logger, observer, redisReady: () => redis.status === 'ready' }));
  return app;
}
