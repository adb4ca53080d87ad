/** POST /v1/extract: one job; its video comes by URL, upload or in the request (decisions A4). */

import { Readable } from 'node:stream';
import { parseJson } from 'soundpost-base/json';
import { AcceptedJob } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import { type BatchJobRequest, JobRequest, UploadedJobRequest } from 'soundpost-contract/job-request';
import { SubmitHeaders } from 'soundpost-contract/request-headers';
import { z } from 'zod';
import { parseSubmission } from '../address-faults.ts';
import { type AnswerTurn, bodyHash } from '../answer.ts';
import { fileErrors, invalidForm, takeForm } from '../form.ts';
import { discardAfter, storeUpload, withRoom } from '../intake.ts';
import { acceptedJob } from '../job-answer.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { readJobJson } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { submitJobs } from '../submission.ts';
import { answerJob, endedAnswer } from '../wait.ts';

export const extractRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/extract',
    access: { by: 'key', scope: 'extract', rate: 'submit' },
    docs: {
      operationId: 'extractAudio',
      summary: 'Extract the audio of one video',
      description:
        'The source is a URL, an upload, the part `file` of a multipart form, or base64 of at most 8 MiB. The job runs in the background: poll `statusUrl`, watch its events, or use a webhook. With `Prefer: wait=30`, the answer comes when the job has ended. If `Accept` prefers `audio/*` or `application/octet-stream` and the key has the scope download, the answer is the file.',
      tag: 'Jobs',
      headers: SubmitHeaders,
      body: {
        'application/json': JobRequest,
        'multipart/form-data': z.object({
          file: z.file().meta({ description: 'The video, with its file name' }),
          request: UploadedJobRequest,
        }),
      },
      answers: {
        200: endedAnswer,
        202: {
          description: 'The job is queued',
          data: AcceptedJob,
          headers: {
            Location: 'The statusUrl',
            'Retry-After': 'Seconds after which asking for the status pays',
          },
        },
      },
      errors: [
        'INVALID_REQUEST',
        'INVALID_SOURCE',
        'INVALID_OUTPUT',
        'INVALID_WEBHOOK',
        'INVALID_VIDEO',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
        'QUEUE_FULL',
      ],
    },
    handle: extract,
  },
];

async function extract(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const received = request.is('multipart/form-data') ? await readUploaded(context) : await readJob(context);
  let queued = false;
  const submit = async (turn: AnswerTurn) => {
    const submitted = [{ request: await received.job(), path: '' }];
    const answer = await submitJobs(services, keyOf(context), submitted, null, turn, (submission) => {
      setRateLimit(response, 'submit', submission.rate);
      return acceptedJob(services.settings, submission);
    });
    queued = true;
    return answer;
  };
  const letGo = async (error?: unknown): Promise<void> => {
    received.release();
    // A refused or repeated request leaves its file unused.
    const unused = queued ? undefined : received.sent();
    if (unused !== undefined) await discardAfter(error, services, unused);
  };
  try {
    await answerJob(context, received.fingerprint, submit, letGo);
  } catch (error) {
    await letGo(error);
    throw error;
  }
  await letGo();
}

interface ReceivedJob {
  /** Stores the video unless it is stored already. */
  readonly job: () => Promise<BatchJobRequest>;
  readonly fingerprint: string;
  /** The upload that came with the request, once it is stored. */
  readonly sent: () => string | undefined;
  /** Frees a video that is not stored. */
  readonly release: () => void;
}

async function readJob(context: RouteContext): Promise<ReceivedJob> {
  const { services } = context;
  const { body, release } = await readJobJson(context);
  try {
    const { source, ...asked } = await parseSubmission(services, keyOf(context).id, JobRequest, body);
    if (source.type === 'data') return dataJob(context, source.data, asked, release);
    const job = { source, ...asked };
    release();
    return {
      job: async () => job,
      fingerprint: JSON.stringify(job),
      sent: () => undefined,
      release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

/** Writes the video only when the job is queued, not for a retry or a job that has to wait. */
function dataJob(
  context: RouteContext,
  data: string,
  asked: Omit<BatchJobRequest, 'source'>,
  release: () => void,
): ReceivedJob {
  const { services } = context;
  // Its form was checked. Node skips whitespace and reads both alphabets.
  let bytes: Buffer | undefined = Buffer.from(data.slice(data.indexOf(',') + 1), 'base64');
  let file: string | undefined;
  const { maxInputBytes } = services.settings;
  if (bytes.length > maxInputBytes) throw fileErrors(maxInputBytes).tooLarge();
  const hash = bodyHash(context)?.update(bytes).digest('hex');
  return {
    job: async () => {
      if (bytes === undefined) throw new Error('the video of the request was forgotten');
      const sent = { name: '', content: Readable.from([bytes]), announcedBytes: bytes.length };
      const store = () => storeUpload(services, keyOf(context).id, sent);
      ({ file } = await withRoom(context, store, bytes.length));
      bytes = undefined;
      release();
      return { source: { type: 'upload', file }, ...asked };
    },
    fingerprint: JSON.stringify([asked, hash]),
    sent: () => file,
    release: () => {
      bytes = undefined;
      release();
    },
  };
}

async function readUploaded(context: RouteContext): Promise<ReceivedJob> {
  const { services } = context;
  const hash = bodyHash(context);
  const { upload, fields } = await takeForm(context, hash, { textParts: ['request'] });
  try {
    const tenant = keyOf(context).id;
    const request = parseField(fields.get('request'));
    const parsed = await parseSubmission(services, tenant, UploadedJobRequest, request);
    return {
      job: async () => ({ source: { type: 'upload', file: upload.file }, ...parsed }),
      fingerprint: JSON.stringify([parsed, upload.name, hash?.digest('hex')]),
      sent: () => upload.file,
      release: () => undefined,
    };
  } catch (error) {
    await discardAfter(error, services, upload.file);
    throw error;
  }
}

function parseField(text: string | undefined): unknown {
  if (text === undefined) {
    throw invalidForm('request', 'is required');
  }
  try {
    return parseJson(text);
  } catch (cause) {
    throw new ServiceError('INVALID_REQUEST', 'the part request is not valid JSON', { cause });
  }
}
