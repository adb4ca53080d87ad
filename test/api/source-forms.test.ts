/** A2: `source.headers`, kept sealed and shown by name alone, and `source.data`, kept as an upload. */
import { readFile } from 'node:fs/promises';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { dumpRedis } from '../end-to-end/redis-dump.ts';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const CANARY = 'CANARYheader5d41402abc4b2a76b9719d911017c592';
const clip = useClips('tone.mp4');
const lines: string[] = [];
const service = useService({
  environment: { LOG_LEVEL: 'trace', WORKER_CONCURRENCY: '1', DOWNLOADS_AHEAD: '0' },
  log: (line) => lines.push(line),
});
let bytes = Buffer.alloc(0);

beforeAll(async () => {
  bytes = await readFile(clip('tone.mp4'));
});

const output = { format: 'mp3' };
const headers = { Authorization: `Bearer ${CANARY}`, 'X-Account': CANARY };
const extract = (source: Json, more: Json = {}): Promise<Answer> =>
  service().call('POST', '/v1/extract', { json: { source, output, ...more } });
/** Serves the clip to those alone who have the header. */
const guarded = (name: string): string =>
  service().outside.on(`/${name}`, (incoming, response) =>
    incoming.headers.authorization === headers.Authorization
      ? response.end(bytes)
      : response.writeHead(401).end(),
  );

describe('source.headers', () => {
  it('are sent, answered by name, and in the clear nowhere: no answer, webhook, log line or value in Redis', async () => {
    const hook = service().outside.hook('told');
    const url = guarded('guarded.mp4');
    const accepted = await extract({ type: 'url', url, headers }, { options: { webhook: hook.url } });
    const { jobId } = accepted.body.data;
    const job = await service().ended(jobId);
    expect(job).toMatchObject({
      status: 'completed',
      source: { type: 'url', url, headers: ['Authorization', 'X-Account'] },
    });
    const [told] = await hook.got(1);
    const answers = await Promise.all(
      [`/v1/jobs`, `/v1/status/${jobId}`, `/v1/jobs/${jobId}/deliveries`, '/v1/usage'].map((path) =>
        service().call('GET', path),
      ),
    );
    const refused = await extract({ type: 'url', url: 'http://10.0.0.1/', headers });
    const said = [accepted, refused, ...answers].map(({ bytes: answer }) => answer.toString());
    const redis = [...(await dumpRedis(service().redis.socketPath))].flat();
    for (const text of [...said, told?.text ?? '', JSON.stringify(told?.headers), ...lines, ...redis]) {
      expect(text).not.toContain(CANARY);
    }
    expect(redis.some((text) => text.includes('X-Account'))).toBe(true);
  });

  it('a retry sends them again', async () => {
    let isReady = false;
    const url = service().outside.on('/later.mp4', (incoming, response) =>
      isReady && incoming.headers.authorization === headers.Authorization
        ? response.end(bytes)
        : response.writeHead(403).end(),
    );
    const failed = await service().run({ source: { type: 'url', url, headers }, output });
    expect(failed.error.details).toBe('HTTP 403');
    isReady = true;
    const { body } = await service().call('POST', `/v1/jobs/${failed.jobId}/retry`);
    expect((await service().ended(body.data.jobId)).status).toBe('completed');
  });

  it('of a job that was cancelled while it waited are not kept', async () => {
    const slow = await service().outside.stalling('first.mp4', clip('tone.mp4'));
    const first = await service().submit({ source: { type: 'url', url: slow.url }, output });
    await until('the worker is taken', () => slow.begun());
    const url = guarded('waiting.mp4');
    const jobId = await service().submit({ source: { type: 'url', url, headers }, output });
    await service().call('DELETE', `/v1/jobs/${jobId}`);
    const { body } = await service().call('POST', `/v1/jobs/${jobId}/retry`);
    expect(body.error).toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('the headers of its source are not kept'),
    });
    slow.letGo();
    await service().ended(first);
  });

  const many = Object.fromEntries(Array.from({ length: 11 }, (_, nth) => [`X-${nth}`, 'a']));
  it.each<[Json, string]>([
    [{ Host: 'a' }, 'source.headers.Host: is set by the service itself'],
    [{ range: 'bytes=0-' }, 'source.headers.range: is set by'],
    [{ 'If-None-Match': '*' }, 'source.headers.If-None-Match: is set by'],
    [{ 'Content-Type': 'a/b' }, 'source.headers.Content-Type: is set by'],
    [{ Connection: 'close' }, 'source.headers.Connection: is set by'],
    [{ 'Transfer-Encoding': 'chunked' }, 'source.headers.Transfer-Encoding: is set by'],
    [{ TE: 'trailers' }, 'source.headers.TE: is set by'],
    [{ Upgrade: 'h2c' }, 'source.headers.Upgrade: is set by'],
    [{ 'Proxy-Authorization': 'a' }, 'source.headers.Proxy-Authorization: is set by'],
    [{ Expect: '100-continue' }, 'source.headers.Expect: is set by'],
    [{ 'a b': 'c' }, 'source.headers.a b: '],
    [{ 'X-A': 'b\r\nHost: c' }, 'source.headers.X-A: must be a header value'],
    [many, 'source.headers: must be 10 at most'],
    [
      { 'X-A': 'a'.repeat(2100), 'X-B': 'b'.repeat(2100) },
      'source.headers: must have at most 4 KiB in total',
    ],
  ])('%j are refused', async (given, details) => {
    const { status, body } = await extract({ type: 'url', url: 'https://example.com/a.mp4', headers: given });
    expect([status, body.error.code]).toEqual([400, 'INVALID_SOURCE']);
    expect(body.error.details).toContain(details);
  });
});

