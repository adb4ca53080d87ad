/** Lists what the board shows of a job, so that a new field of a payload is not shown by accident. */
import { ErrorCode } from 'soundpost-contract/errors';

/** Paths without the index of an array. `opts.telemetry` is not here: it holds the `tracestate` of the caller's systems. */
const SHOWN = [
  /^job\.(id|name|timestamp|processedOn|processedBy|finishedOn|delay|priority|attemptsMade|attemptsStarted|stalledCounter)$/,
  /^job\.opts\.(jobId|attempts|delay|priority|parent\.(id|queue))$/,
  /^job\.progress(\.(progress|currentStep))?$/,
  /^job\.data\.(version|tenant|jobId|batchId|retryOf|deliveryId|instanceId|event|eventTimeMs|sendId|name)$/,
  /^job\.data\.(source\.(type|file|name)|options\.(priority|filename)|outputs?\..*)$/,
  /^job\.data\.(options\.voiceMessage|request)\.(instance|delay)$/,
  /^job\.returnvalue\.(version|status|messageStatus|error\.code|voice\.fitsVoiceBubble)$/,
  /^job\.returnvalue\.(inputFile|outputFile|otherFiles|voice)\.(name|filename|size|duration|format|bitrate|codec|copied|sha256|storageKey|expiresAt)$/,
];
/** Their path may be a secret. */
const HOST_ONLY = /^job\.data\.(url|origin|options\.webhook)$/;
/** A follow-up fails with a sentence; these are ours (packages/outbound/src, src/followups/kinds) and BullMQ's. */
const FAILURES = [
  /^the (receiver|gateway|transcriber) answered \d{3}$/,
  /^the destination answered with status \d{3}(; redirects are not followed)?$/,
  /^the (destination took too long for the whole file|receiver took too long to answer)$/,
  /^(the server could not be reached|the connection broke before the end|no trusted TLS connection could be made)$/,
  /^the (stored file could not be read|record of the job has expired|webhook is switched off)$/,
  /^there is no (transcriber|address for events)$/,
  /^job stalled more than allowable limit$/,
];

/** @param job as BullMQ makes JSON of it */
export function shownJob(job: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // A stack begins with the words of the failure.
  return { ...(shown(job, 'job') as object), failedReason: shownFailure(job.failedReason), stacktrace: [] };
}

/** Leaves out an object of which nothing is listed: the names of its fields may be a caller's words. */
function shown(value: unknown, path: string): unknown {
  if (typeof value === 'object' && value !== null) {
    const inner = Object.entries(value)
      .map(([name, field]) => [name, shown(field, Array.isArray(value) ? path : `${path}.${name}`)] as const)
      .filter(([, field]) => field !== undefined);
    if (inner.length === 0) return undefined;
    return Array.isArray(value) ? inner.map(([, field]) => field) : Object.fromEntries(inner);
  }
  const url = URL.parse(String(value));
  if (HOST_ONLY.test(path)) return url && `${url.origin}/…`;
  if (path === 'job.data.source.url') return url && url.origin + url.pathname;
  return SHOWN.some((listed) => listed.test(path)) ? value : undefined;
}

/** An extraction fails with an error of the contract, whose message and details may quote the caller. */
function shownFailure(reason: unknown): string | undefined {
  if (typeof reason !== 'string' || reason === '') return undefined;
  if (FAILURES.some((known) => known.test(reason))) return reason;
  return ErrorCode.safeParse(/"code":"(\w+)"/.exec(reason)?.[1]).data ?? '…';
}
