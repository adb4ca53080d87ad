/** What one connection may take of the server: with limits so short that a test can wait for them. */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { receivedBody } from 'soundpost-testing/received-body';
import { until } from 'soundpost-testing/until';
import { afterEach, describe, expect, it } from 'vitest';
import { httpLimits, type Listener, listen } from '../../src/http/listener.ts';
import { RawConnection } from './raw-request.ts';

const LONG_MS = 600_000;
/** What is closed here is closed for another reason than its time, but where a test sets one. */
const limits = {
  ...httpLimits,
  headersTimeoutMs: LONG_MS,
  bodyWindowMs: LONG_MS,
  minBodyBytesPerWindow: 3000,
  lingerMs: LONG_MS,
  maxConnections: 20,
  lookEveryMs: 50,
};

let listener: Listener | undefined;
const connections: RawConnection[] = [];
/** Requests that reached the handler. */
let requests: IncomingMessage[] = [];

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  requests = [];
  await listener?.close(0);
});

async function serve(handle: RequestListener, own: Partial<typeof limits> = {}): Promise<string> {
  listener = await listen(
    '127.0.0.1',
    0,
    () => (request, response) => {
      requests.push(request);
      handle(request, response);
    },
    { ...limits, ...own },
  );
  return `http://127.0.0.1:${listener.address.port}`;
}

async function open(url: string, ...sent: string[]): Promise<RawConnection> {
  const connection = await RawConnection.open(url);
  connections.push(connection);
  for (const text of sent) await connection.send(text);
  return connection;
}

const closed = (connection: RawConnection): Promise<boolean> =>
  until('the connection is closed', () => !connection.isOpen);

const echo: RequestListener = async (request, response) => {
  const body = await receivedBody(request);
  if (body !== undefined) response.end(`${body.length} bytes`);
};
const POST = 'POST / HTTP/1.1\r\nHost: x\r\n';

describe('headers', () => {
  it('that do not come to an end: none, half a line, lines, and lines that drip', async () => {
    const url = await serve(echo, { headersTimeoutMs: 200 });
    const started = ['', 'GET / HT', 'GET / HTTP/1.1\r\nHost: x\r\n', 'GET / HTTP/1.1\r\nHost: x\r\n'];
    const all = await Promise.all(started.map((sent) => open(url, sent)));
    const dripping = setInterval(() => all.at(-1)?.send('a: b\r\n'), 50);
    await Promise.all(all.map(closed));
    clearInterval(dripping);
    expect(all.at(-1)?.statuses).toEqual([408]);
    expect(requests).toEqual([]);
  });

  it.each([
    ['as many as there may be', 198, 200],
    ['one more', 200, 431],
  ])('%s', async (_what, count, status) => {
    const many = Array.from({ length: count }, (_, index) => `x${index}:\r\n`).join('');
    const connection = await open(
      await serve(echo),
      `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${many}\r\n`,
    );
    await closed(connection);
    expect(connection.statuses).toEqual([status]);
  });

  it('that are too large', async () => {
    const url = await serve(echo);
    const connection = await open(url, `GET / HTTP/1.1\r\nHost: x\r\na: ${'b'.repeat(17 * 1024)}\r\n\r\n`);
    await closed(connection);
    expect(connection.statuses).toEqual([431]);
    expect(requests).toEqual([]);
  });
});

describe('the field Host (RFC 9112, 3.2)', () => {
  it.each([
    ['two', 'GET / HTTP/1.1', 'Host: x\r\nHost: y\r\n', 400],
    ['two that are the same', 'GET / HTTP/1.1', 'Host: x\r\nhost: x\r\n', 400],
    ['none', 'GET / HTTP/1.1', '', 400],
    ['an empty one', 'GET / HTTP/1.1', 'Host:\r\n', 400],
    ['a port alone', 'GET / HTTP/1.1', 'Host: :80\r\n', 400],
    ['a list', 'GET / HTTP/1.1', 'Host: x, y\r\n', 400],
    ['a path', 'GET / HTTP/1.1', 'Host: x/y\r\n', 400],
    ['a name and a port', 'GET / HTTP/1.1', 'Host: media.example:8080\r\n', 200],
    ['an IPv6 address', 'GET / HTTP/1.1', 'Host: [::1]:8080\r\n', 200],
    ['none in HTTP/1.0', 'GET / HTTP/1.0', '', 200],
    ['two in HTTP/1.0', 'GET / HTTP/1.0', 'Host: x\r\nHost: y\r\n', 400],
  ])('%s', async (_what, line, host, status) => {
    const connection = await open(await serve(echo), `${line}\r\n${host}Connection: close\r\n\r\n`);
    await closed(connection);
    expect(connection.statuses).toEqual([status]);
    expect(requests).toHaveLength(status === 200 ? 1 : 0);
  });
});

