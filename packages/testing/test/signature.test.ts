/**
 * The examples of the specification: "Examples: Signature Calculations in AWS Signature Version 4" and "Authenticating Requests: Using Query
 * Parameters" of the Amazon S3 API Reference, with the keys that they name.
 */
import { describe, expect, test } from 'vitest';
import { type Account, refusalOf, type SignedRequest } from '../src/s3/signature.ts';

const account: Account = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const NOW_MS = Date.parse('2013-05-24T00:00:00Z');
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

function example(
  method: string,
  target: string,
  extra: Record<string, string>,
  signature: string,
  payloadHash = EMPTY,
): SignedRequest {
  const signed = {
    host: 'examplebucket.s3.amazonaws.com',
    'x-amz-content-sha256': payloadHash,
    'x-amz-date': '20130524T000000Z',
    ...extra,
  };
  const signedHeaders = Object.keys(signed).sort().join(';');
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=${signedHeaders},Signature=${signature}`;
  return { method, target, headers: { ...signed, authorization } };
}

const presigned: SignedRequest = {
  method: 'GET',
  target:
    '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  headers: { host: 'examplebucket.s3.amazonaws.com' },
};
const getObject = example(
  'GET',
  '/test.txt',
  { range: 'bytes=0-9' },
  'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
);

describe('the check of signatures', () => {
  test.each<[string, SignedRequest]>([
    ['GET Object', getObject],
    [
      'PUT Object',
      example(
        'PUT',
        '/test%24file.text',
        { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
        '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
        '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      ),
    ],
    [
      'GET Bucket Lifecycle',
      example('GET', '/?lifecycle', {}, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
    ],
    [
      'GET Bucket (List Objects)',
      example(
        'GET',
        '/?max-keys=2&prefix=J',
        {},
        '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
      ),
    ],
    ['a presigned URL', presigned],
  ])('accepts the example "%s"', (_name, request) => {
    expect(refusalOf(request, account, NOW_MS)).toBeUndefined();
  });

  test('sees another method, path, query, header, key and time', () => {
    const headers = { ...getObject.headers, range: 'bytes=0-8' };
    expect(refusalOf({ ...getObject, method: 'PUT' }, account, NOW_MS)).toBe('SignatureDoesNotMatch');
    expect(refusalOf({ ...getObject, target: '/text.txt' }, account, NOW_MS)).toBe('SignatureDoesNotMatch');
    expect(refusalOf({ ...getObject, target: '/test.txt?a=b' }, account, NOW_MS)).toBe(
      'SignatureDoesNotMatch',
    );
    expect(refusalOf({ ...getObject, headers }, account, NOW_MS)).toBe('SignatureDoesNotMatch');
    const other = { ...account, secretAccessKey: 'else' };
    expect(refusalOf(getObject, other, NOW_MS)).toBe('SignatureDoesNotMatch');
    expect(refusalOf(getObject, { ...account, accessKeyId: 'else' }, NOW_MS)).toBe('InvalidAccessKeyId');
    expect(refusalOf(getObject, { ...account, region: 'eu-west-1' }, NOW_MS)).toBe(
      'AuthorizationHeaderMalformed',
    );
    expect(refusalOf(getObject, account, NOW_MS + 16 * 60_000)).toBe('RequestTimeTooSkewed');
    const unsigned = { ...getObject.headers, 'x-amz-acl': 'public-read' };
    expect(refusalOf({ ...getObject, headers: unsigned }, account, NOW_MS)).toBe('AccessDenied');
    expect(refusalOf(presigned, account, NOW_MS + 86_401_000)).toBe('AccessDenied');
    expect(refusalOf({ ...getObject, headers: {} }, account, NOW_MS)).toBe('AccessDenied');
  });
});
