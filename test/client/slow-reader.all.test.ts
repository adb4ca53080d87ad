/** A program that takes its time for an event. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'soundpost-client/client';
import { expect, it } from 'vitest';

/** Longer than a stream may be silent. */
const WORK_MS = 22_000;

it('keeps its stream of events meanwhile', async () => {
  let connections = 0;
  const server = createServer((_request, response) => {
    connections += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: reset\ndata: {}\n\nevent: job\ndata: {"jobId":"one"}\n\n');
    const heart = setInterval(() => response.write(':\n\n'), 3000);
    const second = setTimeout(() => response.write('event: job\ndata: {"jobId":"two"}\n\n'), WORK_MS / 2);
    response.once('close', () => {
      clearInterval(heart);
      clearTimeout(second);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'sp_x' });
  const stopping = new AbortController();
  const seen: string[] = [];
  const lost: string[] = [];
  for await (const { jobId } of client.events({ signal: stopping.signal, onLost: () => lost.push('lost') })) {
    seen.push(jobId);
    if (seen.length === 2) break;
    await sleep(WORK_MS);
  }
  stopping.abort();
  server.closeAllConnections();
  server.close();
  expect({ seen, lost, connections }).toEqual({ seen: ['one', 'two'], lost: [], connections: 1 });
});