describe('source.data', () => {
  it.each([
    ['base64', () => bytes.toString('base64')],
    ['URL-safe base64 with line breaks', () => bytes.toString('base64url').replaceAll(/.{76}/g, '$&\n')],
    ['a data URI', () => `data:video/mp4;base64,${bytes.toString('base64')}`],
  ])('%s is a job over an upload of the key', async (_form, data) => {
    const job = await service().run({ source: { type: 'data', data: data() }, output });
    expect(job).toMatchObject({
      status: 'completed',
      source: { type: 'upload', file: expect.stringMatching(/^upl_/), name: 'upload' },
      inputFile: { size: bytes.length },
    });
    const upload = await service().call('GET', `/v1/uploads/${job.source.file}`);
    expect(upload.body.data).toMatchObject({ size: bytes.length, complete: true });
  });

  it('counts as an upload, also where it is refused after that none is left', async () => {
    const used = async (): Promise<number> =>
      (await service().call('GET', '/v1/usage')).body.data.uploads.used;
    const before = await used();
    const data = bytes.toString('base64');
    const idempotent = {
      headers: { 'idempotency-key': 'data-1' },
      json: { source: { type: 'data', data }, output },
    };
    const first = await service().call('POST', '/v1/extract', idempotent);
    const again = await service().call('POST', '/v1/extract', idempotent);
    expect([again.body, again.headers['idempotent-replayed']]).toEqual([first.body, 'true']);
    const refused = await extract({ type: 'data', data }, { options: { webhook: 'http://10.0.0.1/' } });
    expect(refused.body.error.code).toBe('INVALID_WEBHOOK');
    expect(await used()).toBe(before + 1);
  });

  it.each<[string, () => Json, number, string, string]>([
    [
      'is no base64',
      () => ({ data: 'data:,hello' }),
      400,
      'INVALID_SOURCE',
      'source.data: must be base64, or a data URI',
    ],
    [
      'is white space',
      () => ({ data: ' '.repeat(60_000) }),
      400,
      'INVALID_SOURCE',
      'source.data: must be base64',
    ],
    ['is missing', () => ({}), 400, 'INVALID_REQUEST', 'source.data: is required'],
    ['is no media', () => ({ data: 'aGVsbG8=' }), 400, 'INVALID_VIDEO', 'not a media file'],
    [
      'is longer than 8 MiB',
      () => ({ data: Buffer.alloc(8 * 1024 * 1024 + 1).toString('base64') }),
      ...([400, 'INVALID_SOURCE', 'source.data: must have at most 8 MiB decoded'] as const),
    ],
    [
      'is longer than the body may be',
      () => ({ data: 'A'.repeat(13 * 1024 * 1024) }),
      413,
      'PAYLOAD_TOO_LARGE',
      '',
    ],
  ])('that %s is refused', async (_what, source, status, code, details) => {
    const { status: answered, body } = await extract({ type: 'data', ...source() });
    expect([answered, body.error.code]).toEqual([status, code]);
    expect(body.error.details ?? '').toContain(details);
  });

  it('leaves the rest of the request at 64 KiB, and is not for batches', async () => {
    const source = { type: 'data', data: bytes.toString('base64') };
    const long = {
      voiceMessage: { instance: 'main', number: '1', mentioned: Array(1000).fill('a'.repeat(100)) },
    };
    const large = await extract(source, { options: long });
    expect([large.status, large.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    const small = { type: 'data', data: 'aGVsbG8=' };
    const { status, body } = await service().call('POST', '/v1/batch', {
      json: { jobs: [{ source: small, output }] },
    });
    expect([status, body.error.code]).toEqual([400, 'INVALID_SOURCE']);
    expect(body.error.details).toContain('jobs[0].source.type: must be url or upload');
  });
});

it('a private address is refused with the name of what opens it, also of a webhook', async () => {
  const source = await extract({ type: 'url', url: 'http://n8n:5678/clip.mp4' });
  expect(source.body.error).toMatchObject({
    code: 'INVALID_SOURCE',
    details: expect.stringContaining('OUTBOUND_ALLOW'),
  });
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const hook = await extract({ type: 'url', url }, { options: { webhook: 'http://n8n:5678/webhook/1' } });
  expect(hook.body.error).toMatchObject({
    code: 'INVALID_WEBHOOK',
    details: expect.stringContaining('OUTBOUND_ALLOW'),
  });
});

it('a web page as a source is called one, with what a share link needs', async () => {
  const url = service().outside.on('/share', (_incoming, response) =>
    response.end('<!DOCTYPE html><html>'.repeat(9)),
  );
  const { error } = await service().run({ source: { type: 'url', url }, output });
  expect(error).toMatchObject({
    code: 'INVALID_VIDEO',
    details: expect.stringMatching(/a web page.*share link.*dl=1/),
  });
});
