import { describe, expect, it } from 'vitest';
import { type Answer, type Ask, type Json, useService } from './api-fixture.ts';

/** Names of the documentation's domain, so that nothing here could ever lead outside. */
const names = {
  'media.example': ['93.184.215.14'],
  'inside.example': ['10.1.2.3'],
  'partly.example': ['93.184.215.14', '127.0.0.1'],
  'metadata.example': ['169.254.169.254'],
  'silent.example': [],
};
const PUBLIC = 'https://media.example/talk.mp4';

const service = useService({ parts: [], names });

const base = (): Json => ({ source: { type: 'url', url: PUBLIC }, output: { format: 'mp3' } });

/** The base request with a value put at a path such as `output.start`. */
function withValue(path: string, value: unknown, job = base()): Json {
  const fields = path.split('.');
  const last = fields.pop() ?? '';
  const parent = fields.reduce((object, field) => {
    object[field] ??= {};
    return object[field];
  }, job);
  parent[last] = value;
  return job;
}

const extract = (json: unknown, ask: Ask = {}): Promise<Answer> =>
  service().call('POST', '/v1/extract', { ...ask, json });
const batch = (json: unknown, ask: Ask = {}): Promise<Answer> =>
  service().call('POST', '/v1/batch', { ...ask, json });

function expectFault({ status, body }: Answer, code: string, path: string): void {
  expect({ status, success: body.success, code: body.error.code, details: body.error.details }).toEqual({
    status: 400,
    success: false,
    code,
    details: expect.stringContaining(`${path}: `),
  });
}

const voice = { instance: 'main', number: '+12025550101' };

