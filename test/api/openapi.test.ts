import { Validator } from '@seriousme/openapi-schema-validator';
import { errorCatalogue } from 'soundpost-contract/errors';
import { describe, expect, it } from 'vitest';
import { routes } from '../../src/api/app.ts';
import { openApiDocument } from '../../src/api/openapi/document.ts';
import { DocumentChecks } from './openapi-checks.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
const document = JSON.parse(JSON.stringify(openApiDocument(routes, 'https://soundpost.example'))) as any;
const checks = new DocumentChecks(document);

const asOpenApi = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}');
// biome-ignore lint/suspicious/noExplicitAny: see above
const operations: { name: string; path: string; method: string; operation: any }[] = Object.entries(
  document.paths as Record<string, Record<string, object>>,
).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => method !== 'servers')
    .map(([method, operation]) => ({ name: `${method} ${path}`, path, method, operation })),
);
const resolved = (response: { $ref?: string }) =>
  response.$ref ? document.components.responses[response.$ref.split('/').at(-1) ?? ''] : response;

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  it('is refused by the same validator with a parameter in no place', async () => {
    const broken = structuredClone(document);
    delete broken.paths['/v1/jobs/{jobId}'].get.parameters[0].in;
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it('has every route, and nothing else', () => {
    const mounted = routes.map(
      ({ method, path, docs }) => `${method} ${asOpenApi(path)} ${docs.operationId}`,
    );
    const described = operations.map(({ name, operation }) => `${name} ${operation.operationId}`);
    expect(described.toSorted()).toEqual(mounted.toSorted());
  });

  it('gives each operation an id of its own', () => {
    const ids = [
      ...operations,
      ...Object.values<{ post: object }>(document.webhooks).map(({ post }) => ({ operation: post })),
    ].map(({ operation }) => (operation as { operationId: string }).operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('says that /v1 also answers under /audio-extract, and the rest does not', () => {
    expect(document.servers.map(({ url }: { url: string }) => url)).toEqual([
      'https://soundpost.example',
      'https://soundpost.example/audio-extract',
    ]);
    for (const [path, { servers }] of Object.entries<{ servers?: object[] }>(document.paths)) {
      expect(servers, path).toEqual(
        path.startsWith('/v1/') ? undefined : [{ url: 'https://soundpost.example' }],
      );
    }
  });

  it.each(routes.map((route) => [route.docs.operationId, route] as const))(
    '%s lists its error codes under the status that carries them, and who may call it',
    (_, { method, path, access, docs, errors }) => {
      const operation = document.paths[asOpenApi(path)][method];
      const everywhere =
        access.by === 'public' ? [] : ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'SERVICE_UNAVAILABLE'];
      for (const code of [...docs.errors, ...everywhere] as (keyof typeof errorCatalogue)[]) {
        const response = resolved(operation.responses[errorCatalogue[code].httpStatus]);
        const { error } = (errors?.docs.example(code) ?? { error: { code } }) as { error: { code: string } };
        expect(JSON.stringify(response.content['application/json'].schema), code).toContain(
          `"${error.code}"`,
        );
      }
      const scopes = operation.security.flatMap((way: { apiKey?: string[] }) => way.apiKey ?? []);
      expect(scopes).toEqual(access.by === 'public' ? [] : [access.scope]);
    },
  );

  it('has an example for every JSON body and answer, but for itself and health', () => {
    const without = operations.flatMap(({ name, operation }) => {
      const contents = [operation.requestBody, ...Object.values<object>(operation.responses).map(resolved)];
      const json = contents.flatMap((part) => part?.content?.['application/json'] ?? []);
      return json.some(({ examples }: { examples?: object }) => examples === undefined) ? [name] : [];
    });
    expect(without).toEqual([
      'post /hooks/gateway',
      'get /health/live',
      'get /health/ready',
      'get /openapi.json',
    ]);
  });

  const examples = checks.examples();
  it('has examples of requests, answers, errors and webhooks', () => {
    expect(examples.length).toBeGreaterThan(90);
  });

  it.each(examples.map((example) => [decodeURIComponent(example.name), example] as const))(
    '%s fits its schema',
    (_, { schemaAt, value }) => {
      expect(checks.faults(schemaAt, value)).toEqual([]);
      // And the schema does not say yes to everything.
      expect(checks.faults(schemaAt, { 'no field of it': 1 })).not.toEqual([]);
    },
  );

  it.each([
    'JobRequest',
    'BatchRequest',
    'UploadedJobRequest',
    'VoiceMessageRequest',
    'OutputRequest',
    'JobOptions',
  ])('refuses unknown fields in %s, as the service does', (name) => {
    expect(document.components.schemas[name].additionalProperties).toBe(false);
  });

  it('lets answers gain fields', () => {
    const { Job, OutputFile, OutputRequestInForce } = document.components.schemas;
    for (const schema of [Job, OutputFile, OutputRequestInForce]) {
      expect(schema.properties).toBeDefined();
      expect(schema.additionalProperties).toBeUndefined();
    }
  });

  it('knows a default as optional to send and certain to be answered', () => {
    const { OutputRequest, OutputRequestInForce } = document.components.schemas;
    expect(OutputRequest.required).toEqual(['format']);
    expect(OutputRequestInForce.required).toEqual(expect.arrayContaining(['format', 'normalize', 'copy']));
  });
});
