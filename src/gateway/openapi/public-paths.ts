/** The paths of the gateway that need no key, as the OpenAPI document tells of them. The inbox is for its page alone. */
import type { SchemaObject } from './schemas.ts';

const text = { type: 'string' } as const;

const readiness = {
  type: 'object',
  properties: { status: text, redis: text, storage: text },
  required: ['status', 'redis', 'storage'],
} as const;

const json = (schema: SchemaObject): SchemaObject => ({ 'application/json': { schema } });

const about = (operationId: string, summary: string): SchemaObject => ({
  operationId,
  summary,
  tags: ['Service'],
  deprecated: false,
  security: [],
});

export const publicPaths: Readonly<Record<string, SchemaObject>> = {
  '/media/{file}': {
    get: {
      ...about('downloadMedia', 'Download the encrypted copy of a voice message'),
      description:
        'The bytes that `audioMessage.url` leads to: AES-256-CBC under keys that HKDF-SHA256 makes of the media key, and ten bytes of HMAC-SHA256. They never change.',
      parameters: [
        {
          name: 'file',
          in: 'path',
          required: true,
          description: 'As it stands in `directPath`',
          schema: { type: 'string', pattern: '^[0-9a-f]{32}\\.enc$' },
        },
        { name: 'Range', in: 'header', required: false, description: 'One range of bytes', schema: text },
      ],
      responses: {
        '200': {
          description: 'The file',
          content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
        },
        '206': {
          description: 'A part of it',
          content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
        },
        '304': { description: 'The caller has it' },
        '404': { description: 'There is none at this address, or it is no longer kept' },
        '416': { description: 'It has no such part' },
      },
    },
  },
  '/health/live': {
    get: {
      ...about('checkLive', 'Whether the process runs'),
      responses: {
        '200': {
          description: 'It does',
          content: json({ type: 'object', properties: { status: text }, required: ['status'] }),
        },
      },
    },
  },
  '/health/ready': {
    get: {
      ...about('checkReady', 'Whether requests can be served'),
      responses: {
        '200': { description: 'They can', content: json(readiness) },
        '503': { description: 'Redis or the storage cannot be reached', content: json(readiness) },
      },
    },
  },
  '/openapi.json': {
    get: {
      ...about('getOpenApi', 'This document'),
      responses: {
        '200': { description: 'OpenAPI 3.0.3', content: json({ type: 'object' }) },
        '304': { description: 'The caller has it' },
      },
    },
  },
  '/docs': {
    get: {
      ...about('getDocs', 'This document as a page for people'),
      responses: {
        '200': {
          description: 'A page, whose files come from this server too',
          content: { 'text/html': { schema: text } },
        },
        '304': { description: 'The caller has it' },
      },
    },
  },
};
