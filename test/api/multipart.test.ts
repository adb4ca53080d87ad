/** Forms as they come from the network: what RFC 7578 allows and what it does not, on both routes that take a file along. */
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { type Answer, useClips, useService } from './api-fixture.ts';

const MAX_INPUT_BYTES = 200_000;
const BOUNDARY = 'a-boundary';

const clip = useClips('tone.mp4');
const service = useService({ environment: { MAX_INPUT_BYTES: String(MAX_INPUT_BYTES) } });

const JOB = JSON.stringify({ output: { format: 'mp3' } });
const video = (): Promise<Buffer> => readFile(clip('tone.mp4'));

interface Part {
  readonly disposition: string;
  readonly content: string | Buffer;
}

const field = (name: string, content: string): Part => ({ disposition: `name="${name}"`, content });
const file = (content: Buffer, name = 'file', filename = 'talk.mp4'): Part => ({
  disposition: `name="${name}"; filename="${filename}"`,
  content,
});

function bodyOf(parts: readonly Part[], end = `--${BOUNDARY}--\r\n`): Buffer {
  const encoded = parts.flatMap(({ disposition, content }) => [
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...encoded, Buffer.from(end)]);
}

function send(path: string, body: Buffer, boundary = `; boundary=${BOUNDARY}`): Promise<Answer> {
  const headers = { 'content-type': `multipart/form-data${boundary}` };
  return service().call('POST', path, { body, headers });
}

async function stored(): Promise<string[]> {
  const entries = await readdir(join(service().dataDir, 'uploads')).catch(() => []);
  return entries.filter((name) => name.startsWith('upl_'));
}

async function unfinished(): Promise<number> {
  return (await readdir(join(service().dataDir, '.unfinished')).catch(() => [])).length;
}

describe('a form is taken', () => {
  it('with its file before or after its fields', async () => {
    for (const parts of [
      [field('request', JOB), file(await video())],
      [file(await video()), field('request', JOB)],
    ]) {
      const { status, body } = await send('/v1/extract', bodyOf(parts));
      expect(status).toBe(202);
      expect(await service().ended(body.data.jobId)).toMatchObject({
        status: 'completed',
        inputFile: { name: 'talk.mp4', size: (await video()).length },
      });
    }
  });

  it.each([
    ['gruesse.mp4', 'gruesse.mp4'],
    ['grüße 👋.mp4', 'grüße 👋.mp4'],
    ['C:\\\\videos\\\\talk.mp4', 'talk.mp4'],
    ['../../etc/passwd', 'passwd'],
  ])('with the file name %s, which becomes %s', async (given, kept) => {
    const { body } = await send('/v1/uploads', bodyOf([file(await video(), 'file', given)]));
    const source = { type: 'upload', file: body.data.file };
    const jobId = await service().submit({ source, output: { format: 'mp3' } });
    expect((await service().job(jobId)).source.name).toBe(kept);
    await service().call('DELETE', `/v1/jobs/${jobId}`);
  });

  it('whose file comes byte by byte', async () => {
    const body = bodyOf([file((await video()).subarray(0, 3000))]);
    const socket = connect(Number(new URL(service().url).port), '127.0.0.1');
    socket.setNoDelay(true);
    const answer = new Promise<string>((resolve) => {
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (text.includes('}}')) resolve(text);
      });
    });
    socket.write(headOf('/v1/uploads', body.length));
    for (const byte of body) {
      socket.write(Buffer.of(byte));
    }
    expect(await answer).toMatch(/^HTTP\/1.1 201 .*"size":3000/s);
    socket.destroy();
  });
});

