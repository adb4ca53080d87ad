/** The consumers of everything that follows a job, one for each kind. */

import { heldKeys } from 'soundpost-kit/observe/held-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { consumeCompletions } from '../followups/completion.ts';
import { JobFollowUps } from '../followups/job-followups.ts';
import type { FollowUpKind } from '../followups/kind.ts';
import { destinationKind } from '../followups/kinds/destination.ts';
import { partTurn, transcriptKind } from '../followups/kinds/transcript.ts';
import { voiceKind } from '../followups/kinds/voice.ts';
import { jobWebhookKind } from '../followups/kinds/webhook.ts';
import { TryPlaces } from '../followups/places.ts';
import { WEBHOOKS_AT_A_TIME } from '../followups/post-webhook.ts';
import type { FollowUpQueue } from '../followups/queue.ts';
import { readPut } from '../followups/state/destinations.ts';
import type { PartAnswer } from '../followups/transcripts/client.ts';
import type { EarlyRecording } from '../followups/transcripts/early.ts';
import type { TranscriptServices } from '../followups/transcripts/turn.ts';
import { FollowUpWorker } from '../followups/worker.ts';
import { isErased } from '../jobs/bullmq-internals.ts';
import { readableRecord } from '../jobs/job-record.ts';
import { transcriptId } from '../jobs/names.ts';
import { spendTranscript } from '../jobs/transcript-minutes.ts';
import type { WorkerRegistry } from '../jobs/worker-registry.ts';
import { publicUrlOf, type Resources, type Stores } from '../process/resources.ts';
import type { WorkerServices } from './step.ts';

interface FollowUpOptions {
  readonly resources: Resources;
  readonly stores: Stores;
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  readonly registry: WorkerRegistry;
  readonly workspaces: Workspaces;
  /** Of the API and the gateway, where known. */
  readonly ports: { readonly api?: number; readonly gateway?: number };
}

interface FollowUpConsumers {
  /** Hears a recording while it is decoded. */
  readonly hearEarly: NonNullable<WorkerServices['hearEarly']>;
  /** Starts nothing new; whatever still runs after `graceMs` is left to another worker. */
  close(graceMs: number): Promise<void>;
}

/** For all keys and hosts together; each has a lower limit (src/followups/places.ts). */
const VOICES_AT_A_TIME = 1000;
/** Fewer slots exist; a job without one is put back. */
const TRANSCRIPTS_AT_A_TIME = 100;
/** Each takes a file handle, a socket and little memory. */
const PUTS_AT_A_TIME = 64;

export async function consumeFollowUps(options: FollowUpOptions): Promise<FollowUpConsumers> {
  const shared = sharedOf(options);
  const { settings, followUps } = shared;
  const { webhook, voice, transcript, destination } = followUps.queues;
  const consumers = [
    consumeCompletions({ ...settings, followUps }),
    await consume(webhook, webhooks(shared), WEBHOOKS_AT_A_TIME, shared),
    await consume(voice, voices(shared), VOICES_AT_A_TIME, shared),
    await consume(transcript, transcripts(shared), TRANSCRIPTS_AT_A_TIME, shared),
    await consume(destination, destinations(shared), PUTS_AT_A_TIME, shared),
  ];
  return {
    hearEarly: earlyHearing(shared),
    async close(graceMs) {
      await Promise.all(consumers.map((consumer) => consumer.close(graceMs)));
      await followUps.close();
    },
  };
}

type Shared = ReturnType<typeof sharedOf>;

/** Shared by several kinds. */
function sharedOf({ resources, stores, redis, registry, workspaces, ports }: FollowUpOptions) {
  const { config, logger, secrets, storage, storageWatch, probes, outbound, metrics, traces } = resources;
  const { tracing, telemetry } = traces;
  const recordSeconds = config.JOB_TTL_SECONDS;
  const webhookTries = config.WEBHOOK_SCHEDULE_SECONDS.length;
  return {
    settings: {
      ...{ redis, lockSeconds: config.JOB_LOCK_SECONDS, registry, probes },
      ...{ logger, observer: metrics.observer, telemetry },
    },
    followUps: new JobFollowUps({ redis, recordSeconds, webhookTries, logger, telemetry }),
    services: {
      readJob: (jobId: string) => readableRecord(redis, jobId),
      retryUntilUp: <Result>(signal: AbortSignal, work: () => Promise<Result>) =>
        storageWatch.retryUntilUp(signal, work),
      signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, ports.api)),
      ...{ storage, outbound, workspaces, logger, tracing, observer: metrics.observer },
      logSeconds: recordSeconds,
    },
    ...{ config, secrets, stores, redis, ports },
  };
}

