/** A7. What a failed download says of the other server: its status, and the name that the caller wrote. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound } from 'soundpost-outbound/outbound';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StepContext } from '../../src/worker/step.ts';
import { download } from '../../src/worker/steps/download.ts';
import { logger, makeSurroundings, type Surroundings } from './worker-fixture.ts';

let server: Server;
let surroundings: Surroundings;
let port = 0;

beforeAll(async () => {
  // `/to/<host>` redirects there.
  server = createServer(({ url = '' }, response) => {
    const [, to, host] = url.split('/');
    if (to === 'cut') response.destroy();
    else if (to === 'to') response.writeHead(302, { location: `http://${host}:${port}/gone` }).end();
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  surroundings = await makeSurroundings();
});
afterAll(async () => {
  await surroundings.close();
  server.close();
  await once(server, 'close');
});

it.each([
  ['media.example', '/gone', 'HTTP 404 from media.example'],
  ['media.example', '/to/cdn.example', 'HTTP 404 from media.example'],
  ['127.0.0.1', '/to/cdn.example', 'HTTP 404'],
  ['media.example', '/cut', 'the connection broke before the end: media.example'],
  ['127.0.0.1', '/cut', 'the connection broke before the end'],
])('of %s%s: %s', async (host, path, details) => {
  const outbound = createOutbound({
    allow: parseAllowRules(`127.0.0.1:${port}`),
    ports: [80],
    logger,
    userAgent: 'soundpost-tests',
    resolve: async () => ['127.0.0.1'],
  });
  const context = {
    jobId: 'job_0123456789abcdef',
    payload: {
      source: { type: 'url', url: `http://${host}:${port}${path}` },
      output: { format: 'mp3', copy: 'auto', normalize: false, preserveMetadata: true },
    },
    services: { ...surroundings.services, outbound },
    workspace: surroundings.folder,
    signal: new AbortController().signal,
    space: { grow: async () => undefined },
    logger,
    report: () => undefined,
  } as unknown as StepContext;
  try {
    await expect(download(undefined, context)).rejects.toMatchObject({ code: 'DOWNLOAD_FAILED', details });
  } finally {
    await outbound.close();
  }
});
