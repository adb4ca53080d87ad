/** POST /v1/jobs/{jobId}/destinations/{name}/replay: puts a finished file again (decisions A8). */

import { DeliveryList } from 'soundpost-contract/answers';
import {
  type DestinationReplayRequest as Asked,
  DestinationReplayRequest,
  headerBytes,
  MAX_DESTINATION_HEADER_BYTES,
} from 'soundpost-contract/destination';
import { ServiceError } from 'soundpost-contract/errors';
import { outputsOf } from 'soundpost-contract/output-request';
import { redisNow } from 'soundpost-kit/redis/clock';
import { readPut } from '../../followups/state/destinations.ts';
import { readTranscripts } from '../../followups/state/transcripts.ts';
import {
  type DestinationReplay,
  destinationOf,
  openDestination,
  sealDestination,
} from '../../jobs/destinations.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { destinationId } from '../../jobs/names.ts';
import { filesOf, type StoredFile, type StoredTranscript } from '../../jobs/payloads.ts';
import { refusalOf } from '../address-faults.ts';
import { sendData } from '../answer.ts';
import { ownedJob } from '../job-answer.ts';
import { faultsError, parseRequest, readOptionalJson } from '../request.ts';
import { type ApiServices, keyOf, type Route, type RouteContext } from '../route.ts';
import { deliveriesOf } from './deliveries.ts';

export const destinationRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/jobs/:jobId/destinations/:name/replay',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'replayDestination',
      summary: 'Upload a finished file to its destination again, or to a new address',
      description:
        'The schedule restarts. A pending delivery is attempted at once and keeps its remaining attempts, unless it gets a new address. A new address also needs the scope download. The file must not have expired.',
      tag: 'Webhooks',
      body: { 'application/json': DestinationReplayRequest },
      answers: { 202: { description: 'The file is being uploaded', data: DeliveryList } },
      errors: [
        'INVALID_JOB_ID',
        'JOB_NOT_FOUND',
        'NOT_FOUND',
        'INVALID_REQUEST',
        'JOB_NOT_COMPLETED',
        'FILE_EXPIRED',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
      ],
    },
    handle: replay,
  },
];

async function replay(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const record = await ownedJob(context);
  const asked = parseRequest(DestinationReplayRequest, await readOptionalJson(request, response));
  if (asked.url !== undefined && !keyOf(context).scopes.includes('download')) {
    throw new ServiceError('FORBIDDEN', 'a new address for a file needs a key with the scope download');
  }
  const name = nameOf(context, record);
  const { status, replay: before } = await readPut(services.redis, record.jobId, name);
  const file = await demandFile(record, name, status === 'pending', services);
  const address = await newAddress(record, name, asked, before, services);
  await services.followUps.replayPut(record, name, address, 'subtitles' in file ? file : undefined);
  await services.jobs.replicated('destination', [destinationId(record.jobId, name)]);
  sendData(response, 202, { deliveries: await deliveriesOf(record, services) });
}

/** Throws NOT_FOUND. */
function nameOf({ request }: RouteContext, { payload }: JobRecord): string {
  const name = String(request.params.name);
  const names = outputsOf(payload).map((output) => output.name);
  if (!names.includes(name)) {
    throw new ServiceError(
      'NOT_FOUND',
      `this job has no output of that name; its outputs: ${names.join(', ')}`,
    );
  }
  if (destinationOf(payload, name) === undefined) {
    throw new ServiceError('NOT_FOUND', 'this output has no destination; submit the job with one');
  }
  return name;
}

const LATER = { retryAfterSeconds: 2 };

/** @param isPending then the file is kept past its time */
async function demandFile(
  record: JobRecord,
  name: string,
  isPending: boolean,
  { redis }: ApiServices,
): Promise<StoredFile | StoredTranscript> {
  if (record.status === 'failed') {
    throw new ServiceError('INVALID_REQUEST', 'the job failed, so there is no file to upload');
  }
  if (record.result === null) {
    throw new ServiceError('JOB_NOT_COMPLETED', 'the job has not finished yet', LATER);
  }
  const transcript = (await readTranscripts(redis, record)).find(({ state }) => state.name === name);
  if (transcript?.state.status === 'failed') {
    throw new ServiceError('INVALID_REQUEST', 'the transcript failed, so there is no file to upload');
  }
  const file = transcript?.file ?? filesOf(record.result).find((one) => one.name === name);
  if (record.erased || (file && !isPending && Date.parse(file.expiresAt) <= redisNow())) {
    throw new ServiceError('FILE_EXPIRED', 'the file is no longer available; submit the job again');
  }
  if (file === undefined) {
    throw new ServiceError('JOB_NOT_COMPLETED', 'the transcript is not ready yet', LATER);
  }
  return file;
}

/** Sealed; undefined if the old one stays. Throws INVALID_REQUEST. */
async function newAddress(
  { jobId, payload }: JobRecord,
  name: string,
  { url, headers }: Asked,
  before: DestinationReplay | undefined,
  services: ApiServices,
): Promise<DestinationReplay['address']> {
  if (url === undefined && headers === undefined) return undefined;
  if (headerBytes(headers ?? {}) > MAX_DESTINATION_HEADER_BYTES) {
    throw invalid('headers', 'may have at most 8 KiB together');
  }
  const refusal = url === undefined ? undefined : await refusalOf(services, url, 'destination');
  if (refusal !== undefined) throw invalid('url', refusal);
  const old = openedBefore();
  const target = url ?? old?.url;
  if (target === undefined) {
    throw invalid('url', 'is required: the old address can no longer be decrypted');
  }
  // Headers may hold a secret of the old receiver.
  const isSameOrigin = old !== undefined && new URL(old.url).origin === new URL(target).origin;
  const sent = headers ?? (isSameOrigin ? old.headers : undefined);
  return sealDestination(services.sealer, jobId, name, { url: target, ...(sent && { headers: sent }) });

  function openedBefore() {
    try {
      return openDestination(services.sealer, jobId, payload, name, before);
    } catch {
      return undefined;
    }
  }
}

function invalid(path: string, message: string): ServiceError {
  return faultsError([{ code: 'INVALID_REQUEST', path, message }]);
}
