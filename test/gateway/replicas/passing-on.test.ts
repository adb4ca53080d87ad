/** One request passed on: what the caller's connection and its headers are like afterwards. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import express from 'express';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { passOn } from '../../../src/gateway/replicas/passing-on.ts';
import { until } from '../../until.ts';

let behind: Server;
let front: Server;
let caller: Socket;
let heard = '';
let answer: (request: IncomingMessage) => Record<string, string>;
const requests: IncomingMessage[] = [];

beforeEach(async () => {
  requests.length = 0;
  heard = '';
  answer = () => ({});
  behind = createServer((request, response) => {
    requests.push(request);
    // At once, whatever is still to come.
    response.writeHead(413, answer(request)).end('too much');
  });
  behind.listen(0, '127.0.0.1');
  await once(behind, 'listening');
  const url = `http://127.0.0.1:${(behind.address() as AddressInfo).port}`;
  const app = express();
  app.use(async (request, response) => {
    await passOn(request, response, { url, headers: { 'x-ticket': 'ours' }, isRight: async () => true });
  });
  front = createServer(app).listen(0, '127.0.0.1');
  await once(front, 'listening');
  caller = connect((front.address() as AddressInfo).port, '127.0.0.1');
  caller.setEncoding('utf8').on('data', (text: string) => {
    heard += text;
  });
  await once(caller, 'connect');
});

afterEach(() => {
  caller.destroy();
  for (const server of [front, behind]) {
    server.close();
    server.closeAllConnections();
  }
});

const head = (...fields: string[]): string =>
  `${['POST / HTTP/1.1', 'Host: x', ...fields].join('\r\n')}\r\n\r\n`;
const answers = (): number => heard.split('HTTP/1.1 413').length - 1;

// Broken by hand (src/gateway/replicas/passing-on.ts): the rest is not read. The second request was never answered.
it('an answer before the end of the body does not stop the caller’s connection', async () => {
  const size = 8 * 1024 * 1024;
  caller.write(head(`Content-Length: ${size}`));
  caller.write('x'.repeat(1024));
  await until('the answer', () => answers() === 1);
  await until('the replica to have hung up', () => requests[0]?.socket.destroyed);
  caller.write('x'.repeat(size - 1024));
  caller.write(head('Content-Length: 0'));
  await until('the second answer', () => answers() === 2);
});

it('fields that Connection names end here, in both directions, but for the length of the body', async () => {
  answer = () => ({ Connection: 'close, X-Theirs', 'X-Theirs': 'hop', 'X-Other': 'kept' });
  caller.write(
    head(
      'Connection: keep-alive, X-Hop ,content-length,x-ticket',
      'X-Hop: 1',
      'X-End: 2',
      'Content-Length: 2',
    ),
  );
  caller.write('hi');
  await until('the answer', () => answers() === 1);
  expect(requests[0]?.headers).toMatchObject({ 'x-end': '2', 'x-ticket': 'ours', 'content-length': '2' });
  expect(requests[0]?.headers).not.toHaveProperty('x-hop');
  expect(heard).toMatch(/x-other: kept/i);
  expect(heard).not.toMatch(/x-theirs/i);
});
