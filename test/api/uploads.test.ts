/** Decisions A5: uploads by form and by raw body, what is told of them, who may see them, and what is refused. */
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { until } from 'soundpost-testing/until';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { type Answer, type Ask, type TestService, useClips, useService } from './api-fixture.ts';

const MAX_INPUT_BYTES = 1_000_000;
const DAY_MS = 24 * 60 * 60 * 1000;

const clip = useClips('tone.mp4');
/** Nobody works there before the last tests, which want it. */
const service = useService({ parts: [], environment: { MAX_INPUT_BYTES: String(MAX_INPUT_BYTES) } });

const video = (): Promise<Buffer> => readFile(clip('tone.mp4'));
const MP3 = { format: 'mp3' };

function formOf(bytes: Buffer): FormData {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'talk.mp4');
  return form;
}

/** @param headers beside the type */
function raw(body: Buffer, headers: Record<string, string> = {}, ask: Ask = {}): Promise<Answer> {
  const typed = { 'content-type': 'video/mp4', ...headers };
  return service().call('POST', '/v1/uploads', { body, headers: typed, ...ask });
}

/** Behind an ID3 tag of 300 KB, which is more than is looked at while a file arrives. */
function behindTag(bytes: Buffer): Buffer {
  const header = Buffer.from('ID3\x03\0\0\0\x12\x27\x60', 'latin1');
  return Buffer.concat([header, Buffer.alloc(300_000), bytes]);
}

async function uploaded(): Promise<string> {
  return (await raw(await video())).body.data.file;
}

