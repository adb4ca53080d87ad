/** POST /v1/extract: one job; its video comes by URL, upload or in the request (decisions A4). */

import { parseJson } from 'soundpost-base/json';
import { AcceptedJob } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import { JobRequest, UploadedJobRequest } from 'soundpost-contract/job-request';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { z } from 'zod';
import { parseSubmission } from '../address-faults.ts';
import { type AnswerTurn, answerOnce, bodyHash } from '../answer.ts';
import { invalidForm, takeForm } from '../form.ts';
import { discardAfter, discardUpload } from '../intake.ts';
import { acceptedJob } from '../job-answer.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { readJobJson } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { submitJobs } from '../submission.ts';

export const extractRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/extract',
    access: { by: 'key', scope: 'extract', rate: 'submit' },
    docs: {
      operationId: 'extractAudio',
      summary: 'Extract the audio of one video',
      description:
        'The video is named by a URL, by an upload, or sent along as the part `file` of a multipart form. The job is queued and works in the background: follow it at `statusUrl`, by its events, or let a webhook tell its end.',
      tag: 'Jobs',
      headers: IdempotencyHeaders,
      body: {
        'application/json': JobRequest,
        'multipart/form-data': z.object({
          file: z.file().meta({ description: 'The video, with its filename' }),
          request: UploadedJobRequest,
        }),
      },
      answers: {
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
  const { job, fingerprint, sent } = request.is('multipart/form-data')
    ? await readUploaded(context)
    : await readJob(context);
  let queued = false;
  const submit = async (turn: AnswerTurn) => {
    const submitted = [{ request: job, path: '' }];
    const origin = { batchId: null, retryOf: null };
    const answer = await submitJobs(services, keyOf(context), submitted, origin, turn, (submission) => {
      setRateLimit(response, 'submit', submission.rate);
      return acceptedJob(services.settings, submission);
    });
    queued = true;
    return answer;
  };
  // A refused or repeated request leaves its file unused.
  const unused = (): string | undefined => (queued ? undefined : sent);
  try {
    await answerOnce(context, fingerprint, submit);
  } catch (error) {
    const file = unused();
    if (file !== undefined) {
      await discardAfter(error, services, file);
    }
    throw error;
  }
  const file = unused();
  if (file !== undefined) {
    await discardUpload(services, file);
  }
}

interface ReceivedJob {
  readonly job: JobRequest;
  readonly fingerprint: string;
  /** The upload that came with the request. */
  readonly sent: string | undefined;
}

async function readJob(context: RouteContext): Promise<ReceivedJob> {
  const { request, response, services } = context;
  const body = await readJobJson(request, response);
  const job = await parseSubmission(services, keyOf(context).id, JobRequest, body);
  return { job, fingerprint: JSON.stringify(job), sent: undefined };
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
      job: { source: { type: 'upload', file: upload.file }, ...parsed },
      fingerprint: JSON.stringify([parsed, upload.name, hash?.digest('hex')]),
      sent: upload.file,
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
