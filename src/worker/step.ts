/** A step turns what the steps before it made into what the next one needs. */

import type { Logger } from 'soundpost-base/logger';
import type { ProcessingStep } from 'soundpost-contract/job';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import type { DiskClaim } from 'soundpost-kit/storage/disk-claim';
import type { DiskSpace } from 'soundpost-kit/storage/disk-space';
import type { Storage } from 'soundpost-kit/storage/storage';
import type { MediaTools } from 'soundpost-media/run';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { EarlyHearing, EarlyRecording } from '../followups/transcripts/early.ts';
import type { JobSeconds } from '../jobs/outlook.ts';
import type { ExtractPayload } from '../jobs/payloads.ts';
import type { Semaphore } from '../jobs/semaphore.ts';
import type { StreamRequests } from '../jobs/stream-requests.ts';

/** What the steps use; wired in start.ts. */
export interface WorkerServices {
  readonly outbound: Outbound;
  readonly storage: Storage;
  /** For storage operations: retries while the storage is down. */
  readonly retryUntilUp: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
  readonly tools: MediaTools;
  /** Opens the headers of sources. */
  readonly sealer: Sealer;
  readonly logger: Logger;
  readonly limits: WorkerLimits;
  /** Limits how many jobs analyze and encode at the same time. */
  readonly encoding: Semaphore;
  /** Limits what playlists and manifests cause at other servers; default: nothing does. */
  readonly streamRequests?: Pick<StreamRequests, 'of'>;
  /** The workspaces' volume. */
  readonly disk: DiskSpace;
  /** Charges a key with processor time, perhaps 0. Resolves with whether it is over its budget. */
  readonly charge?: (tenant: string, processorSeconds: number) => Promise<boolean>;
  /** Gets the duration of each completed job, for estimates. */
  readonly noteSeconds?: (seconds: JobSeconds) => void;
  /** Default: recordings are heard by their follow-up alone. */
  readonly hearEarly?: (recording: EarlyRecording) => Promise<EarlyHearing | undefined>;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

interface WorkerLimits {
  readonly maxInputBytes: number;
  readonly maxAudioSeconds: number;
  /** How long a result is kept. */
  readonly outputTtlSeconds: number;
}

export interface StepContext {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  /** Names this attempt's files. */
  readonly attemptToken: string;
  /** A folder for this attempt only; removed however it ends. */
  readonly workspace: string;
  /** Disk space of this attempt: claim it before writing. */
  readonly space: DiskClaim;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly services: WorkerServices;
  /** How much of the step is done, 0 … 1. */
  report(step: ProcessingStep, fraction: number): void;
}

export type Step<Input, Output> = (input: Input, context: StepContext) => Promise<Output>;
