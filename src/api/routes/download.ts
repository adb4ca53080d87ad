/** GET and HEAD /v1/download/{jobId}: a file or a range (decisions A4; RFC 9110, RFC 6266). */

import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import { jobFailureCodes, ServiceError } from 'soundpost-contract/errors';
import { formatOf, formats, outputFormats } from 'soundpost-contract/formats';
import { OutputName } from 'soundpost-contract/ids';
import { Waveform } from 'soundpost-contract/job';
import { DownloadHeaders } from 'soundpost-contract/request-headers';
import { fileKindOf, subtitles } from 'soundpost-contract/transcripts';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { WantedFile } from 'soundpost-kit/signing/signatures';
import { type ByteRange, ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import { z } from 'zod';
import { readTranscripts, type TranscriptProgress } from '../../followups/state/transcripts.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { outlookOf } from '../../jobs/outlook.ts';
import { type ExtractResult, filesOf, type StoredFile, type StoredTranscript } from '../../jobs/payloads.ts';
import { sendError, sendFailure } from '../answer.ts';
import { estimateOf, findJob, isExpired, jobIdOf, jobNotFound, ownedJob } from '../job-answer.ts';
import type { ApiServices, Route, RouteContext } from '../route.ts';

const DownloadQuery = z.object({
  rendition: z
    .enum(['output', 'voice'])
    .optional()
    .meta({ description: 'voice: the voice note of a voice message. Default output' }),
  name: OutputName.optional().meta({ description: 'Name of the output. Default: the first' }),
  expires: z
    .string()
    .regex(/^\d+$/)
    .optional()
    .meta({ description: 'Unix seconds; part of a signed address' }),
  signature: z
    .string()
    .optional()
    .meta({ description: 'Signs job, rendition, name and expiry; replaces a key' }),
});

const fileHeaders = {
  ETag: 'The SHA-256 of the file',
  'Content-Disposition': 'attachment, with `filename` and, for names beyond ASCII, `filename*` (RFC 6266)',
  'Accept-Ranges': 'bytes',
};

/** The file, documented for any format. */
const files = {
  ...Object.fromEntries(
    [...Object.values(formats), ...Object.values(subtitles)].map(
      ({ mediaType }) => [mediaType, 'binary'] as const,
    ),
  ),
  [outputFormats.waveform.mediaType]: Waveform,
};

export const downloadRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/download/:jobId',
    access: { by: 'signature', scope: 'download', rate: 'read' },
    docs: {
      operationId: 'downloadAudio',
      summary: 'Download a finished file',
      description:
        'Needs a key with the scope download, or the signed query of `outputFile.url`. A failed job returns 200 with its own code, a failed transcript TRANSCRIPT_FAILED, a pending one 202. A probe has no file and returns 404. HEAD works, too.',
      tag: 'Downloads',
      query: DownloadQuery,
      headers: DownloadHeaders,
      answers: {
        200: {
          description: 'The file',
          content: files,
          failures: [...jobFailureCodes, 'TRANSCRIPT_FAILED'],
          headers: fileHeaders,
        },
        206: {
          description: 'The requested range',
          content: files,
          headers: { ...fileHeaders, 'Content-Range': 'The range of bytes, and the file’s size' },
        },
        302: {
          description:
            'If the operator serves files from the bucket: the file’s presigned address, valid for a minute',
          headers: { Location: 'The address; do not send your key there' },
        },
        304: { description: 'Not modified', headers: { ETag: fileHeaders.ETag } },
        416: {
          description: 'The range is outside the file',
          failures: ['INVALID_REQUEST'],
          headers: { 'Content-Range': 'The file’s size, as bytes */<size>' },
        },
      },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND', 'NOT_FOUND', 'JOB_NOT_COMPLETED', 'FILE_EXPIRED'],
    },
    handle: download,
  },
];

async function download(context: RouteContext): Promise<void> {
  const { response, services } = context;
  const wanted = wantedOf(context);
  const record = context.key ? await ownedJob(context) : await signedJob(context, wanted);
  if (record.error !== null) return sendFailure(response, record.error);
  if (record.result === null) {
    throw new ServiceError('JOB_NOT_COMPLETED', 'the job has not finished yet', {
      retryAfterSeconds: Math.max(2, await remainingSeconds(record, services)),
    });
  }
  const { outputFile, transcripts = [] } = record.result;
  if (outputFile === null && transcripts.length === 0) throw new ServiceError('NOT_FOUND', NO_FILE);
  const transcript = await transcriptOf(record, wanted, services);
  if (transcript !== undefined && record.erased) throw expired();
  if (transcript?.state.error) return sendFailure(response, transcript.state.error);
  if (transcript !== undefined && transcript.file === undefined) {
    throw new ServiceError('JOB_NOT_COMPLETED', 'the transcript is not ready yet', {
      retryAfterSeconds: TRANSCRIPT_LATER_SECONDS,
    });
  }
  const file = transcript?.file;
  const isGone = file === undefined ? isExpired(record) : Date.parse(file.expiresAt) <= redisNow();
  if (isGone) throw expired();
  await sendFile(context, file === undefined ? fileOf(record.result, wanted) : textOf(file));
}

