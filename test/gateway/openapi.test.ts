/** The gateway's OpenAPI document against its routes, its answers and judges that know nothing of ours. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DocumentChecks } from '../api/openapi-checks.ts';
import {
  type Answer,
  ada,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';
import { mountedRoutes } from './mounted-routes.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let document: Answer['body'];
let checks: DocumentChecks;
let audio: string;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  document = (await gateway.call('GET', '/openapi.json', undefined, { apikey: '' })).body;
  checks = new DocumentChecks(document);
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

function soundForm(fields: Record<string, string>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly deprecated: boolean;
  readonly responses: Readonly<Record<string, unknown>>;
}

const methods = ['get', 'post', 'delete'] as const;

const operations = (): { method: string; path: string; operation: Operation }[] =>
  Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(([path, item]) =>
    methods.flatMap((method) =>
      item[method] === undefined ? [] : [{ method: method.toUpperCase(), path, operation: item[method] }],
    ),
  );

describe('the document', () => {
  it('is of the version that the interface is described in', () => {
    expect(document.openapi).toBe('3.0.3');
    expect(document.info.version).toBe('2.3.0');
    expect(document.servers).toEqual([{ url: gateway.url }]);
  });

  it('names the send operation, not deprecated, with a required key', () => {
    const { post } = document.paths['/message/sendMessengerAudio/{instance}'];
    expect(post).toMatchObject({
      operationId: 'sendMessengerAudio',
      deprecated: false,
      security: [{ apiKey: [] }],
    });
    expect(document.components.securitySchemes.apiKey).toMatchObject({
      type: 'apiKey',
      in: 'header',
      name: 'apikey',
    });
    const { schema } = post.requestBody.content['application/json'];
    expect(schema.required).toEqual(['number', 'audio']);
    const types = Object.entries(schema.properties as Record<string, { type: string }>).map(
      ([name, { type }]) => `${name} ${type}`,
    );
    expect(types.toSorted()).toEqual([
      'audio string',
      'delay integer',
      'encoding boolean',
      'linkPreview boolean',
      'mentioned array',
      'mentionsEveryOne boolean',
      'number string',
      'quoted object',
    ]);
  });

  it('has every operation of the interface', () => {
    const known = operations().map(({ method, path }) => `${method} ${path}`);
    expect(known).toEqual(
      expect.arrayContaining([
        'POST /message/sendMessengerAudio/{instance}',
        'POST /settings/set/{instance}',
        'POST /chat/updateMessage/{instance}',
        'POST /group/sendInvite/{instance}',
        'POST /chat/sendPresence/{instance}',
        'POST /message/updateBlockStatus/{instance}',
        'POST /chat/findContacts/{instance}',
        'POST /chat/findChats/{instance}',
        'GET /group/inviteCode/{instance}',
        'GET /group/participants/{instance}',
        'GET /chat/fetchPrivacySettings/{instance}',
      ]),
    );
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is valid to a validator of OpenAPI documents', async () => {
    const verdict = await new Validator().validate(structuredClone(document));
    expect(verdict.errors ?? []).toEqual([]);
  });
});

describe('routes and document', () => {
  it('agree in both directions', () => {
    // Where people are led is no operation, and the inbox is for its page alone.
    const routes = mountedRoutes()
      .filter((route) => !['GET /', 'GET /i/:code'].includes(route) && !route.includes(' /inbox/'))
      .map((route) => route.replaceAll(/:(\w+)/g, '{$1}'));
    expect(routes.length).toBeGreaterThan(25);
    expect(routes.toSorted()).toEqual(
      operations()
        .map(({ method, path }) => `${method} ${path}`)
        .toSorted(),
    );
  });

  it('agree on the errors: every one that an operation names is in the catalogue, and every one of the catalogue is named', () => {
    const named = new Set(
      Object.values(document.components.responses as Record<string, Answer['body']>).flatMap(
        ({ content }) => content['application/json'].schema.properties.code.enum,
      ),
    );
    const ofPaths = ['not_found', 'method_not_allowed'];
    expect([...named, ...ofPaths].toSorted()).toEqual(Object.keys(gatewayErrorCatalogue).toSorted());
  });
});

describe('real answers are what the document says', () => {
  const key = { remoteJid: ada.jid, fromMe: true, id: '' };
  let groupJid = '';

  beforeAll(async () => {
    const { body } = await gateway.call('POST', '/chat/findContacts/main');
    groupJid = body.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
    const sent = await gateway.call('POST', '/message/sendMessengerAudio/main', {
      number: ada.number,
      audio,
    });
    key.id = sent.body.key.id;
  });

  const requests: readonly (readonly [operation: string, body?: () => unknown, query?: () => string])[] = [
    ['POST /message/sendMessengerAudio/{instance}', () => ({ number: ada.number, audio })],
    ['POST /message/sendMessengerAudio/{instance}', () => ({ number: '49301', audio })],
    ['POST /message/sendWhatsAppAudio/{instance}', () => ({ number: ada.number, audio })],
    ['POST /process-audio', () => soundForm({ base64: audio })],
    ['POST /process-audio', () => soundForm({ base64: audio, format: 'flac' })],
    ['POST /settings/set/{instance}', () => ({ msgCall: 'x' })],
    ['GET /settings/find/{instance}'],
    ['POST /chat/updateMessage/{instance}', () => ({ number: ada.number, text: 'x', key })],
    ['POST /chat/updateMessage/{instance}', () => ({ number: ada.number, text: 'x', key: { id: 'y' } })],
    ['POST /group/sendInvite/{instance}', () => ({ groupJid, numbers: [ada.number] })],
    ['POST /chat/sendPresence/{instance}', () => ({ number: ada.number, delay: 1 })],
    ['POST /message/updateBlockStatus/{instance}', () => ({ number: ada.number, status: 'unblock' })],
    ['POST /chat/updateBlockStatus/{instance}', () => ({ number: ada.number, status: 'unblock' })],
    ['POST /chat/findContacts/{instance}'],
    ['POST /chat/findChats/{instance}'],
    ['GET /group/inviteCode/{instance}', undefined, () => `?groupJid=${groupJid}`],
    ['GET /group/inviteCode/{instance}', undefined, () => '?groupJid=1'],
    ['POST /group/revokeInviteCode/{instance}', undefined, () => `?groupJid=${groupJid}`],
    ['GET /group/acceptInviteCode/{instance}', undefined, () => '?inviteCode=x'],
    ['GET /group/participants/{instance}', undefined, () => `?groupJid=${groupJid}`],
    ['GET /chat/fetchPrivacySettings/{instance}'],
    ['GET /webhook/find/{instance}'],
    ['POST /webhook/set/{instance}', () => ({ webhook: { enabled: false, url: 'https://example.com' } })],
    ['GET /webhook/find/{instance}'],
    ['GET /webhook/deliveries/{instance}'],
    ['POST /webhook/replay/{instance}', () => ({ deliveryId: 'evt_1-0' })],
    ['POST /instance/create', () => ({ instanceName: 'documented' })],
    ['POST /instance/create', () => ({ instanceName: 'documented' })],
    ['GET /instance/fetchInstances'],
    ['GET /instance/connectionState/{instance}'],
    ['GET /instance/connect/{instance}'],
    ['DELETE /instance/logout/{instance}'],
    ['DELETE /instance/delete/{instance}'],
    ['GET /health/live'],
    ['GET /health/ready'],
    ['GET /openapi.json'],
  ];

  it.for(requests)('%s', async ([operation, body, query]) => {
    const [method = '', path = ''] = operation.split(' ');
    const answer = await gateway.call(
      method,
      path.replace('{instance}', 'main') + (query?.() ?? ''),
      body?.(),
    );
    const mediaType = answer.headers.get('content-type')?.split(';')[0];
    const documented = document.paths[path][method.toLowerCase()].responses[answer.status];
    expect(documented).toBeDefined();
    if (mediaType === undefined) {
      expect(answer.body).toBe('');
      expect(documented.content).toBeUndefined();
    } else {
      expect(checks.answerFaults(method, path, answer.status, mediaType, answer.body)).toEqual([]);
    }
  });
});