/** Everything that lies in the folder of uploads. */
async function filesOf({ dataDir }: TestService): Promise<string[]> {
  const entries = await readdir(join(dataDir, 'uploads'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

describe('an upload', () => {
  it.each(['form', 'raw body'])('by %s is stored as it came and told', async (way) => {
    const bytes = await video();
    const sent = way === 'form' ? { body: formOf(bytes) } : undefined;
    const answer = sent ? await service().call('POST', '/v1/uploads', sent) : await raw(bytes);
    expect(answer.status).toBe(201);
    const { file, size, expiresAt, complete } = answer.body.data;
    expect(answer.body).toEqual({ success: true, data: { file, size, expiresAt, complete } });
    expect(file).toMatch(/^upl_[0-9a-f]{16}$/);
    expect({ size, complete }).toEqual({ size: bytes.length, complete: true });
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(DAY_MS - 60_000);
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(DAY_MS);
    expect(answer.headers.location).toBe(`${service().url}/v1/uploads/${file}`);
    expect(await readFile(join(service().dataDir, 'uploads', file))).toEqual(bytes);
    const told = await service().call('GET', `/v1/uploads/${file}`);
    expect([told.status, told.body]).toEqual([200, answer.body]);
  });

  it.each([
    ['a%E2%80%AE4pm.mp4', 'a4pm.mp4'],
    ['a%2F..', 'upload'],
    ['.', 'upload'],
  ])('named %s is known as %s', async (sent, name) => {
    const disposition = `attachment; filename*=UTF-8''${sent}`;
    const { body } = await raw(await video(), { 'content-disposition': disposition });
    const jobId = await service().submit({ source: { type: 'upload', file: body.data.file }, output: MP3 });
    expect((await service().job(jobId)).source.name).toBe(name);
    await service().call('DELETE', `/v1/jobs/${jobId}`);
  });

  it('of exactly the limit is taken', async () => {
    const bytes = await video();
    const { status } = await raw(Buffer.concat([bytes, Buffer.alloc(MAX_INPUT_BYTES - bytes.length)]));
    expect(status).toBe(201);
  });

  it('is named by a job that waits, and by one that failed before it was analysed, with its size while it is kept', async () => {
    const bytes = await video();
    const disposition = { 'content-disposition': 'attachment; filename=talk.mp4' };
    const { body } = await raw(bytes, disposition);
    const source = { type: 'upload', file: body.data.file };
    const jobId = await service().submit({ source, output: MP3 });
    const waiting = await service().job(jobId);
    expect(waiting.inputFile).toBeNull();
    expect(waiting.source).toEqual({ ...source, name: 'talk.mp4' });
    const known = { name: 'talk.mp4', duration: null, format: null, tracks: [] };
    const { body: cancelled } = await service().call('DELETE', `/v1/jobs/${jobId}`);
    expect(cancelled.data).toMatchObject({ status: 'failed', inputFile: { ...known, size: bytes.length } });
    await service().call('DELETE', `/v1/uploads/${body.data.file}`);
    expect((await service().job(jobId)).inputFile).toEqual({ ...known, size: null });
  });

  it('that is deleted is unknown, and its bytes are gone', async () => {
    const file = await uploaded();
    const before = await service().call('GET', `/v1/uploads/${file}`);
    const deleted = await service().call('DELETE', `/v1/uploads/${file}`);
    expect([deleted.status, deleted.body]).toEqual([200, before.body]);
    expect(await filesOf(service())).not.toContain(file);
    const again = await service().call('DELETE', `/v1/uploads/${file}`);
    expect([again.status, again.body.error.code]).toEqual([404, 'UPLOAD_NOT_FOUND']);
  });
});

describe('an upload is unknown', () => {
  it.each(['upl_0000000000000000', 'upl_', '..%2F..%2Fsecret-key', 'UPL_0000000000000000', '%00'])(
    'as %s',
    async (file) => {
      const { status, body } = await service().call('GET', `/v1/uploads/${file}`);
      expect([status, body.error.code]).toEqual([404, 'UPLOAD_NOT_FOUND']);
    },
  );
});

it('is taken whose tags hide what it is until it is stored', async () => {
  const frame = Buffer.concat([Buffer.from('fffb9064', 'hex'), Buffer.alloc(413)]);
  expect((await raw(behindTag(Buffer.alloc(frame.length * 9, frame)))).status).toBe(201);
});

describe('an upload is refused', () => {
  const noMedia = Buffer.from('<html>this is no video</html>'.repeat(5000));

  it.each([
    ['no media', 400, 'INVALID_VIDEO', () => raw(noMedia)],
    ['short and no media', 400, 'INVALID_VIDEO', () => raw(Buffer.from('x'))],
    ['no media behind a tag that hides it', 400, 'INVALID_VIDEO', () => raw(behindTag(noMedia))],
    ['empty', 400, 'INVALID_VIDEO', () => raw(Buffer.alloc(0), { 'content-length': '0' })],
    ['JSON', 415, 'UNSUPPORTED_MEDIA_TYPE', () => service().call('POST', '/v1/uploads', { json: {} })],
    ['a form of fields', 415, 'UNSUPPORTED_MEDIA_TYPE', () => asType('application/x-www-form-urlencoded')],
    ['another multipart', 415, 'UNSUPPORTED_MEDIA_TYPE', () => asType('multipart/mixed; boundary=x')],
    ['of no type', 415, 'UNSUPPORTED_MEDIA_TYPE', () => asType('')],
    [
      'compressed',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      async () => raw(await video(), { 'content-encoding': 'gzip' }),
    ],
    ['too large', 413, 'PAYLOAD_TOO_LARGE', async () => raw(await tooMuch())],
  ])('that is %s', async (_what, status, code, send) => {
    const before = await filesOf(service());
    const answer = await send();
    expect([answer.status, answer.body.success, answer.body.error.code]).toEqual([status, false, code]);
    expect(await filesOf(service())).toEqual(before);
  });

  it('that turns out too large on its way', async () => {
    const before = await filesOf(service());
    const answer = await request(`${service().url}/v1/uploads`, {
      reset: true,
      method: 'POST',
      headers: { 'x-api-key': service().key, 'content-type': 'video/mp4' },
      body: Readable.from([await tooMuch()]),
    });
    expect(answer.statusCode).toBe(413);
    expect(await answer.body.json()).toMatchObject({ error: { code: 'PAYLOAD_TOO_LARGE' } });
    expect(await filesOf(service())).toEqual(before);
  });

  it.each(['at once', 'on its way'])(
    '%s, and a sender hears of it who sends everything first',
    async (when) => {
      const bytes = Buffer.concat([await video(), Buffer.alloc(20 * MAX_INPUT_BYTES)]);
      const chunked = `Transfer-Encoding: chunked\r\n\r\n${bytes.length.toString(16)}`;
      const socket = connect(Number(new URL(service().url).port), '127.0.0.1');
      socket.pause();
      socket.write(rawHead(when === 'at once' ? `Content-Length: ${bytes.length}\r\n` : chunked));
      await new Promise((resolve) => socket.write(bytes, resolve));
      const [answer] = await once(socket.resume(), 'data');
      expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
      socket.destroy();
    },
  );

  it('that is cut short', async () => {
    const before = await filesOf(service());
    const socket = connect(Number(new URL(service().url).port), '127.0.0.1');
    socket.write(rawHead(`Content-Length: ${MAX_INPUT_BYTES}\r\n`));
    socket.write(Buffer.concat([await video(), Buffer.alloc(100_000)]));
    await until('bytes are being stored', unfinished);
    socket.destroy();
    await until('nothing is left of it', async () => !(await unfinished()));
    expect(await filesOf(service())).toEqual(before);
  });

  function rawHead(length: string): string {
    return [
      'POST /v1/uploads HTTP/1.1',
      'Host: test',
      `X-API-Key: ${service().key}`,
      'Content-Type: video/mp4',
      `${length}\r\n`,
    ].join('\r\n');
  }

  async function asType(type: string): Promise<Answer> {
    return service().call('POST', '/v1/uploads', {
      body: await video(),
      headers: type === '' ? {} : { 'content-type': type },
    });
  }

  async function tooMuch(): Promise<Buffer> {
    return Buffer.concat([await video(), Buffer.alloc(MAX_INPUT_BYTES)]);
  }

  async function unfinished(): Promise<boolean> {
    return (await readdir(join(service().dataDir, '.unfinished'))).length > 0;
  }
});

describe('a request about uploads', () => {
  it('takes from the allowance of reads, not of submissions', async () => {
    const key = await service().newKey();
    const { headers } = await raw(await video(), {}, { key });
    expect(headers['ratelimit-policy']).toMatch(/^"read";/);
    const { body } = await service().call('GET', '/v1/usage', { key });
    expect(body.data.submissions.remaining).toBe(body.data.submissions.limit);
  });
});

describe('an upload with an Idempotency-Key', () => {
  it.each(['form', 'raw body'])(
    'by %s is answered again with the first upload, and kept once',
    async (way) => {
      const bytes = await video();
      const headers = { 'idempotency-key': `upload by ${way}` };
      const send = (): Promise<Answer> =>
        way === 'form'
          ? service().call('POST', '/v1/uploads', { body: formOf(bytes), headers })
          : raw(bytes, headers);
      const first = await send();
      expect(first.status).toBe(201);
      const before = (await filesOf(service())).length;
      const again = await send();
      expect(again.status).toBe(201);
      expect(again.headers['idempotent-replayed']).toBe('true');
      expect(again.headers.location).toBe(first.headers.location);
      expect(again.body).toEqual(first.body);
      // The second copy goes once the answer is out.
      await until('the second copy to go', async () => (await filesOf(service())).length === before);
    },
  );

  it('is refused for other bytes of the same length and name', async () => {
    const bytes = await video();
    const headers = { 'idempotency-key': 'one key for two files' };
    expect((await raw(bytes, headers)).status).toBe(201);
    const other = Buffer.from(bytes);
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
    const before = (await filesOf(service())).length;
    const answer = await raw(other, headers);
    expect(answer.status).toBe(422);
    expect(answer.body.error.code).toBe('IDEMPOTENCY_MISMATCH');
    // The second copy goes once the answer is out.
    await until('the second copy to go', async () => (await filesOf(service())).length === before);
  });
});

describe('an upload, once a worker runs,', () => {
  it('that is deleted stays for the job that uses it', async () => {
    const file = await uploaded();
    const job = { source: { type: 'upload', file }, output: MP3 };
    const jobId = await service().submit(job);
    expect((await service().call('DELETE', `/v1/uploads/${file}`)).status).toBe(200);
    expect((await service().call('GET', `/v1/uploads/${file}`)).status).toBe(404);
    const refused = await service().call('POST', '/v1/extract', { json: job });
    expect(refused.body.error.code).toBe('INVALID_SOURCE');
    expect(await filesOf(service())).toContain(file);
    await service().startWorker();
    expect(await service().ended(jobId)).toMatchObject({ status: 'completed' });
  });

  it('serves any number of jobs, under the name that it came with', async () => {
    const name = `attachment; filename*=UTF-8''gr%C3%BC%C3%9Fe%2F..%2Ftalk.mp4`;
    const { body } = await raw(await video(), { 'content-disposition': name });
    const source = { type: 'upload', file: body.data.file };
    const jobs = await Promise.all([1, 2].map(() => service().run({ source, output: MP3 })));
    for (const job of jobs) {
      expect(job).toMatchObject({ status: 'completed', inputFile: { name: 'talk.mp4', format: 'mp4' } });
    }
  });
});
