/**
 * Checks signatures as the server does, from the specification alone: AWS Signature Version 4 for
 * Amazon S3, in the header ("Authenticating Requests: Using the Authorization Header") and in the
 * query ("… Using Query Parameters").
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export interface SignedRequest {
  readonly method: string;
  /** As it stands in the request line, with the query. */
  readonly target: string;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

export interface Account {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

/** What S3 answers with, by its code; undefined: the signature is right. */
export type Refusal =
  | 'AccessDenied'
  | 'InvalidAccessKeyId'
  | 'SignatureDoesNotMatch'
  | 'RequestTimeTooSkewed'
  | 'AuthorizationHeaderMalformed';

const SKEW_MS = 15 * 60 * 1000;

interface Signature {
  readonly credential: string;
  readonly signedHeaders: string;
  readonly signature: string;
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly time: string;
  readonly payloadHash: string;
  /** Only of a signature in the query, seconds. */
  readonly expires: number | undefined;
}

/** @param nowMs default: now */
export function refusalOf(request: SignedRequest, account: Account, nowMs = Date.now()): Refusal | undefined {
  const [path = '', queryText = ''] = request.target.split('?');
  const query = queryText.split('&').filter(Boolean).map(parameter);
  const found = signatureOf(request, query);
  if (found === undefined) return 'AccessDenied';
  const { credential, signedHeaders, signature, time, payloadHash, expires } = found;
  const [accessKeyId, day = '', region = '', service, terminator] = credential.split('/');
  if (accessKeyId !== account.accessKeyId) return 'InvalidAccessKeyId';
  if (
    region !== account.region ||
    service !== 's3' ||
    terminator !== 'aws4_request' ||
    !time.startsWith(day)
  ) {
    return 'AuthorizationHeaderMalformed';
  }
  const ageMs = nowMs - timeOf(time);
  if (expires === undefined && Math.abs(ageMs) > SKEW_MS) return 'RequestTimeTooSkewed';
  if (expires !== undefined && (ageMs > expires * 1000 || ageMs < -SKEW_MS)) return 'AccessDenied';
  const names = signedHeaders.split(';');
  const mustBeSigned = Object.keys(request.headers).filter(
    (name) => name.startsWith('x-amz-') || name === 'host',
  );
  if (mustBeSigned.some((name) => !names.includes(name))) return 'AccessDenied';

  const canonicalRequest = [
    request.method,
    path
      .split('/')
      .map((segment) => encoded(decodeURIComponent(segment)))
      .join('/'),
    canonicalQuery(query.filter(([name]) => name !== 'X-Amz-Signature')),
    ...names.map((name) => `${name}:${(request.headers[name] ?? '').trim().replaceAll(/ +/g, ' ')}`),
    '',
    signedHeaders,
    payloadHash,
  ].join('\n');
  const scope = [day, region, 's3', 'aws4_request'].join('/');
  const stringToSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonicalRequest)].join('\n');
  const keys = [day, region, 's3', 'aws4_request'];
  const signingKey = keys.reduce<string | Buffer>(hmac, `AWS4${account.secretAccessKey}`);
  const expected = hmac(signingKey, stringToSign);
  const given = Buffer.from(signature, 'hex');
  return given.length === expected.length && timingSafeEqual(given, expected)
    ? undefined
    : 'SignatureDoesNotMatch';
}

function signatureOf({ headers }: SignedRequest, query: readonly Parameter[]): Signature | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) {
    const form = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
    const [, credential = '', signedHeaders = '', signature = ''] = form.exec(authorization) ?? [];
    const payloadHash = headers['x-amz-content-sha256'] ?? '';
    const time = headers['x-amz-date'] ?? '';
    return { credential, signedHeaders, signature, time, payloadHash, expires: undefined };
  }
  const values = Object.fromEntries(query);
  if (values['X-Amz-Algorithm'] !== 'AWS4-HMAC-SHA256') return undefined;
  return {
    credential: values['X-Amz-Credential'] ?? '',
    signedHeaders: values['X-Amz-SignedHeaders'] ?? '',
    signature: values['X-Amz-Signature'] ?? '',
    time: values['X-Amz-Date'] ?? '',
    payloadHash: values['X-Amz-Content-Sha256'] ?? 'UNSIGNED-PAYLOAD',
    expires: Number(values['X-Amz-Expires']),
  };
}

type Parameter = readonly [name: string, value: string];

function parameter(text: string): Parameter {
  const [name = '', value = ''] = text.split('=');
  return [decodeURIComponent(name), decodeURIComponent(value)];
}

/** Sorted by the encoded names, then values. */
function canonicalQuery(query: readonly Parameter[]): string {
  return query
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
}

/** UriEncode() of the specification: everything but unreserved characters (RFC 3986, 2.3). */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function timeOf(time: string): number {
  const form = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;
  return Date.parse(time.replace(form, '$1-$2-$3T$4:$5:$6Z'));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
