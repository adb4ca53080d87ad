/**
 * /v1/uploads: files that jobs can name as their source (decisions A5), sent as a form, as a raw
 * body, or in chunks by tus 1.0. All end in the same store.
 *
 * Every request here counts as a read: a file's many chunks must not use up the submissions that it
 * is uploaded for.
 */
import type { Hash } from 'node:crypto';
import { parse as parseContentDisposition } from 'content-disposition';
import type { Request } from 'express';
import { UploadAnswer } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import { UploadId } from 'soundpost-contract/ids';
import { IdempotencyHeaders, TusChunkHeaders, TusUploadHeaders } from 'soundpost-contract/request-headers';
import { bodyStream } from 'soundpost-kit/http/body-stream';
import { z } from 'zod';
import { newUploadId, readUpload, type Upload } from '../../jobs/uploads/record.ts';
import { answerOnce, bodyHash, sendData } from '../answer.ts';
import { fileErrors, takeForm } from '../form.ts';
import { discardAfter, discardUpload, storeUpload, uploadNotFound, withRoom } from '../intake.ts';
import { type Access, keyOf, type Route, type RouteContext } from '../route.ts';
import { speaksTus, tusDiscovery } from '../uploads/tus-protocol.ts';

const MAX_METADATA_BYTES = 4096;

const access: Access = { by: 'key', scope: 'extract', rate: 'read' };

const tusAnswerHeaders = {
  'Upload-Offset': 'tus: how many bytes have arrived',
  'Upload-Expires': 'tus: when an unfinished upload expires',
};

export const uploadRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/uploads',
    access,
    docs: {
      operationId: 'createUpload',
      summary: 'Upload a file for jobs to use',
      description:
        'Send the file as the part `file` of a multipart form, or as the body, with its Content-Type and its name in Content-Disposition. With `Tus-Resumable: 1.0.0`, the request creates a resumable tus upload instead; send its bytes by PATCH to `Location`. Any number of jobs can use the upload until `expiresAt`, and each keeps it until it has ended.',
      tag: 'Uploads',
      headers: TusUploadHeaders.extend(IdempotencyHeaders.shape),
      body: {
        'multipart/form-data': z.object({
          file: z.file().meta({ description: 'The video, with its file name' }),
        }),
        'application/octet-stream': 'binary',
        'video/*': 'binary',
        'audio/*': 'binary',
        'application/offset+octet-stream': 'binary',
      },
      answers: {
        201: {
          description: 'The upload, or the beginning of a tus upload',
          data: UploadAnswer,
          headers: { Location: 'The address of the upload', ...tusAnswerHeaders },
        },
      },
      errors: [
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
        'INVALID_REQUEST',
        'INVALID_VIDEO',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
      ],
    },
    discovery: tusDiscovery,
    handle: createUpload,
  },
  {
    method: 'get',
    path: '/v1/uploads/:uploadId',
    access,
    docs: {
      operationId: 'getUpload',
      summary: 'Read an upload',
      description:
        'HEAD with `Tus-Resumable: 1.0.0` returns tus’ `Upload-Offset`, from which to resume, and `Upload-Length`.',
      tag: 'Uploads',
      answers: { 200: { description: 'The upload', data: UploadAnswer, headers: tusAnswerHeaders } },
      errors: ['UPLOAD_NOT_FOUND'],
    },
    discovery: tusDiscovery,
    handle: getUpload,
  },
  {
    method: 'patch',
    path: '/v1/uploads/:uploadId',
    access,
    docs: {
      operationId: 'appendToUpload',
      summary: 'Send the next bytes of a tus upload',
      description:
        'Errors follow tus 1.0: 409 for a wrong `Upload-Offset`, 412 for another version of tus, 423 while another request writes to the upload, 460 for a wrong `Upload-Checksum`. If the file is not media, its last chunk returns 400 and the upload is deleted.',
      tag: 'Uploads',
      headers: TusChunkHeaders,
      body: { 'application/offset+octet-stream': 'binary' },
      answers: {
        204: { description: 'The bytes are stored', headers: tusAnswerHeaders },
        408: { description: 'Fewer than 30 KiB arrived in 30 seconds; resume from `Upload-Offset`' },
        409: {
          description: 'tus: `Upload-Offset` is wrong',
          failures: ['INVALID_REQUEST'],
        },
        460: { description: 'tus: `Upload-Checksum` is wrong', failures: ['INVALID_REQUEST'] },
      },
      errors: [
        'INVALID_REQUEST',
        'INVALID_VIDEO',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
        'UPLOAD_NOT_FOUND',
      ],
    },
    handle: (context) => answerOwned(context, 'PATCH'),
  },
  {
    method: 'delete',
    path: '/v1/uploads/:uploadId',
    access,
    docs: {
      operationId: 'deleteUpload',
      summary: 'Delete an upload',
      description:
        'New jobs cannot use it any more. Jobs that already use it go on, and the bytes are removed when the last one has ended. With `Tus-Resumable`, the answer is 204.',
      tag: 'Uploads',
      answers: {
        200: { description: 'The deleted upload', data: UploadAnswer },
        204: { description: 'tus: the upload is deleted' },
      },
      errors: ['UPLOAD_NOT_FOUND'],
    },
    handle: (context) => answerOwned(context, 'DELETE'),
  },
];

