/** Operations without a key for the OpenAPI document; the inbox is internal to its page. */

import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import { DownloadHeaders } from 'soundpost-contract/request-headers';
import type { Operation, OperationDocs } from 'soundpost-kit/http/openapi/description';
import { z } from 'zod';

const Live = z.object({ status: z.string() });
const Readiness = z.object({ status: z.string(), redis: z.string(), storage: z.string() });

const bytes = { 'application/octet-stream': 'binary' } as const;
const notModified = { description: 'The caller has it' };

export const publicOperations: readonly Operation<GatewayErrorCode>[] = [
  open('/media/:file', {
    operationId: 'downloadMedia',
    summary: 'Download the encrypted copy of a voice message',
    description:
      'The bytes that `audioMessage.url` leads to: AES-256-CBC under keys that HKDF-SHA256 makes of the media key, and ten bytes of HMAC-SHA256. They never change.',
    headers: DownloadHeaders.pick({ Range: true }),
    answers: {
      200: { description: 'The file', content: bytes },
      206: { description: 'A part of it', content: bytes },
      304: notModified,
      404: { description: 'There is none at this address, or it is no longer kept' },
      416: { description: 'It has no such part' },
    },
  }),
  open('/health/live', {
    operationId: 'checkLive',
    summary: 'Whether the process runs',
    answers: {
      200: { description: 'It does', content: { 'application/json': Live } },
      503: {
        description: 'It alone has lost Redis, and has to be started again',
        content: { 'application/json': Live },
      },
    },
  }),
  open('/health/ready', {
    operationId: 'checkReady',
    summary: 'Whether requests can be served',
    answers: {
      200: { description: 'They can', content: { 'application/json': Readiness } },
      503: {
        description: 'Redis cannot be reached, or refuses writes, or another process serves',
        content: { 'application/json': Readiness },
      },
    },
  }),
  open('/openapi.json', {
    operationId: 'getOpenApi',
    summary: 'This document',
    answers: {
      200: {
        description: 'OpenAPI 3.0.3',
        content: { 'application/json': z.looseObject({ openapi: z.string() }) },
      },
      304: notModified,
    },
  }),
  open('/docs', {
    operationId: 'getDocs',
    summary: 'This document as a page for people',
    answers: {
      200: {
        description: 'A page, whose files come from this server too',
        content: { 'text/html': 'binary' },
      },
      304: notModified,
    },
  }),
];

function open(
  path: string,
  docs: Omit<OperationDocs<GatewayErrorCode>, 'tag' | 'errors'>,
): Operation<GatewayErrorCode> {
  return {
    method: 'get',
    path,
    docs: { ...docs, tag: 'Service', errors: [] },
    security: [],
    answerHeaders: ['X-Request-Id'],
  };
}
