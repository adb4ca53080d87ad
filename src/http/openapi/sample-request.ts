/** The request that an operation's samples show: with the first example of its body, and of what it cannot do without. */
import { z } from 'zod';
import { literalOf } from './literals.ts';
import { OPENED_VIDEO, SAMPLE_KEY, type SampleRequest } from './samples.ts';

const Example = z.looseObject({
  $ref: z.string().optional(),
  example: z.unknown().optional(),
  examples: z.array(z.unknown()).optional(),
});
const Media = z.looseObject({
  examples: z.record(z.string(), z.looseObject({ value: z.unknown() })).optional(),
});
const Content = z.record(z.string(), Media);
export const DescribedOperation = z.looseObject({
  operationId: z.string(),
  security: z.array(z.record(z.string(), z.unknown())).default([]),
  parameters: z
    .array(
      z.looseObject({
        in: z.string(),
        name: z.string(),
        required: z.boolean().default(false),
        schema: Example,
      }),
    )
    .default([]),
  requestBody: z.looseObject({ content: Content }).optional(),
  responses: z.record(z.string(), z.looseObject({ content: Content.optional() })),
});
export type DescribedOperation = z.infer<typeof DescribedOperation>;

export interface Surroundings {
  readonly baseUrl: string;
  /** Header of the key. */
  readonly keyHeader: string;
  readonly schemas: Readonly<Record<string, unknown>>;
  /** How our own client does it: {@link OperationDocs.client}. */
  readonly client?: string | undefined;
}

export function sampleRequest(
  method: string,
  path: string,
  operation: DescribedOperation,
  { baseUrl, keyHeader, schemas, client }: Surroundings,
): SampleRequest {
  const required = operation.parameters
    .filter((parameter) => parameter.required)
    .map(({ in: place, name, schema }) => ({ place, name, value: exampleOf(schema, schemas) ?? name }));
  const inPath = Object.fromEntries(required.filter(at('path')).map(({ name, value }) => [name, value]));
  const query = new URLSearchParams(
    required.filter(at('query')).map(({ name, value }): [string, string] => [name, value]),
  );
  const isKeyed = operation.security.some((way) => 'apiKey' in way);
  const body = bodyOf(operation);
  return {
    method: method.toUpperCase(),
    baseUrl,
    path:
      path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(inPath[name] ?? name)) +
      (query.size === 0 ? '' : `?${query}`),
    headers: {
      ...(isKeyed ? { [keyHeader]: SAMPLE_KEY } : {}),
      ...Object.fromEntries(required.filter(at('header')).map(({ name, value }) => [name, value])),
    },
    body,
    ...answerOf(operation),
    call: client === undefined ? undefined : filledIn(client, { ...inPath, body }),
  };
}

function at(wanted: string): (parameter: { readonly place: string }) => boolean {
  return ({ place }) => place === wanted;
}

function exampleOf(given: unknown, schemas: Readonly<Record<string, unknown>>): string | undefined {
  const { $ref, example, examples = [] } = Example.parse(given);
  const found = example ?? examples[0];
  if (found !== undefined) return String(found);
  const named = $ref === undefined ? undefined : schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
  return named === undefined ? undefined : exampleOf(named, schemas);
}

/** As JSON where it may be, else a file as it is. */
function bodyOf({ requestBody }: DescribedOperation): SampleRequest['body'] {
  if (requestBody === undefined) return undefined;
  const { 'application/json': json, ...others } = requestBody.content;
  if (json === undefined) {
    const mediaType = Object.keys(others).find((type) => /^application\/(?!json)/.test(type));
    return { mediaType: mediaType ?? 'application/octet-stream' };
  }
  const [first] = Object.values(json.examples ?? {});
  return { json: first?.value ?? {} };
}

/** Of what succeeds. */
function answerOf({ responses }: DescribedOperation): Pick<SampleRequest, 'answer' | 'saveAs'> {
  const types = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content = {} }]) => Object.keys(content));
  const other = types.find((type) => type !== 'application/json');
  const saveAs = other?.startsWith('audio/') ? 'audio.mp3' : 'file.bin';
  if (other === undefined) return { answer: types.length === 0 ? 'nothing' : 'json', saveAs };
  if (other === 'text/event-stream') return { answer: 'events', saveAs };
  return { answer: other === 'text/html' ? 'text' : 'bytes', saveAs };
}

/** The call with the literals of what stands in braces: a parameter of the path, `body`, or a field of it. */
function filledIn(call: string, given: Readonly<Record<string, string | SampleRequest['body']>>): string {
  return call.replaceAll(/\{(\w+)(?:\.(\w+))?\}/g, (_, name: string, field?: string) => {
    const value = given[name];
    if (value === undefined) throw new Error(`${call}: the request has no ${name}`);
    if (typeof value === 'string') return literalOf(value, 'javascript');
    if (!('json' in value)) return OPENED_VIDEO;
    const json =
      field === undefined ? value.json : z.record(z.string(), z.unknown()).parse(value.json)[field];
    return literalOf(json, 'javascript');
  });
}