async function createUpload(context: RouteContext): Promise<void> {
  const { request } = context;
  if (speaksTus(context)) {
    demandShortMetadata(request);
    const file = newUploadId();
    const location = locationOf(context, file);
    const { answerTus } = await import('../uploads/tus.ts');
    await answerTus(context, 'POST', { file, location }, async () => {
      answer(context, 201, await ownedUpload(context, file));
    });
    return;
  }
  const hash = bodyHash(context);
  const upload = request.is('multipart/form-data')
    ? (await takeForm(context, hash, { isKept: true })).upload
    : await takeBody(context, hash);
  let isAnswer = false;
  try {
    await answerOnce(context, `${upload.name} ${hash?.digest('hex')}`, async () => {
      isAnswer = true;
      return {
        httpStatus: 201,
        headers: { Location: locationOf(context, upload.file) },
        data: answerOf(upload),
      };
    });
  } catch (error) {
    if (!isAnswer) {
      await discardAfter(error, context.services, upload.file);
    }
    throw error;
  }
  // A retry: only the first upload is kept.
  if (!isAnswer) {
    await discardUpload(context.services, upload.file);
  }
}

/** It is stored in Redis with the upload. */
function demandShortMetadata(request: Request): void {
  if (Buffer.byteLength(request.get('upload-metadata') ?? '') > MAX_METADATA_BYTES) {
    throw new ServiceError('INVALID_REQUEST', `Upload-Metadata may have at most ${MAX_METADATA_BYTES} bytes`);
  }
}

/** Types that clients send by mistake or by default, never for media. */
const NO_MEDIA = ['application/json', 'urlencoded', 'multipart', 'text/*'];

async function takeBody(context: RouteContext, hash: Hash | undefined): Promise<Upload> {
  const { request, services } = context;
  if (request.get('content-type') === undefined || request.is(NO_MEDIA)) {
    throw new ServiceError(
      'UNSUPPORTED_MEDIA_TYPE',
      'send multipart/form-data, or the file itself under its own type, such as video/mp4',
    );
  }
  if (request.get('content-encoding') !== undefined) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'send the file without Content-Encoding');
  }
  const { maxInputBytes } = services.settings;
  return withRoom(context, () =>
    storeUpload(services, keyOf(context).id, {
      name: nameOf(request),
      announcedBytes: Number(request.get('content-length') ?? 0),
      content: bodyStream(request, fileErrors(maxInputBytes), maxInputBytes),
      hash,
    }),
  );
}

/** Empty if Content-Disposition names none. */
function nameOf(request: Request): string {
  return parseContentDisposition(request.get('content-disposition') ?? '').parameters.filename ?? '';
}

async function getUpload(context: RouteContext): Promise<void> {
  if (context.request.method === 'HEAD' && speaksTus(context)) {
    await answerOwned(context, 'HEAD');
    return;
  }
  answer(context, 200, await ownedUpload(context));
}

/** Also without tus headers: a DELETE must wait for the lock of an upload in progress. */
async function answerOwned(context: RouteContext, method: 'HEAD' | 'PATCH' | 'DELETE'): Promise<void> {
  const upload = await ownedUpload(context);
  const target = { file: upload.file, location: locationOf(context, upload.file) };
  const plain = async (): Promise<void> => answer(context, 200, upload);
  const { answerTus } = await import('../uploads/tus.ts');
  await answerTus(context, method, target, speaksTus(context) ? undefined : plain);
}

/** Throws UPLOAD_NOT_FOUND for a malformed, unknown, foreign or expired id alike. */
async function ownedUpload(
  context: RouteContext,
  file: unknown = context.request.params.uploadId,
): Promise<Upload> {
  const parsed = UploadId.safeParse(file);
  const upload = parsed.success
    ? await readUpload(context.services.redis, keyOf(context).id, parsed.data)
    : undefined;
  if (upload === undefined) {
    throw uploadNotFound();
  }
  return upload;
}

/** With the prefix that the caller used. */
function locationOf({ request, services }: RouteContext, file: string): string {
  return `${services.settings.publicUrl}${request.baseUrl}/v1/uploads/${file}`;
}

function answer({ response }: RouteContext, httpStatus: 200 | 201, upload: Upload): void {
  response.set('Cache-Control', 'no-store');
  sendData(response, httpStatus, answerOf(upload));
}

function answerOf(upload: Upload): UploadAnswer {
  return {
    file: upload.file,
    size: upload.sizeBytes,
    expiresAt: new Date(upload.expiresAtMs).toISOString(),
    complete: upload.state === 'complete',
  };
}