describe('a form is refused, and nothing of it stays,', () => {
  const cases: [string, number, string, string, () => Promise<Buffer>][] = [
    ['without a file', 400, 'INVALID_REQUEST', '/v1/extract', async () => bodyOf([field('request', JOB)])],
    ['without anything', 400, 'INVALID_REQUEST', '/v1/uploads', async () => bodyOf([])],
    [
      'with its file under another name',
      400,
      'INVALID_REQUEST',
      '/v1/uploads',
      async () => bodyOf([file(await video(), 'video')]),
    ],
    [
      'with two files',
      400,
      'INVALID_REQUEST',
      '/v1/uploads',
      async () => bodyOf([file(await video()), file(await video())]),
    ],
    [
      'with too many fields',
      400,
      'INVALID_REQUEST',
      '/v1/uploads',
      async () => bodyOf([file(await video()), ...Array.from({ length: 20 }, (_, n) => field(`f${n}`, 'x'))]),
    ],
    [
      'with a field that is too large',
      413,
      'PAYLOAD_TOO_LARGE',
      '/v1/extract',
      async () => bodyOf([file(await video()), field('request', ' '.repeat(300 * 1024))]),
    ],
    [
      'with a file that is too large',
      413,
      'PAYLOAD_TOO_LARGE',
      '/v1/uploads',
      async () => bodyOf([file(Buffer.concat([await video(), Buffer.alloc(MAX_INPUT_BYTES)]))]),
    ],
    [
      'that is far too large',
      413,
      'PAYLOAD_TOO_LARGE',
      '/v1/uploads',
      async () => bodyOf([file(Buffer.concat([await video(), Buffer.alloc(10_000_000)]))]),
    ],
    [
      'with a file that is no media',
      400,
      'INVALID_VIDEO',
      '/v1/uploads',
      async () => bodyOf([file(Buffer.from('#!/bin/sh\n'.repeat(20_000)))]),
    ],
    ['with an empty file', 400, 'INVALID_VIDEO', '/v1/uploads', async () => bodyOf([file(Buffer.alloc(0))])],
    [
      'that ends in its file',
      400,
      'INVALID_REQUEST',
      '/v1/uploads',
      async () => bodyOf([file(await video())]).subarray(0, -30),
    ],
    [
      'without its last boundary',
      400,
      'INVALID_REQUEST',
      '/v1/uploads',
      async () => bodyOf([file(await video())], ''),
    ],
    ['without its request', 400, 'INVALID_REQUEST', '/v1/extract', async () => bodyOf([file(await video())])],
    [
      'with a request that is no JSON',
      400,
      'INVALID_REQUEST',
      '/v1/extract',
      async () => bodyOf([file(await video()), field('request', '{')]),
    ],
    [
      'with a request that is wrong',
      400,
      'INVALID_OUTPUT',
      '/v1/extract',
      async () => bodyOf([file(await video()), field('request', '{"output":{"format":"mp2"}}')]),
    ],
  ];

  it.each(cases)('%s', async (_what, status, code, path, body) => {
    const before = await stored();
    const answer = await send(path, await body());
    expect([answer.status, answer.body.success, answer.body.error.code]).toEqual([status, false, code]);
    expect(await stored()).toEqual(before);
    expect(await unfinished()).toBe(0);
  });

  it.each([
    [
      '/v1/extract',
      field('options', '{}'),
      'options: the form takes the parts file and request (text), each once',
    ],
    [
      '/v1/extract',
      field('request', JOB),
      'request: the form takes the parts file and request (text), each once',
    ],
    ['/v1/uploads', field('request', JOB), 'request: the form takes one part, file'],
    ['/v1/uploads', file(Buffer.from('x'), 'cover'), 'cover: the form takes one part, file'],
  ])('to %s with a part too many, which is named: %j', async (path, part, details) => {
    const before = await stored();
    const parts = [file(await video()), ...(path === '/v1/extract' ? [field('request', JOB)] : [])];
    for (const body of [bodyOf([...parts, part]), bodyOf([part, ...parts])]) {
      const answer = await send(path, body);
      expect([answer.status, answer.body.error.code, answer.body.error.details]).toEqual([
        400,
        'INVALID_REQUEST',
        details,
      ]);
    }
    expect(await stored()).toEqual(before);
  });

  it.each(['', '; boundary=', `; boundary=${'x'.repeat(300)}`])(
    'with the type multipart/form-data%s',
    async (boundary) => {
      const answer = await send('/v1/uploads', bodyOf([file(await video())]), boundary);
      expect([answer.status, answer.body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    },
  );

  it('whose sender goes away in the middle', async () => {
    const before = await stored();
    const body = bodyOf([file(Buffer.concat([await video(), Buffer.alloc(100_000)]))]);
    const socket = connect(Number(new URL(service().url).port), '127.0.0.1');
    socket.write(headOf('/v1/uploads', body.length));
    socket.write(body.subarray(0, -1000));
    await until('bytes are being stored', async () => (await unfinished()) > 0);
    socket.destroy();
    await until('nothing is left of it', async () => (await unfinished()) === 0);
    expect(await stored()).toEqual(before);
  });
});

describe('a form of a job', () => {
  it('that is refused after its file had come leaves no file', async () => {
    const before = await stored();
    const key = await service().newKey({ scopes: ['extract'] });
    const request = JSON.stringify({ output: { format: 'mp3' }, options: { priority: 'high' } });
    const { status } = await service().call('POST', '/v1/extract', {
      key,
      body: bodyOf([file(await video()), field('request', request)]),
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    });
    expect(status).toBe(403);
    expect(await stored()).toEqual(before);
  });

  it('that is repeated leaves one file', async () => {
    const send = () =>
      service().call('POST', '/v1/extract', {
        body,
        headers: {
          'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
          'idempotency-key': 'the same form',
        },
      });
    const body = bodyOf([file(await video()), field('request', JOB)]);
    const first = await send();
    const once = await stored();
    const second = await send();
    expect(second.body).toEqual(first.body);
    // The answer does not wait for it.
    await until('the second file is gone', async () => (await stored()).length === once.length);
    expect(await stored()).toEqual(once);
  });
});

function headOf(path: string, length: number): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: test',
    `X-API-Key: ${service().key}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');
}
