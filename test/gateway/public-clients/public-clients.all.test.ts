/**
 * Clients that others wrote for the public server, against ours with GATEWAY_ANSWERS=public: no call that succeeds there fails here, and what a client reads of
 * the answer is in it. The table in the docs is what this run saw. The node of n8n runs itself in foreign-client.test.ts.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  API_KEY,
  ada,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from '../gateway-fixture.ts';
import { CLIENTS, type Client, OPERATIONS, type Operation, type Recorded, type Scene } from './recorded.ts';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'how-to', 'other-gateway.md');

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio: Buffer;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, answersAsPublic: true });
  await makeTone(join(folder.path, 'tone.mp3'), 1);
  audio = await readFile(join(folder.path, 'tone.mp3'));
});
afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

/** An account of the client's own, with a message that it has sent. */
async function openScene(instance: string): Promise<Scene & { readonly token: string }> {
  const made = await gateway.call('POST', '/instance/create', { instanceName: instance });
  const { body: contacts } = await gateway.call('POST', `/chat/findContacts/${instance}`);
  const text = { number: ada.number, text: 'Good morning.' };
  const { body: sent } = await gateway.call('POST', `/message/sendText/${instance}`, text);
  return {
    instance,
    group: contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id,
    audio: audio.toString('base64'),
    sent: sent.key.id,
    token: made.body.hash,
  };
}

function bodyOf({ body, form }: Recorded, scene: Scene): object | undefined {
  if (form === undefined) return body?.(scene);
  const data = new FormData();
  for (const [name, value] of Object.entries(form(scene))) data.append(name, value);
  data.append('file', new Blob([new Uint8Array(audio)]), 'file');
  return data;
}

const succeeds = (status: number): boolean => status >= 200 && status < 300;

const seen = new Map<Client, Map<Operation, string>>();

describe.each(CLIENTS)('$name', (client) => {
  const statuses = new Map<Operation, string>();
  seen.set(client, statuses);
  let scene: Awaited<ReturnType<typeof openScene>>;
  beforeAll(async () => {
    scene = await openScene(`account-${CLIENTS.indexOf(client)}`);
  });

  const recorded = OPERATIONS.flatMap((operation) => {
    const request = client.requests[operation];
    return request ? [{ operation, request }] : [];
  });

  it.each(recorded)('$operation', async ({ operation, request }) => {
    const { method, path, theirs, ours = theirs, reads } = request;
    const { instance, group, token } = scene;
    const answer = await gateway.call(
      method,
      path.replace('{instance}', instance).replace('{group}', encodeURIComponent(group)),
      bodyOf(request, scene),
      // As they say it also where there is no body.
      {
        apikey: client.token && operation !== 'create' ? token : API_KEY,
        ...(request.form ? {} : { 'Content-Type': 'application/json' }),
      },
    );
    expect(answer.status, JSON.stringify(answer.body)).toBe(ours);
    if (reads) expect({ answer: answer.body }).toMatchObject({ answer: reads(scene) });
    if (succeeds(theirs)) expect(succeeds(answer.status)).toBe(true);
    // Each of them reads every answer as JSON.
    expect(answer.body).toBeTypeOf('object');
    statuses.set(operation, theirs === answer.status ? `${theirs}` : `${theirs} → ${answer.status}`);
  });
});

it('the docs show what was seen', async () => {
  const rows = OPERATIONS.map((operation) => [
    `\`${operation}\``,
    ...CLIENTS.map((client) => seen.get(client)?.get(operation) ?? '–'),
  ]);
  const head = ['Operation', ...CLIENTS.map(({ name }) => name)];
  const table = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  expect(await readFile(PAGE, 'utf8')).toContain(table);
});
