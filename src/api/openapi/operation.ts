/** One route as an operation of the OpenAPI document. */
import { z } from 'zod';
import type { ZodOpenApiContentObject, ZodOpenApiOperationObject } from 'zod-openapi';
import { BatchId, JobId, UploadId } from '../../contract/ids.ts';
import type { Access, Route, RouteDocs } from '../route.ts';
import { bodyExamples } from './examples.ts';
import { responsesOf } from './responses.ts';

/** What may stand at a place in a path. */
const pathParameters: Readonly<Record<string, z.ZodType>> = {
  jobId: JobId,
  batchId: BatchId,
  uploadId: UploadId,
  deliveryId: z.string().meta({ description: 'As the list of deliveries names it' }),
};

export function operationOf({ path, access, docs }: Route): ZodOpenApiOperationObject {
  const requestParams = parametersOf(path, docs);
  return {
    operationId: docs.operationId,
    summary: docs.summary,
    description: [...(docs.description === undefined ? [] : [docs.description]), needs(access)].join('\n\n'),
    tags: [docs.tag],
    security: securityOf(access),
    ...(Object.keys(requestParams).length > 0 ? { requestParams } : {}),
    ...(docs.body ? { requestBody: { required: true, content: contentOf(docs.body) } } : {}),
    responses: responsesOf(access, docs),
  };
}

function parametersOf(
  path: string,
  { operationId, query, headers }: RouteDocs,
): NonNullable<ZodOpenApiOperationObject['requestParams']> {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  return {
    ...(inPath.length > 0 ? { path: z.object(pick(pathParameters, inPath, operationId)) } : {}),
    ...(query ? { query } : {}),
    ...(headers ? { header: headers } : {}),
  };
}

/** Viewers show no roles of an API key. */
function needs(access: Access): string {
  return access.by === 'public' ? 'Needs no key.' : `Needs a key with the scope \`${access.scope}\`.`;
}

/** OpenAPI 3.1 lets a requirement name the roles that it takes, here our scopes. */
function securityOf(access: Access): Record<string, string[]>[] {
  switch (access.by) {
    case 'public':
      return [];
    case 'key':
      return [{ apiKey: [access.scope] }];
    case 'signature':
      return [{ apiKey: [access.scope] }, { signedUrl: [] }];
  }
}

function contentOf(body: NonNullable<RouteDocs['body']>): ZodOpenApiContentObject {
  return Object.fromEntries(
    Object.entries(body).map(([mediaType, schema]) => {
      if (schema === 'binary') {
        return [mediaType, { schema: { type: 'string', format: 'binary' } }];
      }
      const examples = bodyExamples(mediaType, schema);
      return [mediaType, { schema, ...(examples ? { examples } : {}) }];
    }),
  );
}

function pick(
  table: Readonly<Record<string, z.ZodType>>,
  names: readonly string[],
  operationId: string,
): Record<string, z.ZodType> {
  return Object.fromEntries(
    names.map((name) => {
      const schema = table[name];
      if (schema === undefined) {
        throw new Error(`${operationId}: say in pathParameters what :${name} may be`);
      }
      return [name, schema];
    }),
  );
}