describe('A2. Request: one job: each bad value has the code of its row', () => {
  const rows: readonly (readonly [path: string, code: string, ...values: unknown[]])[] = [
    ['source.type', 'INVALID_SOURCE', 'ftp', '', null, 7],
    [
      'source.url',
      'INVALID_SOURCE',
      ...['', 'talk.mp4', 'ftp://media.example/a', 'file:///etc/passwd', 7, null],
      `https://media.example/${'a'.repeat(2048)}`,
      ...[
        'https://user:secret@media.example/a',
        'https://media.example:22/a',
        'https://media.example:9000/a',
      ],
      ...[
        'http://127.0.0.1/a',
        'http://[::1]/a',
        'http://0x7f.1/a',
        'http://169.254.169.254/latest',
        'http://localhost/a',
      ],
      ...['https://inside.example/a', 'https://partly.example/a', 'https://metadata.example/a'],
    ],
    ['output.format', 'INVALID_OUTPUT', 'mp4', 'MP3', '', null, 3],
    ['output.quality', 'INVALID_OUTPUT', 'best', '', null, 1],
    [
      'output.bitrate',
      'INVALID_OUTPUT',
      ...['192', '192K', '0k', '012k', '1000k', '-1k', '1.5k', 192, null],
      ...['31k', '321k'],
    ],
    ['output.copy', 'INVALID_OUTPUT', 'always', true, null],
    ['output.normalize', 'INVALID_OUTPUT', 'yes', 1, null],
    ['output.loudness', 'INVALID_OUTPUT', -36.1, -5.9, 0, '-16', null],
    ['output.track', 'INVALID_OUTPUT', -1, 1.5, '', 'english', 'x', true, null],
    ['output.start', 'INVALID_OUTPUT', -1, '1', null],
    ['output.end', 'INVALID_OUTPUT', 0, -1, '1', null],
    ['output.channels', 'INVALID_OUTPUT', 0, 3, 1.5, '2', null],
    ['output.sampleRate', 'INVALID_OUTPUT', 7999, 192_001, 44_100.5, 47_999, '48000', null],
    ['output.preserveMetadata', 'INVALID_OUTPUT', 'no', 0, null],
    [
      'options.filename',
      'INVALID_REQUEST',
      ...['', 'a'.repeat(201), 'a/b', 'a\\b', 'a\u0000b', 'a\nb', 'a\u007fb', 'a\ud800b', 7, null],
      ...['.', '..', 'talk\u202e3pm', 'a\u2066b', 'a\u200fb', '\u061ca'],
    ],
    [
      'options.webhook',
      'INVALID_WEBHOOK',
      ...['', 'hook', 'http://media.example/hook', 'https://127.0.0.1/hook', 'https://inside.example/hook'],
      ...['https://user:secret@media.example/hook', 'https://media.example:22/hook', 7, null],
      `https://media.example/${'a'.repeat(2048)}`,
    ],
    ['options.priority', 'INVALID_REQUEST', 'urgent', 1, '', null],
    ['options.voiceMessage', 'INVALID_REQUEST', 'main', 7, null],
    ['options.voiceMessage.instance', 'INVALID_REQUEST', '', 'a b', 'a'.repeat(65), 7],
    ['options.voiceMessage.number', 'INVALID_REQUEST', '', true, null],
    ['options.voiceMessage.delay', 'INVALID_REQUEST', -1, 60_001, 1.5, '5'],
    ['options.voiceMessage.linkPreview', 'INVALID_REQUEST', 'yes'],
    ['options.voiceMessage.mentionsEveryOne', 'INVALID_REQUEST', 'yes'],
    ['options.voiceMessage.mentioned', 'INVALID_REQUEST', '+1202'],
    ['options.voiceMessage.quoted', 'INVALID_REQUEST', 'message'],
  ];
  const cases = rows.flatMap(([path, code, ...values]) => values.map((value) => ({ path, code, value })));

  it.each(cases)('$path = $value is $code', async ({ path, code, value }) => {
    const job = path.startsWith('options.voiceMessage.')
      ? withValue('options.voiceMessage', { ...voice })
      : base();
    expectFault(await extract(withValue(path, value, job)), code, path);
  });

  it.each([
    ['no upload at all', 'upl_0123456789abcdef'],
    ['no form of an upload', 'video.mp4'],
    ['a job', 'job_0123456789abcdef'],
  ])('source.file that names %s is INVALID_SOURCE', async (_what, file) => {
    const answer = await extract({ ...base(), source: { type: 'upload', file } });
    expectFault(answer, 'INVALID_SOURCE', 'source.file');
  });

  it.each([
    ['end not after start', { start: 3, end: 3 }, 'end'],
    ['a bitrate for flac', { format: 'flac', bitrate: '320k' }, 'bitrate'],
    ['a bitrate for wav', { format: 'wav', bitrate: '320k' }, 'bitrate'],
    ['a bitrate above voice', { format: 'voice', bitrate: '65k' }, 'bitrate'],
    ['a bitrate below opus', { format: 'opus', bitrate: '5k' }, 'bitrate'],
    ['two channels for voice', { format: 'voice', channels: 2 }, 'channels'],
    ['44.1 kHz for opus', { format: 'opus', sampleRate: 44_100 }, 'sampleRate'],
    ['48 kHz for voice', { format: 'voice', sampleRate: 48_000 }, 'sampleRate'],
    ['a bitrate above voice', { format: 'voice', bitrate: '41k' }, 'bitrate'],
    ['192 kHz for mp3', { format: 'mp3', sampleRate: 192_000 }, 'sampleRate'],
  ])('%s is INVALID_OUTPUT', async (_what, output, field) => {
    const answer = await extract({ ...base(), output: { format: 'mp3', ...output } });
    expectFault(answer, 'INVALID_OUTPUT', `output.${field}`);
  });

  it.each([
    ['mp3', '320k'],
    ['aac', '512k'],
    ['m4a', '32k'],
    ['ogg', '320k'],
    ['opus', '6k'],
    ['opus', '510k'],
    ['voice', '10k'],
    ['voice', '40k'],
  ])('%s takes %s, the edge of its range', async (format, bitrate) => {
    expect((await extract({ ...base(), output: { format, bitrate } })).status).toBe(202);
  });
});

