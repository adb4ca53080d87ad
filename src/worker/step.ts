/** What a step is: a function from what the steps before it made to what the next one needs. */
import type { ProcessingStep } from 'soundpost-contract/job';
import type { MediaTools } from '../media/run.ts';
import type { Logger } from '../observe/logger.ts';
import type { Observer } from '../observe/metrics/observer.ts';
import type { Tracing } from '../observe/tracing/tracing.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { JobSeconds } from '../queue/outlook.ts';
import type { ExtractPayload } from '../queue/payloads.ts';
import type { Semaphore } from '../queue/semaphore.ts';
import type { DiskClaim } from '../storage/disk-claim.ts';
import type { DiskSpace } from '../storage/disk-space.ts';
import type { Storage } from '../storage/storage.ts';
import type { PutBackDownloads } from './put-back.ts';

/** What the steps work with; wired in start.ts. */
export interface WorkerServices {
  readonly outbound: Outbound;
  readonly storage: Storage;
  /** For what the storage is asked for: waits while it is away. */
  readonly insist: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
  readonly tools: MediaTools;
  readonly logger: Logger;
  readonly limits: WorkerLimits;
  /** Room for jobs that analyze and encode at the same time. */
  readonly encoding: Semaphore;
  readonly putBack?: PutBackDownloads;
  /** Of the volume of the workspaces. */
  readonly disk: DiskSpace;
  /** Told of the processor time that an attempt used, whatever its end. */
  readonly charge?: (tenant: string, processorSeconds: number) => void;
  /** Told of each job that has ended well, for estimates. */
  readonly noteSeconds?: (seconds: JobSeconds) => void;
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
  /** A folder of this attempt alone; it is removed in every ending. */
  readonly workspace: string;
  /** What this attempt may write into it: to be claimed before it is written. */
  readonly space: DiskClaim;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly services: WorkerServices;
  /** How much of the step is done, 0 … 1. */
  report(step: ProcessingStep, fraction: number): void;
}

export type Step<Input, Output> = (input: Input, context: StepContext) => Promise<Output>;
