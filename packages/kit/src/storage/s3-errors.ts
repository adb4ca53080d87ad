/** Translates S3 and network errors into those of the file storage, with a remedy. */
import { StorageUnavailable } from './storage.ts';

/** Details for the messages. */
interface Place {
  readonly bucket: string;
  readonly endpoint?: string | undefined;
  readonly region: string;
}

interface SdkError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  readonly code?: unknown;
  readonly Region?: unknown;
}

type Reason = readonly [code: string, reason: string];

const DENIED = new Set([
  'AccessDenied',
  'AllAccessDisabled',
  'Forbidden',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'CredentialsProviderError',
]);
const OTHER_REGION = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
]);
/** MinIO's names for a full disk or quota. */
const FULL = new Set(['XMinioStorageFull', 'XMinioAdminBucketQuotaExceeded', 'QuotaExceeded']);

/** Whether the object does not exist. HEAD has no body with details. */
export function isMissing(error: unknown): boolean {
  return isSdkError(error) && ['NoSuchKey', 'NotFound'].includes(error.name);
}

/** Whether the multipart upload does not exist: never did, was aborted, or is complete. */
export function isNoUpload(error: unknown): boolean {
  return isSdkError(error) && error.name === 'NoSuchUpload';
}

export function hasStatus(error: unknown, httpStatus: number): boolean {
  return isSdkError(error) && error.$metadata?.httpStatusCode === httpStatus;
}

/** Our own error in place of the SDK's; other errors stay as they are. */
export function translated(error: unknown, operation: string, place: Place): unknown {
  if (!isSdkError(error) || error.name === 'AbortError') {
    return error;
  }
  const [code, reason] = reasonOf(error, place);
  const where = `bucket "${place.bucket}" at ${place.endpoint ?? `Amazon S3, ${place.region}`}`;
  const requestId = error.$metadata?.requestId;
  const id = requestId === undefined ? '' : ` (request ${requestId})`;
  return new StorageUnavailable(code, `S3 ${operation}, ${where}: ${reason}${id}`, error);
}

function reasonOf(error: SdkError, { region }: Place): Reason {
  const { name, message } = error;
  const status = error.$metadata?.httpStatusCode;
  // Missing objects were handled before, so NotFound is the bucket; HEAD has no body with details.
  if (name === 'NoSuchBucket' || name === 'NotFound') {
    return ['ENOENT', 'there is no such bucket: create it, or correct STORAGE_URL'];
  }
  if (OTHER_REGION.has(name) || status === 301) {
    const theirs = error.Region ?? error.$response?.headers?.['x-amz-bucket-region'];
    const known = typeof theirs === 'string' ? `is in the region ${theirs}` : 'is in another region';
    return ['EACCES', `the bucket ${known}, but S3_REGION is ${region}`];
  }
  if (name === 'RequestTimeTooSkewed') {
    return ['EACCES', 'the clocks of this machine and the server differ: set this machine’s by NTP'];
  }
  if (DENIED.has(name) || status === 401 || status === 403) {
    return [
      'EACCES',
      `access is denied (${name}): check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and what they are allowed, see docs/operations/storage.md "Bucket"`,
    ];
  }
  if (FULL.has(name) || status === 507) {
    return ['ENOSPC', 'there is no room left'];
  }
  return status === undefined ? networkReason(error) : answerReason(status, `${name}: ${message}`);
}

/** Any other answer: 5xx and 429 count as temporary. */
function answerReason(status: number, text: string): Reason {
  // HEAD has no body with details; a wrong region is the usual reason for 400.
  const remedy = status === 400 ? ': check S3_REGION and S3_ENDPOINT' : '';
  return [status >= 500 || status === 429 ? 'ETIMEDOUT' : 'EIO', `${text} (HTTP ${status})${remedy}`];
}

/** Codes unknown to file systems count as an unreachable server. */
function networkReason(error: SdkError): Reason {
  const code = typeof error.code === 'string' && error.code !== '' ? error.code : undefined;
  const known = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'].find((each) => each === code);
  return [
    known ?? 'ETIMEDOUT',
    `the server cannot be reached, or does not answer (${code ?? error.message}): check S3_ENDPOINT and the network`,
  ];
}

/** The SDK adds `$metadata` to every error of a request, including network errors. */
function isSdkError(error: unknown): error is SdkError {
  return error instanceof Error && ('$metadata' in error || error.name === 'CredentialsProviderError');
}