describe('A2. Request: one job: required and unknown fields', () => {
  it.each([
    ['source', { output: { format: 'mp3' } }],
    ['source.type', { ...base(), source: { url: PUBLIC } }],
    ['source.url', { ...base(), source: { type: 'url' } }],
    ['source.file', { ...base(), source: { type: 'upload' } }],
    ['output', { source: base().source }],
    ['output.format', { ...base(), output: {} }],
    ['options.voiceMessage.instance', { ...base(), options: { voiceMessage: { number: '1' } } }],
    ['options.voiceMessage.number', { ...base(), options: { voiceMessage: { instance: 'a' } } }],
    ['options.voiceMessage.quoted.key', { ...base(), options: { voiceMessage: { ...voice, quoted: {} } } }],
  ])('%s missing is INVALID_REQUEST', async (path, json) => {
    expectFault(await extract(json), 'INVALID_REQUEST', path);
  });

  it.each([
    ['webhook', withValue('webhook', 'https://media.example/hook')],
    ['source.cookies', withValue('source.cookies', {})],
    ['source.file', withValue('source.file', 'upl_0123456789abcdef')],
    ['output.codec', withValue('output.codec', 'mp3')],
    ['options.callback', withValue('options.callback', 'x')],
    ['options.voiceMessage.audio', withValue('options.voiceMessage', { ...voice, audio: 'x' })],
    ['__proto__', JSON.parse(`{"__proto__": {"output": {}}, ${JSON.stringify(base()).slice(1)}`)],
  ])('%s is not a field, which INVALID_REQUEST says', async (path, json) => {
    expectFault(await extract(json), 'INVALID_REQUEST', path);
  });

  it.each([
    ['null', 'null'],
    ['a list', '[]'],
    ['a string', '"job"'],
    ['a number', '1'],
    ['nothing', ''],
    ['no JSON', '{"source":'],
  ])('a body that is %s is INVALID_REQUEST', async (_what, body) => {
    const { status, body: answer } = await service().call('POST', '/v1/extract', {
      body,
      headers: { 'content-type': 'application/json' },
    });
    expect([status, answer.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });

  it('a body that is nested beyond all measure is refused, not an accident', async () => {
    const depth = 60_000;
    const quoted = `{"key":{"id":"1"},"deep":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    const json = JSON.stringify({ ...base(), options: { voiceMessage: { ...voice, quoted: 'Q' } } });
    const { status } = await service().call('POST', '/v1/extract', {
      body: json.replace('"Q"', quoted),
      headers: { 'content-type': 'application/json', 'idempotency-key': 'deep' },
    });
    expect(status).toBeLessThan(500);
  });
});

describe('A2. Request: one job: of several faults', () => {
  const faulty = {
    INVALID_REQUEST: { options: { priority: 'urgent' } },
    INVALID_SOURCE: { source: { type: 'url', url: 'http://127.0.0.1/a' } },
    INVALID_OUTPUT: { output: { format: 'mp3', quality: 'best' } },
    INVALID_WEBHOOK: { options: { webhook: 'http://media.example/hook' } },
    FORBIDDEN: { options: { priority: 'high' } },
  } as const;
  const order = Object.keys(faulty) as (keyof typeof faulty)[];
  const pairs = order.flatMap((first, index) => order.slice(index + 1).map((second) => ({ first, second })));

  it.each(pairs)('$first wins over $second', async ({ first, second }) => {
    const key = await service().newKey({ scopes: ['extract'] });
    const one: Json = faulty[first];
    const two: Json = faulty[second];
    const json = { ...base(), ...two, ...one, options: { ...two.options, ...one.options } };
    const { body } = await extract(json, { key });
    // Two faults of one field are one: the priority is either unknown or not allowed.
    expect(body.error.code).toBe(first);
  });

  it('details lists every one with its path', async () => {
    const { body } = await extract({
      source: { type: 'url', url: 'https://inside.example/a', extra: 1 },
      output: { format: 'flac', bitrate: '128k', quality: 'best', start: 5, end: 2, channels: 9 },
      options: { filename: 'a/b', webhook: 'http://media.example/', priority: 'urgent' },
      extra: 1,
    });
    const paths = body.error.details.split('; ').map((fault: string) => fault.split(': ')[0]);
    expect(paths.toSorted()).toEqual(
      [
        ...['source.extra', 'source.url', 'extra'],
        ...['output.bitrate', 'output.quality', 'output.end', 'output.channels'],
        ...['options.filename', 'options.webhook', 'options.priority'],
      ].toSorted(),
    );
    expect(body.error.code).toBe('INVALID_REQUEST');
  });

  it('says nothing of the address that a name has', async () => {
    const { bytes } = await extract({ ...base(), source: { type: 'url', url: 'https://inside.example/a' } });
    expect(bytes.toString()).not.toMatch(/10\.1\.2\.3|inside\.example|RFC/);
  });
});

describe('A2. Request: one job: names are resolved on submission', () => {
  it.each(['inside', 'partly', 'metadata'])(
    '%s.example has a non-public address and is refused',
    async (name) => {
      const source = { type: 'url', url: `https://${name}.example/a` };
      expectFault(await extract({ ...base(), source }), 'INVALID_SOURCE', 'source.url');
    },
  );

  it('a name without an answer is left to the worker', async () => {
    const source = { type: 'url', url: 'https://silent.example/a' };
    expect((await extract({ ...base(), source })).status).toBe(202);
  });
});

describe('A2. Request: one job: scopes', () => {
  it('priority high needs the scope priority', async () => {
    const json = withValue('options.priority', 'high');
    const { status, body } = await extract(json, { key: await service().newKey({ scopes: ['extract'] }) });
    expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    const allowed = await service().newKey({ scopes: ['extract', 'priority'] });
    expect((await extract(json, { key: allowed })).status).toBe(202);
  });

  it('voiceMessage needs the scope voice, and an instance of the key', async () => {
    const json = withValue('options.voiceMessage', voice);
    const ask = async (scopes: ('extract' | 'voice')[], instances: string[]): Promise<Json> => {
      const { status, body } = await extract(json, { key: await service().newKey({ scopes, instances }) });
      return [status, body.error?.code];
    };
    expect(await ask(['extract'], ['*'])).toEqual([403, 'FORBIDDEN']);
    expect(await ask(['extract', 'voice'], ['other'])).toEqual([403, 'FORBIDDEN']);
    expect(await ask(['extract', 'voice'], [])).toEqual([403, 'FORBIDDEN']);
    expect(await ask(['extract', 'voice'], ['other', 'main'])).toEqual([202, undefined]);
    expect(await ask(['extract', 'voice'], ['*'])).toEqual([202, undefined]);
  });
});

describe('A2. Request: one job: defaults and what is in force', () => {
  const inForce = async (json: unknown): Promise<Json> =>
    service().job(await service().submit(json as object));

  it('of a request that gives only what is required', async () => {
    expect(await inForce(base())).toMatchObject({
      output: { format: 'mp3', copy: 'auto', normalize: false, preserveMetadata: true },
      options: { priority: 'normal' },
    });
  });

  it('a loudness implies normalize', async () => {
    expect((await inForce(withValue('output.loudness', -23))).output).toMatchObject({
      normalize: true,
      loudness: -23,
    });
  });

  it('every field that was given', async () => {
    const output = {
      format: 'm4a',
      ...{ quality: 'low', bitrate: '64k', copy: 'never', normalize: true, loudness: -20.5, track: 'de-CH' },
      ...{ start: 0.5, end: 1.25, channels: 1, sampleRate: 44_100, preserveMetadata: false },
    };
    const options = {
      ...{ filename: 'Übung 1', webhook: 'https://media.example/hook', priority: 'high' },
      voiceMessage: {
        ...{ instance: 'main', number: '12025550101', delay: 5, linkPreview: false, mentionsEveryOne: true },
        ...{ mentioned: ['1'], quoted: { key: { id: 'A' }, message: { conversation: 'hello' } } },
      },
    };
    expect(await inForce({ ...base(), output, options })).toMatchObject({ output, options });
  });

  it('a number may be an integer', async () => {
    const job = await inForce(withValue('options.voiceMessage', { ...voice, number: 12_025_550_101 }));
    expect(job.options.voiceMessage.number).toBe('12025550101');
  });

  it('addresses are answered without what their query may hide', async () => {
    const job = await inForce({
      ...base(),
      source: { type: 'url', url: `${PUBLIC}?signature=secret#part` },
      options: { webhook: 'https://media.example/hook?token=secret' },
    });
    expect(job.source).toEqual({ type: 'url', url: PUBLIC });
    expect(job.options.webhook).toBe('https://media.example/hook');
    expect(JSON.stringify(job)).not.toContain('secret');
  });
});

describe('A2. Batch', () => {
  const unfinished = async (key: string): Promise<number> =>
    (await service().call('GET', '/v1/usage', { key })).body.data.unfinishedJobs.used;

  it('of more than 10 items is TOO_MANY_JOBS, whatever else is wrong with it', async () => {
    const { status, body } = await batch({ jobs: Array.from({ length: 11 }, () => ({})), extra: 1 });
    expect([status, body.error.code]).toEqual([400, 'TOO_MANY_JOBS']);
    expect(body.error.message).toContain('max 10');
  });

  it.each([
    ['empty', { jobs: [] }, 'jobs'],
    ['without jobs', {}, 'jobs'],
    ['with something else than a list', { jobs: { 0: base() } }, 'jobs'],
    ['with an unknown field', { jobs: [base()], name: 'x' }, 'name'],
  ])('%s is INVALID_REQUEST', async (_what, json, path) => {
    expectFault(await batch(json), 'INVALID_REQUEST', path);
  });

  it('with one bad item is rejected whole, and nothing is queued', async () => {
    const key = await service().newKey();
    const jobs = [base(), base(), base(), withValue('output.bitrate', '999k')];
    expectFault(await batch({ jobs }, { key }), 'INVALID_OUTPUT', 'jobs[3].output.bitrate');
    const refused = [base(), withValue('source.url', 'https://inside.example/a')];
    expectFault(await batch({ jobs: refused }, { key }), 'INVALID_SOURCE', 'jobs[1].source.url');
    const forbidden = [base(), withValue('options.priority', 'high')];
    const weak = await service().newKey({ scopes: ['extract', 'read'] });
    expect((await batch({ jobs: forbidden }, { key: weak })).body.error.code).toBe('FORBIDDEN');
    expect([await unfinished(key), await unfinished(weak)]).toEqual([0, 0]);
  });

  it('names the faults of several items at once', async () => {
    const { body } = await batch({
      jobs: [withValue('output.start', -1), base(), withValue('source.url', 'https://inside.example/a')],
      webhook: 'http://media.example/',
    });
    expect(body.error.code).toBe('INVALID_SOURCE');
    for (const path of ['jobs[0].output.start: ', 'jobs[2].source.url: ', 'webhook: ']) {
      expect(body.error.details).toContain(path);
    }
  });

  it("tells a fault of the batch's own webhook once, under its own name", async () => {
    const { body } = await batch({ jobs: [base(), base()], webhook: 'https://inside.example/hook' });
    expect(body.error).toMatchObject({
      code: 'INVALID_WEBHOOK',
      details: expect.stringMatching(/^webhook: [^;]*$/),
    });
  });

  it('keeps the order, and gives its webhook and voice message to jobs without their own', async () => {
    const own = { webhook: 'https://media.example/own', filename: 'own' };
    const jobs = [base(), { ...base(), options: own }, withValue('output.format', 'opus')];
    const { status, body } = await batch({ jobs, webhook: 'https://media.example/all', voiceMessage: voice });
    expect(status).toBe(202);
    const queued = await Promise.all(
      body.data.jobs.map(({ jobId }: { jobId: string }) => service().job(jobId)),
    );
    expect(queued.map(({ output, options }) => [output.format, options.webhook, options.filename])).toEqual([
      ['mp3', 'https://media.example/all', undefined],
      ['mp3', 'https://media.example/own', 'own'],
      ['opus', 'https://media.example/all', undefined],
    ]);
    expect(queued.map(({ options }) => options.voiceMessage)).toEqual([voice, voice, voice]);
  });

  it('of exactly 10 is taken', async () => {
    const { status, body } = await batch({ jobs: Array.from({ length: 10 }, base) });
    expect([status, body.data.totalJobs]).toEqual([202, 10]);
  });
});

describe('A1. Addresses', () => {
  const raw = (body: string | Buffer, type: string): Promise<Answer> =>
    service().call('POST', '/v1/extract', { body, headers: { 'content-type': type } });

  it.each([
    ['/v1/extract', 64, base],
    ['/v1/batch', 256, () => ({ jobs: [base()] })],
  ])('a request to %s has up to %d KiB', async (path, kibibytes, request) => {
    const send = (bytes: number): Promise<Answer> =>
      service().call('POST', path, {
        body: JSON.stringify(request()).padEnd(bytes),
        headers: { 'content-type': 'application/json' },
      });
    expect((await send(kibibytes * 1024)).status).toBe(202);
    const { status, body } = await send(kibibytes * 1024 + 1);
    expect([status, body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(body.error.message).toContain(`${kibibytes} KiB`);
  });

  it.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'application/octet-stream'])(
    'a body of type %s answers 415',
    async (type) => {
      const { status, body } = await raw(JSON.stringify(base()), type);
      expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    },
  );

  it('JSON with a charset is JSON', async () => {
    expect((await raw(JSON.stringify(base()), 'application/json; charset=utf-8')).status).toBe(202);
  });

  it.each(['', '/audio-extract'])('routes answer under the prefix "%s"', async (prefix) => {
    const submitted = await service().call('POST', `${prefix}/v1/extract`, { json: base() });
    expect(submitted.status).toBe(202);
    const { jobId } = submitted.body.data;
    for (const path of [`status/${jobId}`, `jobs/${jobId}`, 'jobs', 'usage', 'webhooks/secret']) {
      expect([path, (await service().call('GET', `${prefix}/v1/${path}`)).status]).toEqual([path, 200]);
    }
  });

  it.each([
    ['GET', '/v1/nothing', 404, 'NOT_FOUND'],
    ['GET', '/audio-extract/health/live', 404, 'NOT_FOUND'],
    ['GET', '/V1/jobs', 404, 'NOT_FOUND'],
    ['GET', '/v1/jobs/', 404, 'NOT_FOUND'],
    ['PUT', '/v1/extract', 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/v1/extract', 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE', '/v1/status/job_0123456789abcdef', 405, 'METHOD_NOT_ALLOWED'],
  ])('%s %s answers %i %s', async (method, path, status, code) => {
    const answer = await service().call(method, path);
    expect([answer.status, answer.body.error.code]).toEqual([status, code]);
  });

  it('405 and OPTIONS say which methods there are', async () => {
    const refused = await service().call('PUT', '/v1/jobs/job_0123456789abcdef');
    expect(refused.headers.allow).toBe('GET, DELETE, HEAD, OPTIONS');
    const asked = await service().call('OPTIONS', '/v1/jobs/job_0123456789abcdef', { key: null });
    expect([asked.status, asked.headers.allow]).toEqual([204, 'GET, DELETE, HEAD, OPTIONS']);
  });
});
