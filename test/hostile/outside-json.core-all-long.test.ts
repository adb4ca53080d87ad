/** Damaged answers of every server whose JSON (or, of a bucket, XML) is read: none breaks its reader, none becomes more values than allowed. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { S3Bucket } from 'soundpost-kit/storage/s3-bucket';
import { StorageUnavailable } from 'soundpost-kit/storage/storage';
import { byRun } from 'soundpost-testing/by-run';
import { type Random, seeded } from 'soundpost-testing/random';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { BotApi, NoAnswer, Refused } from '../../packages/chat-telegram/src/api.ts';
import { Graph } from '../../packages/chat-whatsapp-cloud/src/graph.ts';
import { sendVoiceMessage } from '../../src/followups/kinds/gateway-client.ts';
import { transcribePart } from '../../src/followups/transcripts/client.ts';

/** Of each client. */
const COUNT = byRun({ core: 60, all: 600, long: 20_000 });
/** Patience alone, for a busy machine. */
const timeout = 60 * 60_000;
const MOST_VALUES = 100_000;
const STATUSES = [200, 200, 200, 201, 400, 401, 404, 429, 500, 502];

type Damage = (text: string, random: Random) => string;

const somewhere = (text: string, random: Random): [before: string, behind: string] => {
  const at = random.below(text.length + 1);
  return [text.slice(0, at), text.slice(at)];
};
/** In place of one value near the beginning of the text. */
const instead = (text: string, random: Random, value: string): string => {
  const values = [...text.slice(0, 4_096).matchAll(/"(?:[^"\\]|\\.)*"(?!:)|-?\d[\d.]*|true|false|null/g)];
  if (values.length === 0) return value;
  const { 0: old, index } = random.pick(values);
  return text.slice(0, index) + value + text.slice(index + old.length);
};
const ODD_VALUES = [
  ...['null', '[]', '{}', '""', '-1', '1e999', '[[]]', '{"message":{"message":[]}}', '"[object Object]"'],
  ...['"\\ud800"', '"\\u0000"', '{"__proto__":{"code":"x"}}', '"\u2028"', '9007199254740993', '[null]'],
];
const damages: readonly Damage[] = [
  (text, random) => somewhere(text, random)[0],
  (text, random) => somewhere(text, random)[1],
  (text, random) => {
    const [before, behind] = somewhere(text, random);
    return before + String.fromCharCode(random.below(0x3000)) + behind.slice(1);
  },
  (text, random) => instead(text, random, random.pick(ODD_VALUES)),
  (text, random) => instead(text, random, `[${'{},'.repeat(random.below(120_000))}0]`),
  (text, random) => instead(text, random, '['.repeat(random.below(5_000))),
  (text, random) => instead(text, random, `"${'\\"['.repeat(random.below(3_000))}"`),
  (text, random) => somewhere(text, random).join(text),
];
const damaged = (text: string, random: Random): string => {
  let result = text;
  for (let left = 1 + random.below(3); left > 0; left -= 1) result = random.pick(damages)(result, random);
  return result;
};

const valuesOf = (value: unknown): number =>
  typeof value !== 'object' || value === null
    ? 1
    : Object.values(value).reduce((sum: number, each) => sum + valuesOf(each), 1);

