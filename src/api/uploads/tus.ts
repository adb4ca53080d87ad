/**
 * tus 1.0 (https://tus.io/protocols/resumable-upload): translates requests to @tus/server and its
 * answers and refusals to ours.
 */
import { Readable } from 'node:stream';
import { ERRORS, Server } from '@tus/server';
import { ServiceError } from 'soundpost-contract/errors';
import { bodyStream } from 'soundpost-kit/http/body-stream';
import { sendError } from '../answer.ts';
import { fileErrors } from '../form.ts';
import { uploadNotFound, withRoom } from '../intake.ts';
import { type ApiSettings, keyOf, type RouteContext } from '../route.ts';
import { Checksum, TusRefusal } from './checksum.ts';
import { speaksTus, TUS_VERSION } from './tus-protocol.ts';
import { TusStore } from './tus-store.ts';
import { GIVE_WAY_MS, UploadLocker } from './upload-locker.ts';

const CHUNK_TYPE = 'application/offset+octet-stream';
const HTTP_PRECONDITION_FAILED = 412;
const RETRY_AFTER_SECONDS = 2;

/** The only request headers that @tus/server gets. */
const FORWARDED = [
  'content-length',
  'content-type',
  'tus-resumable',
  'upload-concat',
  'upload-defer-length',
  'upload-length',
  'upload-metadata',
  'upload-offset',
];

/** Answer headers that we set ourselves. */
const OWN_HEADERS = new Set(['content-length', 'content-type', 'tus-resumable']);

type TusMethod = 'POST' | 'HEAD' | 'PATCH' | 'DELETE';

/**
 * Answers a request that speaks tus; a refusal has our envelope and the status of tus.
 * @param file the upload of the path, or the id for a new one
 * @param location absolute address of the upload
 * @param reply sends the body, if any, after the tus headers are set
 */
export async function answerTus(
  context: RouteContext,
  method: TusMethod,
  { file, location }: { readonly file: string; readonly location: string },
  reply?: () => Promise<void>,
): Promise<void> {
  const { response } = context;
  if (speaksTus(context)) {
    response.set('Tus-Resumable', TUS_VERSION);
  }
  try {
    demandProtocol(context, method);
    const call = () => callTus(context, method, file, location);
    const takesBytes = method === 'POST' || method === 'PATCH';
    const answer = await (takesBytes ? withRoom(context, call, roomOf(context, method)) : call());
    for (const [name, value] of answer.headers) {
      // CORS is decided for all routes in one place.
      if (!name.startsWith('access-control-') && !OWN_HEADERS.has(name)) {
        response.set(name, value);
      }
    }
    if (reply === undefined) {
      response.status(answer.status).end();
    } else {
      await reply();
    }
  } catch (error) {
    if (!(error instanceof TusRefusal)) {
      throw error;
    }
    sendError(response, error.refusal, error.httpStatus);
  }
}

/** An upload starts only if all of it fits; its space is reserved while in progress. */
function roomOf({ request }: RouteContext, method: TusMethod): number {
  return Number(request.get(method === 'POST' ? 'upload-length' : 'content-length') ?? 0) || 0;
}

/** Throws what tus refuses before it reads an upload, and where @tus/server deviates from tus. */
function demandProtocol({ request, response }: RouteContext, method: TusMethod): void {
  if (method !== 'DELETE' && request.get('tus-resumable') !== TUS_VERSION) {
    response.set('Tus-Version', TUS_VERSION);
    throw new TusRefusal(
      HTTP_PRECONDITION_FAILED,
      new ServiceError('INVALID_REQUEST', `send Tus-Resumable: ${TUS_VERSION}`),
    );
  }
  if (method !== 'PATCH') {
    return;
  }
  if (request.get('content-type') !== CHUNK_TYPE) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', `a chunk needs the Content-Type ${CHUNK_TYPE}`);
  }
  if (request.get('upload-offset') === undefined) {
    throw new ServiceError('INVALID_REQUEST', 'a chunk needs Upload-Offset');
  }
}

async function callTus(
  context: RouteContext,
  method: TusMethod,
  file: string,
  location: string,
): Promise<Response> {
  const { request, services } = context;
  const header = request.get('upload-checksum');
  const checksum = header === undefined ? undefined : Checksum.parse(header);
  let failure: unknown;
  const server = new Server({
    path: '/',
    datastore: new TusStore(services, keyOf(context).id, checksum),
    locker: new UploadLocker(services.redis, services.logger),
    lockDrainTimeout: GIVE_WAY_MS,
    maxSize: services.settings.maxInputBytes,
    namingFunction: () => file,
    getFileIdFromRequest: () => file,
    generateUrl: () => location,
    allowedOrigins: () => false,
    onResponseError(_request, error) {
      failure = error;
      return undefined;
    },
  });
  const hasBody = method === 'PATCH' || (method === 'POST' && request.get('content-type') === CHUNK_TYPE);
  const body = hasBody ? bodyStream(request, fileErrors(services.settings.maxInputBytes)) : undefined;
  try {
    const answer = await server.handleWeb(asWebRequest(context, method, body));
    if (failure !== undefined || answer.status >= 400) {
      throw translated(
        failure ?? { status_code: answer.status, body: await answer.text() },
        services.settings,
      );
    }
    return answer;
  } finally {
    body?.destroy();
  }
}

function asWebRequest({ request }: RouteContext, method: TusMethod, body: Readable | undefined): Request {
  const headers = new Headers({ 'Tus-Resumable': TUS_VERSION });
  for (const name of FORWARDED) {
    const value = request.get(name);
    if (value !== undefined) {
      headers.set(name, value);
    }
  }
  // The address is unused: our routes have already chosen the upload.
  const url = 'http://upload.invalid/';
  return body === undefined
    ? new Request(url, { method, headers })
    : new Request(url, { method, headers, body: asWebStream(body), duplex: 'half' });
}

function asWebStream(body: Readable): ReadableStream {
  const strategy = new ByteLengthQueuingStrategy({ highWaterMark: body.readableHighWaterMark });
  return Readable.toWeb(body, { strategy }) as ReadableStream;
}

/** @tus/server throws objects with a status and a text, not errors. */
function translated(failure: unknown, { maxInputBytes }: ApiSettings): unknown {
  if (typeof failure !== 'object' || failure === null || !('status_code' in failure)) {
    return failure;
  }
  const status = Number(failure.status_code);
  switch (status) {
    case ERRORS.FILE_NOT_FOUND.status_code:
    case ERRORS.FILE_NO_LONGER_EXISTS.status_code:
      return uploadNotFound();
    case ERRORS.ERR_MAX_SIZE_EXCEEDED.status_code:
      return new ServiceError(
        'PAYLOAD_TOO_LARGE',
        `the upload exceeds its Upload-Length, or the limit of ${maxInputBytes} bytes`,
      );
    case ERRORS.FILE_WRITE_ERROR.status_code:
      return new ServiceError('SERVICE_UNAVAILABLE', 'the bytes could not be stored', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
        cause: failure,
      });
    default: {
      const text = 'body' in failure ? String(failure.body).trim() : '';
      return new TusRefusal(
        status,
        new ServiceError('INVALID_REQUEST', text || 'the tus request is not valid'),
      );
    }
  }
}
