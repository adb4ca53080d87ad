/** One route as an operation of the OpenAPI document. */
import type { z } from 'zod';
import type { Route } from '../route.ts';
import { exampleBodies } from './examples.ts';
import { responsesOf } from './responses.ts';
import { requestSchema, type SchemaObject } from './schemas.ts';

const instanceParameter = {
  name: 'instance',
  in: 'path',
  required: true,
  description: 'Name or id of the instance',
  schema: { type: 'string' },
  example: 'main',
} as const;

export function operationOf(route: Route): SchemaObject {
  const { docs, path, body } = route;
  const parameters = [
    ...(path.endsWith('/:instance') ? [instanceParameter] : []),
    ...parametersOf('query', route.query),
    ...parametersOf('header', route.headers),
  ];
  return {
    operationId: docs.operationId,
    summary: docs.summary,
    ...(docs.description === undefined ? {} : { description: docs.description }),
    tags: [docs.tag],
    deprecated: false,
    security: [{ apiKey: [] }],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: bodyOf(route, body) } : {}),
    responses: responsesOf(route),
  };
}

function bodyOf({ docs, form }: Route, body: z.ZodType): SchemaObject {
  const examples = exampleBodies[docs.operationId];
  // A body of which nothing is required may be left out whole.
  const required = !body.safeParse({}).success;
  return {
    required,
    content: {
      'application/json': {
        schema: requestSchema(body),
        ...(examples === undefined ? {} : { examples }),
      },
      ...(form ? { 'multipart/form-data': { schema: requestSchema(form) } } : {}),
    },
  };
}

function parametersOf(place: 'query' | 'header', fields: z.ZodObject | undefined): SchemaObject[] {
  return Object.entries(fields?.shape ?? {}).map(([name, field]) => {
    const schema = field as z.ZodType;
    const { description, example, ...rest } = requestSchema(schema);
    return {
      name,
      in: place,
      required: !schema.safeParse(undefined).success,
      ...(description === undefined ? {} : { description }),
      schema: rest,
      ...(example === undefined ? {} : { example }),
    };
  });
}
