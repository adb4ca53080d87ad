/**
 * All our metrics. The registry, docs/reference/metrics.md and the tests use them. Names follow
 * https://prometheus.io/docs/practices/naming/: base units, `_total` for counters. A label without
 * listed values says what bounds it. Of a caller, only the id of its key, no secret, is a label.
 */
import { errorCatalogue, jobFailureCodes } from 'soundpost-contract/errors';
import { outputFormats } from 'soundpost-contract/formats';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import { awayReasons } from '../away.ts';
import {
  destinationStatuses,
  destinationTries,
  keyLimits,
  mediaTools,
  submissionOutcomes,
  toolEndings,
  transcriptEnds,
  transcriptTries,
  voiceStatuses,
  voiceTries,
  webhookKinds,
  webhookOutcomes,
  workSteps,
} from './observer.ts';

/** The service's parts; a process runs one or more, and `serve` all three. */
export const parts = ['api', 'worker', 'gateway'] as const;
export type Part = (typeof parts)[number];

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Values of each label, or what bounds them. */
  readonly labels: Readonly<Record<string, readonly string[] | string>>;
  /** The parts that report it. */
  readonly of: readonly Part[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
  /** A counter's possible combinations, 0 from the start for rates. Default: all, if listed. */
  readonly zeros?: readonly Readonly<Record<string, string>>[];
}

export const queueLabel = [
  'extract',
  'completion',
  'webhook',
  'voice',
  'destination',
  'transcript',
  'gateway-webhook',
] as const;
export const queueStates = ['waiting', 'active', 'delayed', 'waiting_children'] as const;

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const WORK_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
const JOB_SECONDS = [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200];
const WAIT_SECONDS = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600];
const POST_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
const SEND_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

const KEY_LABEL = 'ids of the existing API keys';

