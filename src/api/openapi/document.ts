/** The OpenAPI 3.1 document, made from the table of routes and the schemas that validate (docs/decisions/0005-openapi-from-zod.md). */
import { createDocument, type ZodOpenApiOverride, type ZodOpenApiPathsObject } from 'zod-openapi';
import { errorCatalogue } from '../../contract/errors.ts';
import { errorTable } from '../../http/api-reference.ts';
import type { Route } from '../route.ts';
import { commonHeaders, namedSchemas, securitySchemes } from './components.ts';
import { operationOf } from './operation.ts';
import { sharedResponses } from './responses.ts';
import { webhooks } from './webhooks.ts';

type OpenApiDocument = ReturnType<typeof createDocument>;

const DESCRIPTION = `Soundpost takes a video, named by a URL or uploaded, extracts its audio, tells the end of the job by webhook, and posts the result to a chat as a voice message when asked to.

Work is asynchronous: a submission answers 202 with a job id. Follow the job by its events, by asking for its status every 2 to 5 seconds, or let a webhook tell you. Then download the file, which is kept for 24 hours.

JSON answers come in an envelope: \`success\` and \`data\`, or \`success: false\` and \`error\` with a \`code\`, a \`message\` and sometimes \`details\`. Look at \`success\` first. A request may be repeated as it is where the error's code says so; send an \`Idempotency-Key\`, and a repetition never makes a second job.

Sizes are bytes, durations seconds, times ISO 8601 in UTC. Every answer carries \`X-Request-Id\`; give it along when you report a fault.

${errorTable(errorCatalogue)}`;

const TAGS = [
  { name: 'Jobs', description: 'One video each: submitting, following, cancelling, retrying.' },
  { name: 'Batches', description: 'Up to ten jobs in one request.' },
  { name: 'Uploads', description: 'Videos that have no URL, in one piece or resumable (tus 1.0).' },
  { name: 'Downloads', description: 'The finished files.' },
  { name: 'Webhooks', description: 'Being told: secrets, attempts, replays and tests.' },
  { name: 'Service', description: 'The service itself.' },
];

/** @param publicUrl absolute base of the service, without a slash at the end */
export function openApiDocument(routes: readonly Route[], publicUrl: string): OpenApiDocument {
  const server = { url: publicUrl };
  const document = createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Soundpost',
        version: '1.0.0',
        summary: 'Audio from videos',
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [
        server,
        { url: `${publicUrl}/audio-extract`, description: 'The same under the prefix that webhooks use' },
      ],
      tags: TAGS,
      security: [{ apiKey: [] }],
      paths: pathsOf(routes, server),
      webhooks,
      components: {
        schemas: namedSchemas,
        responses: sharedResponses,
        securitySchemes,
        headers: commonHeaders,
      },
    },
    { outputIdSuffix: 'InForce', override: adjust },
  );
  return withoutUnused(document);
}

/** Where zod's JSON Schema is not what a reader of an OpenAPI document needs. */
const adjust: ZodOpenApiOverride = ({ jsonSchema, io }) => {
  // Answers may gain fields; clients must not refuse them.
  if (io === 'output' && jsonSchema.additionalProperties === false) {
    delete jsonSchema.additionalProperties;
  }
  // 3.1 knows only JSON Schema's `examples`.
  if ('example' in jsonSchema) {
    jsonSchema.examples = [jsonSchema.example];
    delete jsonSchema.example;
  }
  // `binary` is no encoding of text; and a pattern for dates of 400 characters tells nobody anything.
  if (jsonSchema.contentEncoding === 'binary') {
    delete jsonSchema.contentEncoding;
  }
  if (jsonSchema.format === 'date-time') {
    delete jsonSchema.pattern;
  }
};

/** Every schema and every error is there to be named; only what something refers to is kept. */
function withoutUnused({ components = {}, ...document }: OpenApiDocument): OpenApiDocument {
  const { schemas = {}, responses = {} } = components;
  const named = new Map(Object.entries({ ...tagged('schemas', schemas), ...tagged('responses', responses) }));
  const used = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(
      /"#\/components\/((?:schemas|responses)\/\w+)"/g,
    )) {
      if (!used.has(name)) {
        used.add(name);
        follow(named.get(name));
      }
    }
  };
  follow(document);
  const keep = <Part>(kind: string, parts: Record<string, Part>): Record<string, Part> =>
    Object.fromEntries(Object.entries(parts).filter(([name]) => used.has(`${kind}/${name}`)));
  return {
    ...document,
    components: { ...components, schemas: keep('schemas', schemas), responses: keep('responses', responses) },
  };
}

function tagged(kind: string, parts: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [`${kind}/${name}`, part]));
}

function pathsOf(routes: readonly Route[], server: { url: string }): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    const path = openApiPath(route.path);
    // Only /v1 answers under the prefix as well.
    const servers = path.startsWith('/v1/') ? {} : { servers: [server] };
    paths[path] = { ...paths[path], ...servers, [route.method]: operationOf(route) };
  }
  return paths;
}

/** Express's `:jobId` as OpenAPI's `{jobId}`. */
function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}
