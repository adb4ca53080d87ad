/** What a destination may be (decisions A8), told at once: each fault is an INVALID_REQUEST with its path. */
import { describe, expect, it } from 'vitest';
import { type Answer, type Json, useService } from './api-fixture.ts';

const names = {
  'media.example': ['93.184.215.14'],
  'bucket.example': ['93.184.215.15'],
  'inside.example': ['10.1.2.3'],
  'partly.example': ['93.184.215.14', '127.0.0.1'],
  'silent.example': [],
};
const service = useService({ parts: [], names });

const source = { type: 'url', url: 'https://media.example/talk.mp4' };
const GOOD = 'https://bucket.example/talk.mp3?signature=abc';
const extract = (job: object): Promise<Answer> =>
  service().call('POST', '/v1/extract', { json: { source, output: { format: 'mp3' }, ...job } });

function expectFault({ status, body }: Answer, path: string): void {
  expect({ status, code: body.error?.code, details: body.error?.details }).toEqual({
    status: 400,
    code: 'INVALID_REQUEST',
    details: expect.stringContaining(`${path}: `),
  });
}

const badUrls: readonly (readonly [what: string, url: unknown])[] = [
  ['nothing', ''],
  ['no text', 7],
  ['null', null],
  ['no address', 'bucket/talk.mp3'],
  ['another scheme', 's3://bucket/talk.mp3'],
  ['a file', 'file:///etc/passwd'],
  ['http', 'http://bucket.example/talk.mp3'],
  ['credentials', 'https://key:secret@bucket.example/talk.mp3'],
  ['a port that is not open', 'https://bucket.example:9000/talk.mp3'],
  ['a private address', 'https://10.0.0.1/talk.mp3'],
  ['this machine', 'https://127.0.0.1/talk.mp3'],
  ['a name of a private address', 'https://inside.example/talk.mp3'],
  ['a name of which one address is private', 'https://partly.example/talk.mp3'],
  ['a placeholder for the host', 'https://{name}/talk.mp3'],
  ['too long', `https://bucket.example/${'a'.repeat(2048)}`],
  ['too long once it is filled in', `https://bucket.example/${'a'.repeat(2_000)}/{name}.{extension}`],
];

const badHeaders: readonly (readonly [what: string, path: string, headers: unknown])[] = [
  ['no object', 'headers', 'Content-Type: a/b'],
  ['no text', 'headers.X-One', { 'X-One': 7 }],
  ['a name with a space', 'headers.X One', { 'X One': 'a' }],
  ['a line break', 'headers.X-One', { 'X-One': 'a\r\nHost: b' }],
  ['too long a value', 'headers.X-One', { 'X-One': 'a'.repeat(1025) }],
  ['too many', 'headers', Object.fromEntries(Array.from({ length: 21 }, (_, nth) => [`X-${nth}`, 'a']))],
  ...[
    'Host',
    'content-length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'Upgrade',
    'Expect',
    'TE',
  ].map((name) => [name, `headers.${name}`, { [name]: 'a' }] as const),
  ...['Trailer', 'Proxy-Authorization', 'Repr-Digest'].map(
    (name) => [name, `headers.${name}`, { [name]: 'a' }] as const,
  ),
];