/** As the answer of a request that waited. @returns false where the job does not have one file */
export async function sendOnlyFile(context: RouteContext, record: JobRecord): Promise<boolean> {
  const { result, jobId } = record;
  if (result === null || isExpired(record)) return false;
  if (filesOf(result).length !== 1 || (result.transcripts ?? []).length > 0) return false;
  context.response.setHeader('Soundpost-Job', jobId);
  await sendFile(context, fileOf(result, 'output'));
  return true;
}

const NO_FILE = 'this job is a probe and has no file; its inputFile describes the source';

/** A transcript takes about a minute for some minutes of audio; a webhook serves better. */
const TRANSCRIPT_LATER_SECONDS = 10;

/** Undefined if the request is not for a transcript. */
async function transcriptOf(
  record: JobRecord,
  wanted: WantedFile,
  { redis }: ApiServices,
): Promise<TranscriptProgress | undefined> {
  const { outputFile, transcripts: [first] = [] } = record.result ?? {};
  const only = outputFile === null && wanted === 'output' ? first?.name : undefined;
  const isOne = ({ name }: { name: string }): boolean =>
    name === (typeof wanted === 'object' ? wanted.name : only);
  if (record.result?.transcripts?.some(isOne) !== true) return undefined;
  return (await readTranscripts(redis, record)).find(({ state }) => isOne(state));
}

function wantedOf({ request: { query } }: RouteContext): WantedFile {
  if (query.rendition === 'voice') return 'voice';
  return typeof query.name === 'string' ? { name: query.name } : 'output';
}

async function remainingSeconds({ jobId, progress }: JobRecord, services: ApiServices): Promise<number> {
  return (
    progress?.estimatedTimeRemaining ?? estimateOf(await outlookOf(services.redis, jobId), services.settings)
  );
}

async function signedJob(context: RouteContext, wanted: WantedFile): Promise<JobRecord> {
  const jobId = jobIdOf(context);
  const { expires, signature } = context.request.query;
  const verdict =
    typeof expires === 'string' && typeof signature === 'string'
      ? context.services.signer.verify(jobId, wanted, expires, signature, redisNow())
      : 'invalid';
  if (verdict === 'invalid') {
    throw new ServiceError('FORBIDDEN', 'the signature of this address is not valid');
  }
  if (verdict === 'expired') {
    throw expired();
  }
  const record = await findJob(context.services, jobId);
  if (record === undefined) {
    throw jobNotFound(jobId);
  }
  return record;
}

interface ServedFile {
  readonly storageKey: string;
  /** From the record; undefined where it has none. */
  readonly sizeBytes: number | undefined;
  readonly filename: string;
  readonly mediaType: string;
  /** Without quotes; undefined where no hash is stored. */
  readonly etag: string | undefined;
}

function fileOf(result: ExtractResult, wanted: WantedFile): ServedFile {
  if (wanted !== 'voice') {
    const { storageKey, filename, size, sha256, format } = outputFileOf(result, wanted);
    return {
      storageKey,
      sizeBytes: size,
      filename,
      mediaType: outputFormats[format].mediaType,
      etag: sha256,
    };
  }
  const { voice } = result;
  if (voice === null) {
    throw new ServiceError('NOT_FOUND', 'this job has no voice rendition');
  }
  return {
    storageKey: voice.storageKey,
    sizeBytes: undefined,
    filename: 'voice.ogg',
    mediaType: formatOf('voice').mediaType,
    etag: undefined,
  };
}

function textOf({ storageKey, size, filename, sha256, ...text }: StoredTranscript): ServedFile {
  return { storageKey, sizeBytes: size, filename, mediaType: fileKindOf(text).mediaType, etag: sha256 };
}

function outputFileOf(result: ExtractResult, wanted: Exclude<WantedFile, 'voice'>): StoredFile {
  const files = filesOf(result);
  const file = wanted === 'output' ? files[0] : files.find(({ name }) => name === wanted.name);
  if (file === undefined) {
    const names = [...files, ...(result.transcripts ?? [])].map(({ name }) => name).join(', ');
    throw new ServiceError('NOT_FOUND', `this job has no output of that name; its outputs: ${names}`);
  }
  return file;
}

