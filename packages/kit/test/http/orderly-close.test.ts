import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from 'soundpost-testing/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { httpLimits, listen } from '../../src/http/listener.ts';

/** A test that waited for it would time out. */
const LONG_MS = 600_000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: sound.example\r\n\r\n';

async function open(keepAliveTimeoutMs = httpLimits.keepAliveTimeoutMs) {
  let requests = 0;
  const listener = await listen(
    '127.0.0.1',
    0,
    () => (_request, response) => {
      requests += 1;
      response.end('here');
    },
    { ...httpLimits, keepAliveTimeoutMs },
  );
  onTestFinished(() => listener.close(0));
  return { listener, requests: () => requests };
}

/** A connection on which one request was answered. */
async function kept(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  await once(socket, 'connect');
  socket.write(REQUEST);
  const [answer] = await once(socket, 'data');
  expect(answer).toContain('Connection: keep-alive');
  return socket;
}

describe('closing', () => {
  it('answers a request that is on its way on a kept-alive connection, and ends the connection with it', async () => {
    const { listener, requests } = await open();
    const socket = await kept(listener.address.port);
    const rest = text(socket);
    // It lies in the kernel when the server is told to close: nobody has read it yet.
    socket.write(REQUEST);
    await listener.close(LONG_MS);
    expect(await rest).toMatch(/^HTTP\/1\.1 200 OK\r\nConnection: close\r\n.*here$/s);
    expect(requests()).toBe(2);
  });

  it('answers one that comes while an idle connection is still kept, and ends that one with it', async () => {
    const { listener } = await open();
    const socket = await kept(listener.address.port);
    const closing = listener.close(LONG_MS);
    const rest = text(socket);
    setTimeout(() => socket.write(REQUEST), 300);
    expect(await rest).toContain('Connection: close');
    await closing;
  });

  it('waits for an idle connection no longer than it would have been kept', async () => {
    const { listener } = await open(200);
    const socket = await kept(listener.address.port);
    const ended = once(socket, 'end');
    await listener.close(LONG_MS);
    await ended;
  });

  it('lets nobody in any more', async () => {
    const { listener } = await open();
    const socket = await kept(listener.address.port);
    const closing = listener.close(LONG_MS);
    await until('a new connection is refused', async () => {
      const stranger = connect(listener.address.port, '127.0.0.1');
      const code = await once(stranger, 'connect').then(
        () => 'let in',
        (error: NodeJS.ErrnoException) => error.code,
      );
      stranger.destroy();
      return code === 'ECONNREFUSED';
    });
    socket.destroy();
    await closing;
  });

  it('takes over what the system has let in, and answers it', async () => {
    const { listener } = await open();
    const answers = Array.from({ length: 20 }, () => {
      const socket = connect(listener.address.port, '127.0.0.1').setEncoding('utf8');
      socket.write(REQUEST);
      return text(socket);
    });
    // Node calls connect(2) with the next tick; nobody has accepted the connections then.
    await new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
    await listener.close(LONG_MS);
    for (const answer of await Promise.all(answers)) expect(answer).toContain('here');
  });
});
