/**
 * Compares the requests that the tests' Graph API takes with Meta's published OpenAPI document: paths, methods, field names.
 * Run by hand, with the path of the document, which is not part of the project:
 *
 *     node script/compare-graph.ts business-messaging-api_v23.0.yaml
 *
 * Prints what differs and ends with 1, unless all of it is known below: Meta's pages have more than its document.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { graphOperations } from '../test/gateway/whatsapp-cloud/graph-requests.ts';

/** What only the pages have, by operation and field. */
const ONLY_ON_PAGES: Readonly<Record<string, string>> = {
  'message audio.voice': '/messages/audio-messages',
  'message recipient': '/business-scoped-user-ids',
  'message biz_opaque_callback_data': '/webhooks/reference/messages/status',
  'message status': '/messages/mark-message-as-read',
  'message message_id': '/messages/mark-message-as-read',
  'message typing_indicator': '/typing-indicators',
  'message typing_indicator.type': '/typing-indicators',
  'upload type': '/business-phone-numbers/media',
};

type Json = Readonly<Record<string, unknown>>;

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('give the path of business-messaging-api_v23.0.yaml');
const document: Json = parse(readFileSync(file, 'utf8'));
const paths = document.paths as Readonly<Record<string, Json | undefined>>;
const differences: string[] = [];

for (const { name, method, path, body, isForm } of graphOperations) {
  const operation = paths[`/{Version}${path}`]?.[method.toLowerCase()] as Json | undefined;
  if (operation === undefined) {
    differences.push(`${name}: the document has no ${method} ${path}`);
    continue;
  }
  if (body === undefined) continue;
  const content = (operation.requestBody as { content: Json }).content;
  const type = isForm ? 'multipart/form-data' : 'application/json';
  const known = fieldsOf((content[type] as { schema: Json } | undefined)?.schema ?? {});
  const own = fieldsOf(z.toJSONSchema(body, { unrepresentable: 'any' }) as Json);
  for (const field of own) {
    if (!known.has(field) && !(`${name} ${field}` in ONLY_ON_PAGES)) {
      differences.push(`${name}: the document has no field ${field}`);
    }
  }
}

process.stdout.write(`${graphOperations.length} operations, ${differences.length} differences\n`);
for (const difference of differences) process.stdout.write(`${difference}\n`);
process.exitCode = differences.length === 0 ? 0 : 1;

/** Names of all fields, nested ones with a dot; lists count as their items. */
function fieldsOf(schema: Json, prefix = '', seen: ReadonlySet<unknown> = new Set()): Set<string> {
  const resolved = resolve(schema);
  if (seen.has(resolved)) return new Set();
  const further = new Set([...seen, resolved]);
  const parts = ['anyOf', 'oneOf', 'allOf'].flatMap((name) => (resolved[name] as Json[] | undefined) ?? []);
  const fields = Object.entries((resolved.properties as Readonly<Record<string, Json>> | undefined) ?? {});
  return new Set([
    ...parts.flatMap((part) => [...fieldsOf(part, prefix, further)]),
    ...(resolved.items ? fieldsOf(resolved.items as Json, prefix, further) : []),
    ...fields.flatMap(([name, field]) => [
      `${prefix}${name}`,
      ...fieldsOf(field, `${prefix}${name}.`, further),
    ]),
  ]);
}

function resolve(schema: Json): Json {
  const reference = schema.$ref;
  if (typeof reference !== 'string') return schema;
  const target = reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Json)[key], document);
  return resolve(target as Json);
}