describe('A8. destination: what is refused', () => {
  it.each(badUrls)('as url: %s', async (_what, url) => {
    expectFault(await extract({ destination: { url } }), 'destination.url');
  });

  it.each(badHeaders)('as headers: %s', async (_what, path, headers) => {
    expectFault(await extract({ destination: { url: GOOD, headers } }), `destination.${path}`);
  });

  it('headers of all destinations of a job of more than 8 KiB together', async () => {
    const headers = (bytes: number) =>
      Object.fromEntries(
        Array.from({ length: 4 }, (_, nth) => [`x-${nth}`, 'a'.repeat(bytes / 4 - 'x-0'.length)]),
      );
    const ask = (bytes: number): Promise<Answer> =>
      extract({
        output: undefined,
        destination: { url: GOOD, headers: headers(4096) },
        outputs: [
          { name: 'full', format: 'mp3' },
          { name: 'small', format: 'opus', destination: { url: GOOD, headers: headers(bytes) } },
        ],
      });
    expect((await ask(4096)).status).toBe(202);
    const { status, body } = await ask(4100);
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(body.error.details).toContain('8 KiB in total');
  });

  it('a destination without an address, and one with another field', async () => {
    expectFault(await extract({ destination: {} }), 'destination.url');
    expectFault(await extract({ destination: { url: GOOD, method: 'POST' } }), 'destination.method');
  });

  it('the same of an output', async () => {
    const bad = { url: 'https://10.0.0.1/talk.mp3' };
    expectFault(await extract({ output: { format: 'mp3', destination: bad } }), 'output.destination.url');
    const outputs = [
      { name: 'full', format: 'mp3' },
      { name: 'peaks', format: 'waveform', destination: bad },
    ];
    expectFault(await extract({ output: undefined, outputs }), 'outputs[1].destination.url');
  });

  it('the same of a job in a batch', async () => {
    const job = { source, output: { format: 'mp3' } };
    const jobs = [job, { ...job, destination: { url: 'https://10.0.0.1/a' } }];
    const answer = await service().call('POST', '/v1/batch', { json: { jobs } });
    expectFault(answer, 'jobs[1].destination.url');
  });

  it('the same beside other faults, all told at once', async () => {
    const { body } = await extract({
      source: { type: 'url', url: 'https://10.0.0.1/a.mp4' },
      output: { format: 'mp3', bitrate: '1k' },
      destination: { url: 'https://10.0.0.1/a' },
    });
    for (const path of ['source.url', 'output.bitrate', 'destination.url']) {
      expect(body.error.details).toContain(`${path}: `);
    }
  });

  it('one address for several outputs, which would overwrite one another', async () => {
    const outputs: Json[] = [
      { name: 'full', format: 'mp3' },
      { name: 'small', format: 'opus' },
    ];
    const several = (url: string) => extract({ output: undefined, outputs, destination: { url } });
    expectFault(await several(GOOD), 'destination.url');
    // In the query it is no part of the path.
    expectFault(await several('https://bucket.example/talk?name={name}'), 'destination.url');
    expect((await several('https://bucket.example/{name}.{extension}?signature=abc')).status).toBe(202);
    outputs[0].destination = { url: GOOD };
    expect((await several(GOOD)).status).toBe(202);
  });
});

describe('A8. destination: what is taken', () => {
  it.each([
    ['an address with a query', { url: GOOD }],
    ['a name without an answer, which is looked at again', { url: 'https://silent.example/talk.mp3' }],
    [
      'headers',
      { url: GOOD, headers: { 'x-ms-blob-type': 'BlockBlob', 'Content-Type': 'audio/x', 'X-Empty': '' } },
    ],
    ['placeholders', { url: 'https://bucket.example/{name}/talk.{extension}?signature=abc' }],
  ])('%s', async (_what, destination) => {
    const { status, body } = await extract({ destination });
    expect(status, JSON.stringify(body)).toBe(202);
    const job = await service().job(body.data.jobId);
    expect(job.destination).toEqual({
      url: destination.url.split('?')[0],
      ...('headers' in destination && { headers: Object.keys(destination.headers ?? {}) }),
      status: 'pending',
      error: null,
    });
    expect(job.output.destination).toBeUndefined();
  });

  it('is bound to an Idempotency-Key', async () => {
    const submit = (url: string) =>
      service().call('POST', '/v1/extract', {
        json: { source, output: { format: 'mp3' }, destination: { url } },
        headers: { 'idempotency-key': 'a destination' },
      });
    const first = await submit(GOOD);
    const again = await submit(GOOD);
    expect(again.body.data.jobId).toBe(first.body.data.jobId);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect((await submit(`${GOOD}d`)).body.error.code).toBe('IDEMPOTENCY_MISMATCH');
  });
});
