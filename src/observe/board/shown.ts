/**
 * What the board shows of a job: what is listed here, and nothing else. Addresses come without what may be a secret in them (credentials, paths and
 * queries of webhooks, queries of sources), people without their numbers and words.
 */
import { z } from 'zod';
import { ErrorCode } from 'soundpost-contract/errors';

const withoutQuery = z
  .string()
  .transform((text) => address(text, ({ origin, pathname }) => origin + pathname));
const hostOnly = z.string().transform((text) => address(text, ({ origin }) => `${origin}/…`));
const hidden = z.unknown().transform((value) => (value === undefined ? undefined : '…'));

function address(text: string, shown: (url: URL) => string): string {
  const url = URL.parse(text);
  return url === null ? '…' : shown(url);
}

const Voice = z.object({ instance: z.string(), number: hidden, delay: z.number().optional() }).partial();

/** All payloads in one, so every field is optional. */
const Data = z
  .object({
    version: z.number(),
    tenant: z.string(),
    jobId: z.string(),
    batchId: z.string().nullable(),
    retryOf: z.string().nullable(),
    source: z.object({ type: z.string(), url: withoutQuery, file: z.string(), name: z.string() }).partial(),
    output: z.looseObject({}),
    outputs: z.array(z.looseObject({})),
    options: z
      .object({ priority: z.string(), filename: z.string(), webhook: hostOnly, voiceMessage: Voice })
      .partial(),
    deliveryId: z.string(),
    instanceId: z.string(),
    event: z.string(),
    url: hostOnly,
    eventTimeMs: z.number(),
    sendId: z.string(),
    name: z.string(),
    origin: hostOnly,
    request: Voice,
  })
  .partial();

const File = z
  .object({
    name: z.string(),
    filename: z.string(),
    size: z.number(),
    duration: z.number(),
    format: z.string(),
    bitrate: z.string(),
    codec: z.string(),
    copied: z.boolean(),
    sha256: z.string(),
    storageKey: z.string(),
    expiresAt: z.string(),
  })
  .partial();

const Result = z
  .object({
    version: z.number(),
    inputFile: File,
    outputFile: File,
    otherFiles: z.array(File),
    voice: File.extend({ fitsVoiceBubble: z.boolean().optional() }).nullable(),
    status: z.union([z.string(), z.number()]),
    messageStatus: z.string().nullable(),
    error: z.object({ code: z.string() }).nullable(),
  })
  .partial();

const Progress = z.object({ progress: z.number(), currentStep: z.string() }).partial();

/** What BullMQ has set of a job by itself: times and numbers. */
const OF_BULLMQ = [
  ...['id', 'name', 'timestamp', 'processedOn', 'processedBy', 'finishedOn', 'delay', 'priority'],
  ...['attemptsMade', 'attemptsStarted', 'stalledCounter'],
];

/** Of its options; `telemetry` holds what the caller's systems wrote into `tracestate`. */
const Options = z
  .object({
    jobId: z.string(),
    attempts: z.number(),
    delay: z.number(),
    priority: z.number(),
    parent: z.object({ id: z.string(), queue: z.string() }),
  })
  .partial();

/** Of extractions the failure is an error of the contract, whose message and details may quote the caller. */
const Failure = z.object({ code: ErrorCode });
/** Of announcements it is a sentence; these are ours (src/outbound, src/worker/completion) and BullMQ's. */
const FAILURES = [
  /^the (receiver|gateway) answered \d{3}$/,
  /^the destination answered with status \d{3}(; redirects are not followed)?$/,
  /^the destination took too long for the whole file$/,
  /^(there is no transcriber|the transcriber answered \d{3})$/,
  /^the stored file could not be read$/,
  /^the (receiver took too long to answer|server could not be reached|connection broke before the end)$/,
  /^no trusted TLS connection could be made$/,
  /^the (record of the job has expired|webhook is switched off)$/,
  /^there is no address for events$/,
  /^job stalled more than allowable limit$/,
];

const shownData = showing(Data);
const shownResult = showing(Result);
const shownOptions = showing(Options);
export const shownProgress = showing(Progress);

/** @param job as BullMQ makes JSON of it */
export function shownJob(job: Readonly<Record<string, unknown>>): object {
  return {
    ...Object.fromEntries(OF_BULLMQ.map((field) => [field, job[field]])),
    data: shownData(job.data),
    progress: shownProgress(job.progress),
    returnvalue: shownResult(job.returnvalue),
    opts: shownOptions(job.opts),
    failedReason: shownFailure(job.failedReason),
    // Begins with the failure's words; the log has it.
    stacktrace: [],
  };
}

function shownFailure(reason: unknown): string | undefined {
  if (typeof reason !== 'string' || reason === '') return undefined;
  if (FAILURES.some((known) => known.test(reason))) return reason;
  const failure = Failure.safeParse(parsed(reason));
  return failure.success ? failure.data.code : '…';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function showing(schema: z.ZodType): (value: unknown) => unknown {
  return (value) => {
    if (typeof value !== 'object' || value === null) return typeof value === 'number' ? value : null;
    const shown = schema.safeParse(value);
    return shown.success ? shown.data : 'in a form that is not known';
  };
}