export const metricTable = {
  soundpost_build_info: {
    type: 'gauge',
    help: 'Always 1; the labels show the version and the parts',
    labels: { version: 'the version of this build', parts: 'the parts in this process, joined by +' },
    of: parts,
  },
  http_server_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from a request’s last header to the end of its answer, including the time that downloads and event streams are read',
    labels: {
      server: parts,
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'],
      route: 'the route’s template, with (waiting) for `Prefer: wait`, or (none)',
      status: 'HTTP statuses; 499 if the caller disconnected before the answer',
    },
    of: parts,
    buckets: REQUEST_SECONDS,
  },
  soundpost_redis_up: {
    type: 'gauge',
    help: '1 if Redis answered this scrape, else 0; gauges that are read from Redis are then missing',
    labels: {},
    of: parts,
  },
  soundpost_away_total: {
    type: 'counter',
    help: 'Requests answered with 503 and attempts postponed because Redis or the storage was down, by reason',
    labels: { reason: awayReasons },
    of: parts,
  },
  soundpost_clock_ahead_seconds: {
    type: 'gauge',
    help: "How far this process's clock is ahead of Redis' clock; negative if behind. Beyond 5 s the process starts no jobs and cleans nothing up",
    labels: {},
    of: parts,
  },
  soundpost_storage_up: {
    type: 'gauge',
    help: '1 while the storage answers within STORAGE_DEADLINE_SECONDS, else 0; workers then start no jobs, and requests that need the storage get 503',
    labels: {},
    of: parts,
  },
  soundpost_storage_answer_seconds: {
    type: 'gauge',
    help: 'Duration of the last storage check, made every 5 s',
    labels: {},
    of: parts,
  },
  soundpost_queue_jobs: {
    type: 'gauge',
    help: 'Jobs in the queues, read from Redis; every process reports the same number, so use max(), never sum()',
    labels: { queue: queueLabel, state: queueStates },
    of: ['api', 'worker'],
  },
  soundpost_queue_oldest_job_age_seconds: {
    type: 'gauge',
    help: 'Waiting time of the oldest queued job, 0 if none waits; for retries, how long the first is overdue. Read from Redis, so use max()',
    labels: { queue: queueLabel },
    of: ['api', 'worker'],
  },
  soundpost_jobs_submitted_total: {
    type: 'counter',
    help: 'Submitted jobs, by outcome of the submission',
    labels: { outcome: submissionOutcomes },
    of: ['api'],
  },
  soundpost_jobs_finished_total: {
    type: 'counter',
    help: 'Ended jobs, counted by the process that ended them; the code is OK for completed jobs',
    labels: { state: ['completed', 'failed'], code: ['OK', ...Object.keys(errorCatalogue)] },
    of: ['api', 'worker'],
    zeros: [
      { state: 'completed', code: 'OK' },
      ...jobFailureCodes.map((code) => ({ state: 'failed', code })),
    ],
  },
  soundpost_key_jobs_submitted_total: {
    type: 'counter',
    help: 'Submitted jobs for each key, by outcome of the submission',
    labels: { key: KEY_LABEL, outcome: submissionOutcomes },
    of: ['api'],
  },
  soundpost_key_jobs_finished_total: {
    type: 'counter',
    help: 'Ended jobs for each key, counted by the process that ended them',
    labels: { key: KEY_LABEL, state: ['completed', 'failed'] },
    of: ['api', 'worker'],
  },
  soundpost_key_held_total: {
    type: 'counter',
    help: 'How often a limit applied to a key: a request got 429, a transcript failed, a stream waited for its host, or tools ran at nice 19 for a second',
    labels: { key: KEY_LABEL, limit: keyLimits },
    of: ['api', 'worker'],
  },
  soundpost_key_processor_seconds_total: {
    type: 'counter',
    help: 'Processor time of ffmpeg and ffprobe for each key’s jobs, updated every second',
    labels: { key: KEY_LABEL },
    of: ['worker'],
  },
  soundpost_job_wait_seconds: {
    type: 'histogram',
    help: 'Time from acceptance to the first start of a job',
    labels: {},
    of: ['worker'],
    buckets: WAIT_SECONDS,
  },
  soundpost_job_duration_seconds: {
    type: 'histogram',
    help: 'Time from the last start of a job to its end',
    labels: { state: ['completed', 'failed'] },
    of: ['worker'],
    buckets: JOB_SECONDS,
  },
  soundpost_job_step_duration_seconds: {
    type: 'histogram',
    help: 'Duration of each job step, whatever its outcome; extract includes normalize, await_encoder is the wait for a free encoder slot',
    labels: { step: workSteps },
    of: ['worker'],
    buckets: WORK_SECONDS,
  },
  soundpost_source_bytes_total: {
    type: 'counter',
    help: 'Total size of sources from URLs',
    labels: {},
    of: ['worker'],
  },
  soundpost_source_bytes_saved_total: {
    type: 'counter',
    help: 'Bytes of these sources not downloaded, because only the audio was needed',
    labels: {},
    of: ['worker'],
  },
  soundpost_output_bytes_total: {
    type: 'counter',
    help: 'Total size of the files of completed jobs',
    labels: { format: Object.keys(outputFormats) },
    of: ['worker'],
  },
  soundpost_audio_seconds_total: {
    type: 'counter',
    help: 'Total duration of the files of completed jobs',
    labels: { format: Object.keys(outputFormats) },
    of: ['worker'],
  },
  soundpost_worker_encoding_places: {
    type: 'gauge',
    help: 'Encoder slots of this worker (WORKER_CONCURRENCY)',
    labels: { state: ['busy', 'free'] },
    of: ['worker'],
  },
  soundpost_worker_disk_low: {
    type: 'gauge',
    help: '1 while this worker starts no jobs because less than DISK_RESERVE_BYTES is free, else 0',
    labels: {},
    of: ['worker'],
  },
  soundpost_ffmpeg_processes: {
    type: 'gauge',
    help: 'Running ffmpeg and ffprobe processes',
    labels: { tool: mediaTools },
    of: ['worker', 'gateway'],
  },
  soundpost_ffmpeg_run_duration_seconds: {
    type: 'histogram',
    help: 'Duration of ffmpeg and ffprobe runs',
    labels: { tool: mediaTools, ending: toolEndings },
    of: ['worker', 'gateway'],
    buckets: WORK_SECONDS,
  },
  soundpost_webhook_attempts_total: {
    type: 'counter',
    help: 'Attempts to deliver webhooks of jobs and gateway instances',
    labels: { kind: webhookKinds, outcome: webhookOutcomes },
    of: ['worker', 'gateway'],
  },
  soundpost_webhook_attempt_duration_seconds: {
    type: 'histogram',
    help: 'Duration of these attempts',
    labels: { kind: webhookKinds },
    of: ['worker', 'gateway'],
    buckets: POST_SECONDS,
  },
  soundpost_webhooks_given_up_total: {
    type: 'counter',
    help: 'Webhooks whose last attempt failed',
    labels: { kind: webhookKinds },
    of: ['worker', 'gateway'],
  },
  soundpost_voice_attempts_total: {
    type: 'counter',
    help: 'Requests to the gateway to send a voice message; lost: it is unknown whether it was sent',
    labels: { outcome: voiceTries },
    of: ['worker'],
  },
  soundpost_voice_attempt_duration_seconds: {
    type: 'histogram',
    help: 'Duration of these requests, including the requested delay',
    labels: {},
    of: ['worker'],
    buckets: SEND_SECONDS,
  },
  soundpost_voice_messages_total: {
    type: 'counter',
    help: 'Voice messages of jobs, by final status',
    labels: { status: voiceStatuses },
    of: ['worker'],
  },
  soundpost_destination_attempts_total: {
    type: 'counter',
    help: 'Attempts to upload a file to its destination; refused: it is not retried',
    labels: { outcome: destinationTries },
    of: ['worker'],
  },
  soundpost_destination_attempt_duration_seconds: {
    type: 'histogram',
    help: 'Duration of these attempts',
    labels: {},
    of: ['worker'],
    buckets: JOB_SECONDS,
  },
  soundpost_destinations_total: {
    type: 'counter',
    help: 'Files with a destination, by final status',
    labels: { status: destinationStatuses },
    of: ['worker'],
  },
  soundpost_transcript_parts_total: {
    type: 'counter',
    help: 'Parts of recordings sent to the transcriber; not_now: will be sent again',
    labels: { outcome: transcriptTries },
    of: ['worker'],
  },
  soundpost_transcript_part_duration_seconds: {
    type: 'histogram',
    help: 'Duration of these requests',
    labels: {},
    of: ['worker'],
    buckets: WORK_SECONDS,
  },
  soundpost_transcripts_total: {
    type: 'counter',
    help: 'Transcripts, by final status',
    labels: { status: transcriptEnds },
    of: ['worker'],
  },
  soundpost_gateway_sends_total: {
    type: 'counter',
    help: 'Voice messages for the gateway to send, by network and outcome: sent, caller_gone (the caller disconnected), or the error code',
    labels: {
      transport: TransportKind.options,
      outcome: ['sent', 'caller_gone', ...Object.keys(gatewayErrorCatalogue)],
    },
    of: ['gateway'],
  },
  soundpost_gateway_send_duration_seconds: {
    type: 'histogram',
    help: 'Time from the parsed request to acceptance by the network, including waiting and presence',
    labels: { transport: TransportKind.options },
    of: ['gateway'],
    buckets: SEND_SECONDS,
  },
  soundpost_gateway_instances: {
    type: 'gauge',
    help: 'Instances in this process, by network and connection state',
    labels: { transport: TransportKind.options, state: ConnectionState.options },
    of: ['gateway'],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

export type MetricTable = typeof metricTable;
