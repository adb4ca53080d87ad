/**
 * All our metrics, from which the registry, docs/reference/metrics.md and the tests are made. Names follow
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

const KEY_LABEL = 'ids of the API keys that there are';

export const metricTable = {
  soundpost_build_info: {
    type: 'gauge',
    help: 'Always 1; its labels say what runs',
    labels: { version: 'the version of this build', parts: 'the parts in this process, joined by +' },
    of: parts,
  },
  http_server_request_duration_seconds: {
    type: 'histogram',
    help: 'From the last header of a request to the end of its answer; downloads and event streams last as long as they are read',
    labels: {
      server: parts,
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'],
      route:
        'the templates of the routes, with (waiting) where `Prefer: wait` held the answer back, and (none)',
      status: 'HTTP statuses; 499 where the caller was gone before the answer',
    },
    of: parts,
    buckets: REQUEST_SECONDS,
  },
  soundpost_redis_up: {
    type: 'gauge',
    help: '1 when Redis answered this scrape, else 0; the gauges that are read from Redis are left out then',
    labels: {},
    of: parts,
  },
  soundpost_away_total: {
    type: 'counter',
    help: 'Requests that were answered 503 and attempts that were put back because Redis or the storage was away, by the reason',
    labels: { reason: awayReasons },
    of: parts,
  },
  soundpost_clock_ahead_seconds: {
    type: 'gauge',
    help: "By how much this process's clock is ahead of Redis'; negative where it is behind. Beyond 5 s the process takes no jobs and sweeps nothing",
    labels: {},
    of: parts,
  },
  soundpost_storage_up: {
    type: 'gauge',
    help: '1 while the storage answers within STORAGE_DEADLINE_SECONDS, else 0: then workers take no jobs, and requests that need it are answered 503',
    labels: {},
    of: parts,
  },
  soundpost_storage_answer_seconds: {
    type: 'gauge',
    help: 'How long the storage took for its last answer; it is asked every 5 s',
    labels: {},
    of: parts,
  },
  soundpost_queue_jobs: {
    type: 'gauge',
    help: 'Jobs in the queues, as Redis has them: the same number in every process, so take max(), never sum()',
    labels: { queue: queueLabel, state: queueStates },
    of: ['api', 'worker'],
  },
  soundpost_queue_oldest_job_age_seconds: {
    type: 'gauge',
    help: 'How long the job that has waited longest has waited for a worker, 0 when none waits; of announcements that are to be repeated, how long the first is overdue. As Redis has it, so take max()',
    labels: { queue: queueLabel },
    of: ['api', 'worker'],
  },
  soundpost_jobs_submitted_total: {
    type: 'counter',
    help: 'Jobs that were submitted, by what became of the submission',
    labels: { outcome: submissionOutcomes },
    of: ['api'],
  },
  soundpost_jobs_finished_total: {
    type: 'counter',
    help: 'Jobs that ended for good, counted by the process that ended them; the code is OK for completed ones',
    labels: { state: ['completed', 'failed'], code: ['OK', ...Object.keys(errorCatalogue)] },
    of: ['api', 'worker'],
    zeros: [
      { state: 'completed', code: 'OK' },
      ...jobFailureCodes.map((code) => ({ state: 'failed', code })),
    ],
  },
  soundpost_key_jobs_submitted_total: {
    type: 'counter',
    help: 'Jobs that a key submitted, by what became of the submission',
    labels: { key: KEY_LABEL, outcome: submissionOutcomes },
    of: ['api'],
  },
  soundpost_key_jobs_finished_total: {
    type: 'counter',
    help: 'Jobs of a key that ended for good, counted by the process that ended them',
    labels: { key: KEY_LABEL, state: ['completed', 'failed'] },
    of: ['api', 'worker'],
  },
  soundpost_key_held_total: {
    type: 'counter',
    help: 'How often a key was held back by one of its limits: a request answered 429, a transcript that failed, a stream that waited for its host, a second in which its tools ran at nice 19',
    labels: { key: KEY_LABEL, limit: keyLimits },
    of: ['api', 'worker'],
  },
  soundpost_key_processor_seconds_total: {
    type: 'counter',
    help: 'Processor time that ffmpeg and ffprobe used for jobs of a key, counted every second while they run; the last second of ffprobe and of runs that were ended by the clock',
    labels: { key: KEY_LABEL },
    of: ['worker'],
  },
  soundpost_job_wait_seconds: {
    type: 'histogram',
    help: 'From the acceptance of a job to its first start by a worker',
    labels: {},
    of: ['worker'],
    buckets: WAIT_SECONDS,
  },
  soundpost_job_duration_seconds: {
    type: 'histogram',
    help: 'From the last start of a job to its end',
    labels: { state: ['completed', 'failed'] },
    of: ['worker'],
    buckets: JOB_SECONDS,
  },
  soundpost_job_step_duration_seconds: {
    type: 'histogram',
    help: 'How long the steps of jobs take, however they end; normalize is contained in extract, await_encoder is the time without a free place among the encoders',
    labels: { step: workSteps },
    of: ['worker'],
    buckets: WORK_SECONDS,
  },
  soundpost_source_bytes_total: {
    type: 'counter',
    help: 'Sizes of the sources that were fetched from a URL',
    labels: {},
    of: ['worker'],
  },
  soundpost_source_bytes_saved_total: {
    type: 'counter',
    help: 'How much of these was not fetched, because only the audio was',
    labels: {},
    of: ['worker'],
  },
  soundpost_output_bytes_total: {
    type: 'counter',
    help: 'Sizes of the files that completed jobs made',
    labels: { format: Object.keys(outputFormats) },
    of: ['worker'],
  },
  soundpost_audio_seconds_total: {
    type: 'counter',
    help: 'Lengths of the files that completed jobs made',
    labels: { format: Object.keys(outputFormats) },
    of: ['worker'],
  },
  soundpost_worker_encoding_places: {
    type: 'gauge',
    help: 'Places among the encoders of this worker (WORKER_CONCURRENCY)',
    labels: { state: ['busy', 'free'] },
    of: ['worker'],
  },
  soundpost_worker_disk_low: {
    type: 'gauge',
    help: '1 while this worker takes no jobs because less than DISK_RESERVE_BYTES is free',
    labels: {},
    of: ['worker'],
  },
  soundpost_ffmpeg_processes: {
    type: 'gauge',
    help: 'Processes of ffmpeg and ffprobe that run now',
    labels: { tool: mediaTools },
    of: ['worker', 'gateway'],
  },
  soundpost_ffmpeg_run_duration_seconds: {
    type: 'histogram',
    help: 'How long runs of ffmpeg and ffprobe took',
    labels: { tool: mediaTools, ending: toolEndings },
    of: ['worker', 'gateway'],
    buckets: WORK_SECONDS,
  },
  soundpost_webhook_attempts_total: {
    type: 'counter',
    help: 'Tries to deliver webhooks of jobs and of gateway instances',
    labels: { kind: webhookKinds, outcome: webhookOutcomes },
    of: ['worker', 'gateway'],
  },
  soundpost_webhook_attempt_duration_seconds: {
    type: 'histogram',
    help: 'How long these tries took',
    labels: { kind: webhookKinds },
    of: ['worker', 'gateway'],
    buckets: POST_SECONDS,
  },
  soundpost_webhooks_given_up_total: {
    type: 'counter',
    help: 'Webhooks whose last try failed',
    labels: { kind: webhookKinds },
    of: ['worker', 'gateway'],
  },
  soundpost_voice_attempts_total: {
    type: 'counter',
    help: 'Requests to the gateway to send the result of a job as a voice message; lost: nobody knows whether it was sent',
    labels: { outcome: voiceTries },
    of: ['worker'],
  },
  soundpost_voice_attempt_duration_seconds: {
    type: 'histogram',
    help: 'How long the gateway took to answer them, the delay that was asked for included',
    labels: {},
    of: ['worker'],
    buckets: SEND_SECONDS,
  },
  soundpost_voice_messages_total: {
    type: 'counter',
    help: 'Voice messages of jobs by the status in which they ended',
    labels: { status: voiceStatuses },
    of: ['worker'],
  },
  soundpost_destination_attempts_total: {
    type: 'counter',
    help: 'Tries to put a finished file to its destination; refused: no further try would go better',
    labels: { outcome: destinationTries },
    of: ['worker'],
  },
  soundpost_destination_attempt_duration_seconds: {
    type: 'histogram',
    help: 'How long these tries took',
    labels: {},
    of: ['worker'],
    buckets: JOB_SECONDS,
  },
  soundpost_destinations_total: {
    type: 'counter',
    help: 'Files that were to be put to a destination, by how that ended',
    labels: { status: destinationStatuses },
    of: ['worker'],
  },
  soundpost_transcript_parts_total: {
    type: 'counter',
    help: 'Parts of recordings that were sent to the transcriber; not_now: to be sent again',
    labels: { outcome: transcriptTries },
    of: ['worker'],
  },
  soundpost_transcript_part_duration_seconds: {
    type: 'histogram',
    help: 'How long the transcriber took for them',
    labels: {},
    of: ['worker'],
    buckets: WORK_SECONDS,
  },
  soundpost_transcripts_total: {
    type: 'counter',
    help: 'Transcripts by the status in which they ended',
    labels: { status: transcriptEnds },
    of: ['worker'],
  },
  soundpost_gateway_sends_total: {
    type: 'counter',
    help: 'Voice messages that the gateway was to send, by network and outcome: sent, caller_gone where the caller hung up before, or the code of the error',
    labels: {
      transport: TransportKind.options,
      outcome: ['sent', 'caller_gone', ...Object.keys(gatewayErrorCatalogue)],
    },
    of: ['gateway'],
  },
  soundpost_gateway_send_duration_seconds: {
    type: 'histogram',
    help: 'From a parsed request to the acceptance by the network, waiting and presence included',
    labels: { transport: TransportKind.options },
    of: ['gateway'],
    buckets: SEND_SECONDS,
  },
  soundpost_gateway_instances: {
    type: 'gauge',
    help: 'Instances that live in this process, by network and state of their connection',
    labels: { transport: TransportKind.options, state: ConnectionState.options },
    of: ['gateway'],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

export type MetricTable = typeof metricTable;