describe('a body', () => {
  it('that never begins, that drips, that drips in chunks is answered 408', async () => {
    const url = await serve(echo, { bodyWindowMs: 300 });
    const ways = [
      ['Content-Length: 10\r\n\r\n', ''],
      ['Content-Length: 1000000\r\n\r\n', 'x'.repeat(50)],
      ['Transfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'],
    ] as const;
    const all = await Promise.all(ways.map(([headers]) => open(url, POST + headers)));
    const dripping = setInterval(() => {
      for (const [nth, [, drop]] of ways.entries()) if (drop !== '') all[nth]?.send(drop);
    }, 50);
    await Promise.all(all.map(closed));
    clearInterval(dripping);
    expect(all.map(({ statuses }) => statuses)).toEqual([[408], [408], [408]]);
    expect(requests.map(({ destroyed }) => destroyed)).toEqual([true, true, true]);
  });

  it('of a request that was answered is read a little, so that the answer arrives, then cut', async () => {
    const refuse: RequestListener = (_request, response) => response.end('no, thank you');
    const lingerBytes = 1024 * 1024;
    const forTime = await serve(refuse, { lingerMs: 300 });
    const slow = await open(forTime, `${POST}Content-Length: 1000000000\r\n\r\nx`);
    await closed(slow);
    expect(slow.statuses).toEqual([200]);
    await listener?.close(0);
    const forBytes = await serve(refuse, { lingerBytes });
    const quick = await open(forBytes, `${POST}Content-Length: 1000000000\r\n\r\n`);
    let sentBytes = 0;
    for (; quick.isOpen; sentBytes += 100_000) {
      await quick.send('x'.repeat(100_000));
      await delay(50);
    }
    expect(quick.statuses).toEqual([200]);
    expect(sentBytes).toBeGreaterThan(lingerBytes / 2);
    expect(sentBytes).toBeLessThan(5 * lingerBytes);
  });

  it('of a request that was answered may end, and the next request follow', async () => {
    const url = await serve((_request, response) => response.end('no, thank you'));
    const connection = await open(url, `${POST}Content-Length: 200000\r\n\r\n`);
    await until('it is answered', () => connection.statuses.length === 1);
    await connection.send(`${'x'.repeat(200_000)}${POST}Content-Length: 1\r\n\r\nx`);
    await until('the next one is answered', () => connection.statuses.length === 2);
  });

  it('that is slow but fast enough may take longer than any window', async () => {
    // A window in which this process, too, may have to wait for its turn.
    const bodyWindowMs = 2000;
    const size = 40_000;
    const connection = await open(
      await serve(echo, { bodyWindowMs }),
      `${POST}Connection: close\r\nContent-Length: ${size}\r\n\r\n`,
    );
    for (let sent = 0; sent < size; sent += 1250) {
      await connection.send('x'.repeat(1250));
      await delay(80);
    }
    await closed(connection);
    expect(connection.received).toContain(`${size} bytes`);
  });

  it('whose reader is slow is not the sender’s fault', async () => {
    const url = await serve(
      async (request, response) => {
        await delay(1000);
        await echo(request, response);
      },
      { bodyWindowMs: 400 },
    );
    const connection = await open(url, `${POST}Connection: close\r\nContent-Length: 1000000\r\n\r\n`);
    await connection.send('x'.repeat(1_000_000));
    await closed(connection);
    expect(connection.received).toContain('1000000 bytes');
  });
});

describe('a connection', () => {
  it('on which nothing moves is closed: a request without an answer, an answer that nobody reads', async () => {
    const answerLarge: RequestListener = (request, response) => {
      if (request.url === '/large') response.end(Buffer.alloc(16 * 1024 * 1024));
    };
    const url = await serve(answerLarge, { silenceTimeoutMs: 1000 });
    const silent = await open(url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const unread = await open(url);
    unread.socket.pause();
    await unread.send('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed(silent);
    const asked = (): IncomingMessage | undefined => requests.find((request) => request.url === '/large');
    await until('the server has given the unread answer up', () => asked()?.socket.destroyed, 60_000);
  });

  it('is kept a little for the next request, then closed', async () => {
    const url = await serve(echo, { keepAliveTimeoutMs: 1000 });
    const connection = await open(url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed(connection);
    expect(connection.statuses).toEqual([200]);
    expect(connection.received).toContain('Keep-Alive: timeout=1\r\n');
  });

  it('may have some requests waiting for their answers, not any number', async () => {
    const answers: (() => void)[] = [];
    const url = await serve((_request, response) => answers.push(() => response.end()));
    const ask = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const few = await open(url, ask.repeat(limits.maxPipelined));
    await until('all of them have come', () => answers.length === limits.maxPipelined);
    for (const answer of answers) answer();
    await until('all of them are answered', () => few.statuses.length === limits.maxPipelined);
    const many = await open(url, ask.repeat(100_000));
    await closed(many);
    expect(requests.length).toBe(2 * limits.maxPipelined);
  });

  it('is one of so many at most; when some have gone there is room again', async () => {
    const url = await serve(echo);
    const all = await Promise.all(Array.from({ length: 40 }, () => open(url)));
    await until('those beyond are closed', () => all.filter(({ isOpen }) => !isOpen).length >= 20);
    expect(all.filter(({ isOpen }) => isOpen)).toHaveLength(limits.maxConnections);
    for (const connection of all) connection.close();
    const later = await until('there is room', async () => {
      const connection = await open(url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await Promise.race([once(connection.socket, 'data'), once(connection.socket, 'close')]);
      return connection.statuses.length > 0 && connection;
    });
    expect(later.statuses).toEqual([200]);
  });
});

describe('closing', () => {
  it('lets what is under way finish, and cuts what takes longer than the grace', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const url = await serve(async (request, response) => {
      if (request.url === '/quick') {
        await released;
        response.end('done');
      }
    });
    const quick = await open(url, 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n');
    const endless = await open(url, 'GET /endless HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('both have come', () => requests.length === 2);
    const ended = listener?.close(1000);
    release();
    await ended;
    await closed(quick);
    expect(quick.statuses).toEqual([200]);
    await closed(endless);
    expect(endless.statuses).toEqual([]);
  });
});