async function sendFile(
  { request, response, services: { storage, downloadAddress } }: RouteContext,
  file: ServedFile,
): Promise<void> {
  const stored = await storage.stat(file.storageKey);
  if (stored === undefined) {
    throw expired();
  }
  const { sizeBytes } = stored;
  if (file.sizeBytes !== undefined && sizeBytes !== file.sizeBytes) {
    throw new ServiceError('INTERNAL_ERROR', 'the stored file is damaged; retry the job to make it again', {
      cause: new Error(
        `${file.storageKey} has ${sizeBytes} bytes in the storage, ${file.sizeBytes} in its record`,
      ),
    });
  }
  const etag = file.etag === undefined ? undefined : `"${file.etag}"`;
  const headers = {
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'Content-Disposition': contentDisposition(file.filename),
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Content-Type': file.mediaType,
    ...(etag === undefined ? {} : { ETag: etag }),
  };
  if (request.method !== 'POST' && isNoneMatch(request.get('if-none-match'), etag)) {
    const { 'Content-Type': _, ...kept } = headers;
    response.status(304).set(kept).end();
    return;
  }
  const range = requestedRange(request, etag, sizeBytes);
  if (range === 'unsatisfiable') {
    response.set('Content-Range', `bytes */${sizeBytes}`);
    const message = `no byte of the file is in the range; the file has ${sizeBytes} bytes`;
    sendError(response, new ServiceError('INVALID_REQUEST', message), 416);
    return;
  }
  if (downloadAddress !== undefined && mayLeadElsewhere(request, file)) {
    const address = await downloadAddress(file.storageKey, {
      contentDisposition: headers['Content-Disposition'],
      contentType: headers['Content-Type'],
      cacheControl: headers['Cache-Control'],
    });
    response.status(302).set({ Location: address, 'Cache-Control': 'no-store' }).end();
    return;
  }
  const length = range ? range.end - range.start + 1 : sizeBytes;
  // Opened before any header is sent: the file may just have been erased.
  const content = request.method === 'HEAD' ? undefined : await open(storage, file.storageKey, range);
  response.status(range ? 206 : 200).set({ ...headers, 'Content-Length': String(length) });
  if (range) {
    response.set('Content-Range', `bytes ${range.start}-${range.end}/${sizeBytes}`);
  }
  if (content === undefined) {
    response.end();
    return;
  }
  await pipeline(content, response).catch((error: unknown) => {
    // A caller that disconnects midway is not our error.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE')) {
      throw error;
    }
  });
}

/**
 * Whether a redirect to the bucket would give the same answer. It signs for GET only and knows its
 * own tags, not ours; a voice note's reader, a messenger's server, may not follow redirects.
 */
function mayLeadElsewhere(request: RouteContext['request'], { etag }: ServedFile): boolean {
  return request.method === 'GET' && etag !== undefined && request.get('if-range') === undefined;
}

async function open(storage: Storage, storageKey: string, range: ByteRange | undefined): Promise<Readable> {
  try {
    return await storage.read(storageKey, range);
  } catch (error) {
    throw error instanceof ObjectNotFound ? expired() : error;
  }
}

/** Only for GET (RFC 9110 14.2), and with If-Range only for the file it names (13.1.5). */
function requestedRange(
  request: RouteContext['request'],
  etag: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const condition = request.get('if-range');
  const applies = request.method === 'GET' && (condition === undefined || condition === etag);
  return applies ? rangeOf(request.get('range'), sizeBytes) : undefined;
}

function expired(): ServiceError {
  return new ServiceError('FILE_EXPIRED', 'the file is no longer available');
}

// Conditional and partial downloads (RFC 9110, 13 and 14).

/** One byte range. Several ranges or another unit get the whole file (RFC 9110 14.2). */
const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** The bytes that a Range field selects; undefined means all. */
function rangeOf(field: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = ONE_RANGE.exec(field ?? '') ?? [];
  if (first === '' && last === '') {
    return undefined;
  }
  // A suffix that is longer than the file is the whole file (RFC 9110 14.1.2).
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) {
    return undefined;
  }
  return start > end ? 'unsatisfiable' : { start, end };
}

/**
 * Whether If-None-Match names the entity, by weak comparison (RFC 9110 13.1.2). The request's
 * Cache-Control is ignored: it is meant for caches, and `fetch` adds no-cache to every such field.
 * @param etag with its quotes; undefined where the file has none
 */
function isNoneMatch(field: string | undefined, etag: string | undefined): boolean {
  if (field === undefined || etag === undefined) {
    return false;
  }
  return field.trim() === '*' || field.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
