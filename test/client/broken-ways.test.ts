import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createClient, type SoundpostClient } from 'soundpost-client';
import { Watchdog } from 'soundpost-client/wait';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';

const clip = useClips('tone.mp4');
const service = useService();

type Fault = (
  incoming: IncomingMessage,
  response: ServerResponse,
  forward: () => Promise<IncomingMessage>,
) => unknown;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

/** A proxy in front of the service that spoils some requests; `asked` counts what came to it. */
async function proxy(
  spoils: (incoming: IncomingMessage, nth: number) => Fault | undefined,
  apiKey: string = service().key,
) {
  const asked: string[] = [];
  const server = createServer(async (incoming, response) => {
    const name = `${incoming.method} ${(incoming.url ?? '').split('?')[0]?.replace(/job_\w+/, '*')}`;
    asked.push(name);
    const forward = async (): Promise<IncomingMessage> => {
      const { method, headers } = incoming;
      const onward = request(`${service().url}${incoming.url}`, { method, headers });
      const [[answer]] = await Promise.all([once(onward, 'response'), pipeline(incoming, onward)]);
      return answer as IncomingMessage;
    };
    const fault = spoils(incoming, asked.filter((other) => other === name).length);
    if (fault !== undefined) {
      await fault(incoming, response, forward);
      return;
    }
    const answer = await forward();
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response).catch(() => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, baseUrl, client: createClient({ baseUrl, apiKey }) };
}

const job = async () => ({
  source: { type: 'url' as const, url: await service().outside.file('tone.mp4', clip('tone.mp4')) },
  output: { format: 'mp3' as const },
});

const isEvents = ({ url = '' }: IncomingMessage): boolean => url.endsWith('/events');

describe('a client behind a proxy', () => {
  it('asks for the job where events are refused', async () => {
    const refuse: Fault = (_incoming, response) => response.writeHead(404).end('no such page');
    const { client, asked } = await proxy((incoming) => (isEvents(incoming) ? refuse : undefined));
    const { jobId } = await client.extract(await job());
    expect((await client.waitFor(jobId)).status).toBe('completed');
    expect(asked).toContain('GET /v1/jobs/*');
  });

  it('asks for the job where the stream of events is cut off', async () => {
    const cut: Fault = async (_incoming, response, forward) => {
      const answer = await forward();
      response.writeHead(200, answer.headers);
      const [first] = await once(answer, 'data');
      // Half of an event: what has come of it is no job.
      response.write((first as Buffer).subarray(0, 40), () => response.destroy());
      answer.destroy();
    };
    const { client, asked } = await proxy((incoming) => (isEvents(incoming) ? cut : undefined));
    const { jobId } = await client.extract(await job());
    expect((await client.waitFor(jobId)).status).toBe('completed');
    expect(asked.filter((name) => name === 'GET /v1/jobs/*').length).toBeGreaterThan(0);
  });

  it('understands events in pieces of one byte, with line ends of another kind', async () => {
    const crumble: Fault = async (_incoming, response, forward) => {
      const answer = await forward();
      response.writeHead(200, answer.headers);
      for await (const chunk of answer) {
        for (const byte of Buffer.from(String(chunk).replaceAll('\n', '\r\n'))) {
          response.write(Buffer.of(byte));
        }
      }
      response.end();
    };
    const { client, asked } = await proxy((incoming) => (isEvents(incoming) ? crumble : undefined));
    const { jobId } = await client.extract(await job());
    expect((await client.waitFor(jobId)).status).toBe('completed');
    expect(asked).not.toContain('GET /v1/jobs/*');
  });

  it('submits one job although the answer to the first request was lost', async () => {
    const lose: Fault = async (_incoming, response, forward) => {
      (await forward()).resume();
      response.destroy();
    };
    const { client, asked } = await proxy(
      (incoming, nth) => (incoming.url === '/v1/extract' && nth === 1 ? lose : undefined),
      await service().newKey(),
    );
    const { jobId } = await client.extract(await job());
    expect(asked.filter((name) => name === 'POST /v1/extract')).toHaveLength(2);
    expect((await client.jobs()).jobs.map((listed) => listed.jobId)).toEqual([jobId]);
  });

  it('sends a file once, since nobody could tell that it was the same', async () => {
    const lose: Fault = async (incoming, response) => {
      incoming.resume();
      await once(incoming, 'end');
      response.destroy();
    };
    const { client, asked } = await proxy(() => lose);
    await expect(client.uploads.create(new Blob(['x']))).rejects.toMatchObject({
      code: 'NETWORK_ERROR',
      httpStatus: 0,
    });
    expect(asked).toEqual(['POST /v1/uploads']);
  });

  it('asks again where an answer breaks off inside its body, and submits one job', async () => {
    const { client, asked } = await proxy(
      (_incoming, nth) => (nth === 1 ? half : undefined),
      await service().newKey(),
    );
    const { jobId } = await client.extract(await job());
    expect((await client.job(jobId)).jobId).toBe(jobId);
    expect((await client.jobs()).jobs.map((listed) => listed.jobId)).toEqual([jobId]);
    expect(asked.filter((name) => name === 'GET /v1/jobs')).toHaveLength(2);
    expect(asked.filter((name) => name === 'POST /v1/extract')).toHaveLength(2);
  });

  it('comes back after the time that the service names', async () => {
    const busy: Fault = (_incoming, response) =>
      response
        .writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' })
        .end('{"success":false,"error":{"code":"SERVICE_UNAVAILABLE","message":"away"}}');
    const { client, asked } = await proxy((_incoming, nth) => (nth === 1 ? busy : undefined));
    const beganMs = performance.now();
    expect((await client.usage()).key.name).toBe('everything');
    expect(performance.now() - beganMs).toBeGreaterThan(990);
    expect(asked).toHaveLength(2);
  });

  it('leaves a long wait to its caller', async () => {
    const limited: Fault = (_incoming, response) =>
      response
        .writeHead(429, { 'content-type': 'application/json', 'retry-after': '60' })
        .end('{"success":false,"error":{"code":"RATE_LIMITED","message":"slower"}}');
    const { client, asked } = await proxy(() => limited);
    await expect(client.usage()).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 60 });
    expect(asked).toHaveLength(1);
  });

  it.each<[string, Fault, object]>([
    [
      'a page of its own',
      (_incoming, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Welcome'),
      { code: 'UNEXPECTED_ANSWER', httpStatus: 200 },
    ],
    [
      'an error of its own',
      (_incoming, response) => response.writeHead(403).end('Forbidden'),
      { code: 'UNEXPECTED_ANSWER', httpStatus: 403 },
    ],
    [
      'JSON of its own',
      (_incoming, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'),
      { code: 'UNEXPECTED_ANSWER', httpStatus: 200 },
    ],
  ])('says so when it answers %s', async (_, fault, error) => {
    const { client } = await proxy(() => fault);
    await expect(client.usage()).rejects.toMatchObject(error);
  });

  it('does not follow it to another address, where the key would come along', async () => {
    const elsewhere = await proxy(() => (_incoming, response) => response.end());
    const redirect: Fault = (_incoming, response) =>
      response.writeHead(307, { location: `${elsewhere.baseUrl}/v1/usage` }).end();
    const { client } = await proxy(() => redirect);
    await expect(client.usage()).rejects.toMatchObject({ code: 'NETWORK_ERROR' });
    expect(elsewhere.asked).toEqual([]);
  });
});

/** The headers at once, then half of the body, then nothing or the end of the connection. */
const half: Fault = async (_incoming, response, forward) => {
  const answer = await forward();
  const body = await buffer(answer);
  response.writeHead(answer.statusCode ?? 500, answer.headers);
  response.write(body.subarray(0, body.length / 2), () => response.destroy());
};

/** Each call that reads an answer to its end. */
const calls: Readonly<Record<string, (client: SoundpostClient, signal?: AbortSignal) => Promise<unknown>>> = {
  extract: (client, signal) =>
    client.extract(
      { source: { type: 'url', url: 'https://a.example/a.mp4' }, output: { format: 'mp3' } },
      { signal },
    ),
  'extract of a file': (client, signal) =>
    client.extract({ file: new Blob(['x']), output: { format: 'mp3' } }, { signal }),
  batch: (client, signal) => client.batch({ jobs: [] }, { signal }),
  batchState: (client, signal) => client.batchState('batch_1', { signal }),
  job: (client, signal) => client.job('job_1', { signal }),
  status: (client, signal) => client.status('job_1', { signal }),
  jobs: (client, signal) => client.jobs({ signal }),
  cancel: (client, signal) => client.cancel('job_1', { signal }),
  retry: (client, signal) => client.retry('job_1', { signal }),
  bulk: (client, signal) => client.bulk('retry', ['job_1'], { signal }),
  sendVoiceMessage: (client, signal) =>
    client.sendVoiceMessage('job_1', { instance: 'office', number: '491711234567' }, { signal }),
  deliveries: (client, signal) => client.deliveries('job_1', { signal }),
  replayDelivery: (client, signal) => client.replayDelivery('job_1', 'd', { signal }),
  replayDestination: (client, signal) => client.replayDestination('job_1', 'a', {}, { signal }),
  resendDeliveries: (client, signal) => client.resendDeliveries('2026-01-01', { signal }),
  endpoints: (client, signal) => client.endpoints({ signal }),
  deliveriesTo: (client, signal) => client.deliveriesTo('https://a.example/', { signal }),
  testWebhook: (client, signal) => client.testWebhook('https://a.example/', { signal }),
  webhookSecret: (client, signal) => client.webhookSecret({ signal }),
  rotateWebhookSecret: (client, signal) => client.rotateWebhookSecret({ signal }),
  usage: (client, signal) => client.usage({ signal }),
  'uploads.create': (client, signal) => client.uploads.create(new Blob(['x']), { signal }),
  'uploads.begin': (client, signal) => client.uploads.begin(1, { signal }),
  'uploads.get': (client, signal) => client.uploads.get('upl_1', { signal }),
  'uploads.delete': (client, signal) => client.uploads.delete('upl_1', { signal }),
  'keys.list': (client, signal) => client.keys.list({ signal }),
  'keys.create': (client, signal) => client.keys.create({ name: 'a', scopes: ['extract'] }, { signal }),
  'keys.rotate': (client, signal) => client.keys.rotate('key_1', { signal }),
  'keys.revoke': (client, signal) => client.keys.revoke('key_1', { signal }),
  'session.begin': (client, signal) => client.session.begin('sp_x', { signal }),
  'session.end': (client, signal) => client.session.end({ signal }),
};

describe('an answer whose headers come first', () => {
  const BODY = '{"success":true,"data":{"late":true}}';
  const HEADERS = { 'content-type': 'application/json', 'content-length': BODY.length };
  /** `body` of each answer, after its headers have been seen. */
  async function answering(body: (response: ServerResponse) => unknown) {
    const begun = Promise.withResolvers<void>();
    const server = await proxy(() => (incoming, response) => {
      incoming.resume();
      response.writeHead(200, HEADERS).flushHeaders();
      begun.resolve();
      setImmediate(() => body(response));
    });
    return {
      ...server,
      begun: begun.promise,
      client: createClient({ ...server, apiKey: 'sp_x', retries: 0 }),
    };
  }

  it.each(Object.entries(calls))('%s: late, cut or never', async (_, call) => {
    const late = await answering((response) => response.end(BODY));
    expect(await call(late.client)).toEqual({ late: true });
    const cut = await answering((response) => response.write(BODY.slice(0, 9), () => response.destroy()));
    await expect(call(cut.client)).rejects.toMatchObject({ code: 'NETWORK_ERROR', httpStatus: 0 });
    const never = await answering(() => undefined);
    const leaving = new AbortController();
    void never.begun.then(() => leaving.abort(new Error('the caller left')));
    await expect(call(never.client, leaving.signal)).rejects.toThrow('the caller left');
  });

  it('covers each call of the client', () => {
    const { keys, session, uploads, ...client } = createClient({
      baseUrl: 'http://127.0.0.1:9',
      apiKey: 'sp_x',
    });
    const names = (of: object, prefix = '') => Object.keys(of).map((name) => prefix + name);
    const read = [
      ...names(client),
      ...names(uploads, 'uploads.'),
      ...names(keys, 'keys.'),
      ...names(session, 'session.'),
    ];
    // Streams: their bodies are the caller's, or have tests above.
    const streams = ['events', 'waitFor', 'download'];
    expect([...Object.keys(calls), ...streams].toSorted()).toEqual([...read, 'extract of a file'].toSorted());
  });
});

describe('events of all jobs', () => {
  it('go on when a stream breaks off, and say so each time', async () => {
    const key = await service().newKey();
    const breaking = await proxy((_incoming, nth) => {
      if (nth > 2) return undefined;
      return nth === 1
        ? (_in, response) => response.destroy()
        : async (_in, response, forward) => {
            const answer = await forward();
            response.writeHead(200, answer.headers);
            answer.once('data', (first) => response.write(first, () => response.destroy()));
          };
    }, key);
    const direct = createClient({ baseUrl: service().url, apiKey: key });
    const leaving = new AbortController();
    let resets = 0;
    const onReset = async (): Promise<void> => {
      resets += 1;
      if (resets === 2) await direct.extract(await job());
    };
    const statuses: string[] = [];
    await expect(async () => {
      const events = breaking.client.events({ signal: leaving.signal, onReset: () => void onReset() });
      for await (const { status } of events) {
        statuses.push(status);
        if (status === 'completed') leaving.abort(new Error('seen enough'));
      }
    }).rejects.toThrow('seen enough');
    expect([resets, breaking.asked]).toEqual([2, Array.from({ length: 3 }, () => 'GET /v1/events')]);
    expect(statuses).toContain('completed');
  });
});

it('a stream of events that falls silent is given up 20 s after what was heard last', () => {
  vi.useFakeTimers();
  try {
    const silent = vi.fn();
    const watchdog = new Watchdog(silent);
    vi.advanceTimersByTime(19_000);
    watchdog.feed();
    vi.advanceTimersByTime(19_000);
    expect(silent).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1000);
    expect(silent).toHaveBeenCalledOnce();
  } finally {
    vi.useRealTimers();
  }
});
