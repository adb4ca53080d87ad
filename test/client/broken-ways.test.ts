import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { createClient } from 'soundpost-client';
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
