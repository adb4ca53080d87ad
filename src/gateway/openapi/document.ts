/** The gateway's OpenAPI document, of the version that its interface is described in, made from the table of routes. */
import { gatewayErrorCatalogue } from '../../contract/gateway-errors.ts';
import { errorTable } from '../../http/api-reference.ts';
import type { Route } from '../route.ts';
import { eventPaths } from './events.ts';
import { operationOf } from './operation.ts';
import { publicPaths } from './public-paths.ts';
import { commonHeaders, sharedResponses } from './responses.ts';
import { namedSchemas, type SchemaObject } from './schemas.ts';

const DESCRIPTION = `The gateway sends voice messages to chats and does what belongs to it: contacts, groups, presence, settings.

An instance is one account on one network: the gateway's own loopback network, XMPP, or WhatsApp. What a network cannot do answers 501 \`unsupported\`, never a pretended success.

A message goes the way PENDING, SERVER_ACK, DELIVERY_ACK, READ, PLAYED, and only forward; ERROR is an end. Numbers are written with their country code, with or without punctuation, or as a JID. Fields that the gateway does not know are ignored.

Every error has one shape: \`status\`, \`error\`, \`code\`, \`requestId\`, and \`response.message\` with a sentence for each fault.

${errorTable(gatewayErrorCatalogue)}`;

const TAGS = [
  { name: 'Messages', description: 'Sending.' },
  { name: 'Chats', description: 'Contacts, chats, presence, and what becomes of messages.' },
  { name: 'Groups', description: 'Members and invitations.' },
  { name: 'Settings', description: 'How an instance behaves, and what others may see of it.' },
  { name: 'Instances', description: 'Accounts: made, connected, listed, deleted.' },
  { name: 'Webhooks', description: 'Being told what happens.' },
  { name: 'Service', description: 'The gateway itself.' },
];

/** @param publicUrl absolute base of the gateway, without a slash at the end */
export function openApiDocument(routes: readonly Route[], publicUrl: string): SchemaObject {
  const paths: Record<string, SchemaObject> = {};
  for (const route of routes) {
    const path = openApiPath(route.path);
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  const document = {
    openapi: '3.0.3',
    info: {
      title: 'Soundpost messaging gateway',
      version: '2.3.0',
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
    },
    servers: [{ url: publicUrl }],
    tags: TAGS,
    security: [{ apiKey: [] }],
    paths: { ...paths, ...publicPaths },
    'x-webhooks': eventPaths(),
  };
  return {
    ...document,
    components: {
      schemas: usedSchemas(document),
      responses: sharedResponses(routes),
      headers: commonHeaders,
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'apikey',
          description:
            'The gateway’s own key, which opens every instance and their management, or the token of the instance',
        },
      },
    },
  };
}

/** Express's `:instance` as OpenAPI's `{instance}`. */
function openApiPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/** Of the named schemas those that something refers to. */
function usedSchemas(document: object): Readonly<Record<string, SchemaObject>> {
  const all = namedSchemas();
  const used = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (!used.has(name)) {
        used.add(name);
        follow(all[name]);
      }
    }
  };
  follow(document);
  return Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)));
}