let folder: string;
let server: Server;
let url: string;
const next = { status: 200, body: '' };
let parsed = 0;
let mostValues = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-outside-json-'));
  await writeFile(join(folder, 'sound'), 'sound');
  server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(next.status).end(next.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  [parsed, mostValues] = [0, 0];
  const { parse } = JSON;
  vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
    const value = parse(text, reviver);
    parsed += 1;
    mostValues = Math.max(mostValues, valuesOf(value));
    return value;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** @param ask resolves, also for an answer that is of no use */
async function attack(seeds: readonly unknown[], seed: number, ask: () => Promise<void>): Promise<void> {
  for (let nth = 0; nth < COUNT; nth += 1) {
    const random = seeded(seed + nth);
    next.status = random.pick(STATUSES);
    const answer = random.pick(seeds);
    next.body = damaged(typeof answer === 'string' ? answer : JSON.stringify(answer), random);
    await ask().catch((error: unknown) => {
      throw new Error(`number ${nth} (seed ${seed + nth}) broke its reader`, { cause: error });
    });
  }
}

it('a transcriber’s', { timeout }, async () => {
  const segment = { id: 0, start: 0, end: 1.5, text: ' Hello.', tokens: [50_364, 2425], temperature: 0 };
  const seeds = [
    { task: 'transcribe', language: 'english', duration: 2, text: 'Hello.', segments: [segment, segment] },
    { error: { message: 'no such model', type: 'invalid_request_error', code: null } },
  ];
  const transcriber = { url, apiKey: 'secret', model: 'whisper-1', timeoutMs: 60_000 };
  const part = { path: join(folder, 'sound'), seconds: 2 };
  await attack(seeds, 1, async () => {
    const { kind } = await transcribePart(transcriber, part, new AbortController().signal);
    expect(['heard', 'not-now', 'refused']).toContain(kind);
  });
  expect(parsed).toBeGreaterThan(0);
  expect(mostValues).toBeLessThanOrEqual(MOST_VALUES);
});

it('a gateway’s', { timeout }, async () => {
  const seeds = [
    { key: { id: '3EB0', remoteJid: '49@s.whatsapp.net', fromMe: true }, status: 'PENDING' },
    {
      status: 400,
      error: 'Bad Request',
      response: { message: [{ jid: '49', exists: false, number: '49' }] },
    },
    { code: 'network_refused', message: ['groupJid: [object Object]'], error: { message: 'no' } },
    { id: 'true_49@c.us_3EB0', ack: 0, exception: { message: 'No sessions' }, expected: ['WORKING'] },
    { code: 200, data: { Details: 'Sent', Id: '3EB0', Timestamp: 1 }, success: true },
  ];
  const kinds = ['other', 'waha', 'wuzapi', 'soundpost'] as const;
  let nth = 0;
  const file = { path: join(folder, 'sound'), sizeBytes: 5, isNote: true, mediaType: 'audio/ogg', url };
  const message = { instance: 'main', number: '4915112345678' };
  await attack(seeds, 100_000, async () => {
    const asked = kinds[nth++ % kinds.length] ?? 'other';
    const gateway = { url, kind: asked, brand: 'Messenger', apiKey: 'secret' };
    const { kind } = await sendVoiceMessage(gateway, message, file, 'key');
    expect(['sent', 'not-now', 'refused', 'lost']).toContain(kind);
  });
  expect(parsed).toBeGreaterThan(0);
  expect(mostValues).toBeLessThanOrEqual(MOST_VALUES);
});

/** Each of its answers is `next`. */
const outbound = {
  call: async () => ({ status: next.status, text: next.body, retryAfterSeconds: undefined }),
};

it('the Graph API’s', { timeout }, async () => {
  const connection = { phoneNumberId: '1', accessToken: 'secret', appSecret: 's', verifyToken: 'v' };
  const options = { graphUrl: url, retryDelaysMs: [], onTokenExpired: () => undefined };
  const graph = new Graph({ outbound, connection, ...options });
  const answer = z.object({ messages: z.array(z.object({ id: z.string() })) });
  const question = { method: 'POST', path: '1/messages', json: {}, answer, isSend: true } as const;
  const words = { message: '(#131026) no', code: 131026, error_data: { details: 'no such person' } };
  const person = { errors: [{ code: 139100, message: 'no', title: 'no' }] };
  const seeds = [
    { messaging_product: 'whatsapp', messages: [{ id: 'wamid.A' }] },
    { error: words, block_users: { failed_users: [person] } },
  ];
  await attack(seeds, 300_000, async () => {
    const failure = await graph.ask(question).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure !== undefined) expect(failure).toBeInstanceOf(GatewayError);
  });
  expect(parsed).toBeGreaterThan(0);
  expect(mostValues).toBeLessThanOrEqual(MOST_VALUES);
});

it('the Bot API’s', { timeout }, async () => {
  const bot = new BotApi(outbound, url, '1:secret');
  const seeds = [
    { ok: true, result: { message_id: 7, date: 1, chat: { id: 1, type: 'private' } } },
    { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 3 } },
    { ok: false, error_code: 400, description: 'upgraded', parameters: { migrate_to_chat_id: -1001 } },
  ];
  await attack(seeds, 400_000, async () => {
    const asked = bot.call('sendVoice', { chat_id: 1 }, z.object({ message_id: z.number() }));
    const failure = await asked.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure !== undefined) expect([NoAnswer, Refused]).toContain(failure?.constructor);
  });
  expect(parsed).toBeGreaterThan(0);
  expect(mostValues).toBeLessThanOrEqual(MOST_VALUES);
});

it('a bucket’s', { timeout }, async () => {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const place = { bucket: 'bucket', prefix: '', endpoint: url, region: 'eu-1', credentials, tries: 1 };
  const bucket = new S3Bucket(place);
  const seed =
    '<?xml version="1.0"?><Error><Code>"NoSuchBucket"</Code><Message>1</Message><Region>null</Region></Error>';
  await attack([seed], 200_000, async () => {
    const failure = await bucket.remove('files/x').catch((error: unknown) => error);
    if (next.status >= 300) expect(failure).toBeInstanceOf(StorageUnavailable);
  });
  // An answer without end is given up on.
  next.status = 500;
  next.body = `<Error>${'<Code>'.repeat(1024 * 1024)}`;
  await expect(bucket.remove('files/x')).rejects.toThrow('the answer is longer than 4 MiB');
  bucket.close();
});
