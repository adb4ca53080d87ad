/** The messaging gateway: the configuration turned into the options that its parts declare. */
import type { RunningGateway } from '../gateway/gateway-options.ts';
import { startGateway } from '../gateway/start.ts';
import type { Ground } from './ground.ts';
import { publicUrlOf, workspacesFolder } from './places.ts';
import { seenAs } from './seeing.ts';

/** @param apiPort port of the API where it is known; its events go there */
export async function runGateway(ground: Ground, apiPort?: number): Promise<RunningGateway> {
  const { config, secrets } = ground;
  const gateway = await startGateway({
    host: config.HOST,
    port: config.GATEWAY_PORT,
    publicUrl: config.GATEWAY_PUBLIC_URL,
    brands: config.GATEWAY_BRANDS,
    apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
    keyPepper: secrets.keyPepper,
    encryptionKey: secrets.encryption,
    redisUrl: ground.redisAddress.url,
    redisTls: ground.redisAddress.tls,
    storage: ground.storage,
    outbound: ground.outbound,
    tools: await ground.tools(),
    workspacesDir: workspacesFolder(config),
    mediaTtlSeconds: config.MEDIA_TTL_SECONDS,
    sendsPerMinute: config.SENDS_PER_MINUTE,
    webhookSchedule: config.WEBHOOK_SCHEDULE_SECONDS,
    trustProxy: config.TRUST_PROXY,
    events: {
      url: config.GATEWAY_EVENTS_URL ?? `${publicUrlOf(config, apiPort)}/hooks/gateway`,
      secret: secrets.gatewayEventsSecret,
    },
    replica: { url: config.GATEWAY_REPLICA_URL, key: secrets.gatewayReplicas },
    logger: ground.logger,
    observer: ground.metrics.observer,
    tracing: ground.traces.tracing,
    around: seenAs('gateway', ground),
  });
  ground.metrics.read({ instances: () => gateway.instanceStates() });
  return gateway;
}