function consume<Payload, Ready, Result extends object>(
  queue: FollowUpQueue,
  kind: FollowUpKind<Payload, Ready, Result>,
  concurrency: number,
  { settings }: Shared,
): Promise<FollowUpWorker<Payload, Ready, Result>> {
  return FollowUpWorker.start({ ...settings, queue, kindOf: () => kind, isAlone: false, concurrency });
}

function webhooks({ services, followUps, config, stores }: Shared) {
  return jobWebhookKind({
    ...services,
    post: services.outbound.post,
    secretsOf: (tenant) => stores.webhookSecrets.of(tenant),
    forgetPending: (payload) => followUps.forgetPending(payload),
    scheduleSeconds: config.WEBHOOK_SCHEDULE_SECONDS,
  });
}

function voices({ services, followUps, redis, config, secrets, ports }: Shared) {
  return voiceKind({
    ...services,
    ...{ redis, followUps },
    gateway: {
      url: config.GATEWAY_URL ?? `http://127.0.0.1:${ports.gateway ?? config.GATEWAY_PORT}`,
      kind: config.GATEWAY_KIND,
      brand: config.GATEWAY_BRAND,
      apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
    },
    onUnknown: config.VOICE_ON_UNKNOWN,
  });
}

function transcripts({ services, followUps, config, redis }: Shared) {
  return transcriptKind({
    ...services,
    ...hearing(config),
    followUps,
    scheduleSeconds: config.WEBHOOK_SCHEDULE_SECONDS,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    spend: transcriptBudget(config.TRANSCRIPT_MINUTES_PER_DAY, redis, services),
  });
}

/** The transcriber, and how much it is asked at a time. */
function hearing(config: Shared['config']) {
  const { TRANSCRIBER_URL: url, TRANSCRIBER_API_KEY: apiKey, TRANSCRIBER_MODEL: model } = config;
  const partMs = config.TRANSCRIBER_TIMEOUT_SECONDS * 1000;
  const transcriber = url === undefined ? undefined : { url, apiKey, model, timeoutMs: partMs };
  return { parts: config.TRANSCRIBER_PARTS, partMs, transcriber };
}

/** With the follow-ups' budget and places. The attempts are logged as the follow-up's own. */
function earlyHearing({
  services,
  followUps,
  config,
  redis,
}: Shared): NonNullable<WorkerServices['hearEarly']> {
  const { transcript: queue } = followUps.queues;
  const { transcriber, ...limits } = hearing(config);
  const perDay = config.TRANSCRIPT_MINUTES_PER_DAY;
  const early = {
    ...services,
    transcriber,
    places: new TryPlaces(redis, (id) => queue.promote(id)),
    claimOf: ({ jobId, tenant, output }: EarlyRecording) => ({
      ...partTurn(tenant, limits),
      jobId: transcriptId(jobId, output.name),
    }),
    spend: transcriptBudget(perDay, redis, services),
    ...(perDay !== undefined && {
      leftSeconds: async (tenant: string) => (await spendTranscript(redis, tenant, perDay)).remaining,
    }),
    onTried: ({ jobId, output }: EarlyRecording, answer: PartAnswer, startedAtMs: number) => {
      const error = answer.kind === 'heard' ? null : answer.error;
      const exchange = { httpStatus: answer.httpStatus ?? null, latencyMs: Date.now() - startedAtMs, error };
      const entry = { at: new Date(startedAtMs).toISOString(), ...exchange };
      return queue.log
        .add(transcriptId(jobId, output.name), entry, services.logSeconds)
        .catch(() => undefined);
    },
  };
  return async (recording) => {
    const { hearEarly } = await import('../followups/transcripts/early.ts');
    return hearEarly(recording, early);
  };
}

function transcriptBudget(
  minutesPerDay: number | undefined,
  redis: Redis,
  { observer, logger }: Shared['services'],
): TranscriptServices['spend'] {
  if (minutesPerDay === undefined) return undefined;
  const noteHeld = heldKeys(logger, observer);
  return async (key, seconds) => {
    const { taken } = await spendTranscript(redis, key, minutesPerDay, seconds);
    if (!taken) noteHeld(key, 'transcript_minutes', { seconds });
    return taken;
  };
}

function destinations({ services, followUps, config, redis, secrets }: Shared) {
  return destinationKind({
    ...services,
    followUps,
    sealer: new Sealer(secrets.encryption),
    isErased: (jobId) => isErased(redis, jobId),
    readReplay: async (jobId, name) => (await readPut(redis, jobId, name)).replay,
    scheduleSeconds: config.WEBHOOK_SCHEDULE_SECONDS,
  });
}
