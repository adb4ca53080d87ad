/** A server may answer before it has read the body: whoever is still sending gets that answer, not a broken connection. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { httpLimits, type Listener, listen } from '../../src/http/listener.ts';

const MIB = 1024 * 1024;

let listener: Listener | undefined;
afterEach(() => listener?.close(0));

it.each([
  ['that stays', ''],
  ['that the client wants closed', 'Connection: close\r\n'],
])('on a connection %s', async (_what, header) => {
  listener = await listen('127.0.0.1', 0, () => (_request, response) => {
    response.writeHead(413).end('too large');
  });
  const socket = connect(listener.address.port, '127.0.0.1');
  const failed = once(socket, 'error').then(([error]) => String(error));
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${header}Content-Length: ${24 * MIB}\r\n\r\n`);
  // The client writes on after the answer is there.
  await once(socket, 'readable');
  for (let sent = 0; sent < 24; sent += 1) {
    await Promise.race([
      new Promise<void>((resolve) => socket.write(Buffer.alloc(MIB), () => resolve())),
      failed,
    ]);
  }
  socket.end();
  const answer = await Promise.race([text(socket.setEncoding('utf8')), failed]);
  expect(answer.startsWith('HTTP/1.1 413 ')).toBe(true);
  expect(answer).toContain('too large');
});

it('also where more follows than was said', async () => {
  listener = await listen('127.0.0.1', 0, () => (_request, response) => {
    response.writeHead(400).end('not this');
  });
  const socket = connect(listener.address.port, '127.0.0.1').pause();
  const failed = once(socket, 'error').then(([error]) => String(error));
  const sent = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}${'x'.repeat(8 * MIB)}`;
  await Promise.race([new Promise<void>((resolve) => socket.write(sent, () => resolve())), failed]);
  const answer = await Promise.race([text(socket.setEncoding('utf8')), failed]);
  expect(answer).toContain('not this');
});

it('is cut where the body has no end', async () => {
  const limits = { ...httpLimits, lingerBytes: MIB };
  listener = await listen(
    '127.0.0.1',
    0,
    () => (_request, response) => response.writeHead(413).end(),
    limits,
  );
  const socket = connect(listener.address.port, '127.0.0.1').on('error', () => undefined);
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const sending = setInterval(() => socket.write(`100000\r\n${'x'.repeat(MIB)}\r\n`), 10);
  await closed;
  clearInterval(sending);
});
