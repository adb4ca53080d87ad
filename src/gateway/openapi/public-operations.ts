/** Operations without a key for the OpenAPI document; the inbox is internal to its page. */

import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import { DownloadHeaders } from 'soundpost-contract/request-headers';
import type { Operation, OperationDocs } from 'soundpost-kit/http/openapi/description';
import { z } from 'zod';

const Live = z.object({ status: z.string() });
const Readiness = z.object({ status: z.string(), redis: z.string(), storage: z.string() });

const bytes = { 'application/octet-stream': 'binary' } as const;
const notModified = { description: 'Not modified' };

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
    summary: 'Check that the process is alive',
    answers: {
      200: { description: 'It is alive', content: { 'application/json': Live } },
      503: {
        description: 'Only this process has lost Redis; restart it',
        content: { 'application/json': Live },
      },
    },
  }),
  open('/health/ready', {
    operationId: 'checkReady',
    summary: 'Check that the gateway is ready',
    answers: {
      200: { description: 'It is ready', content: { 'application/json': Readiness } },
      503: {
        description: 'Redis is unreachable or rejects writes, or another process is active',
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
    summary: 'This document as a web page',
    answers: {
      200: {
        description: 'A web page; its files come from this server',
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
