/** What a command does where a service says nothing, or something else: an HTTP server stands in for it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createClient } from 'soundpost-client/client';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { download } from '../../src/cli/extract-on-server.ts';
import { MAIN, useDesk } from './command-line.ts';

const desk = useDesk();
const JOB = 'job_0123456789abcdef';
const asked: string[] = [];
const server = createServer((request, response) => {
  asked.push(request.method ?? '', `${request.method} ${request.url}`);
  const answer = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  if (request.url === '/v1/extract') {
    answer(202, { success: true, data: { jobId: JOB, status: 'queued' } });
    return;
  }
  if (request.method === 'DELETE' && request.url === `/v1/jobs/${JOB}`) {
    const message = 'the queue is away';
    answer(503, { success: false, error: { code: 'SERVICE_UNAVAILABLE', message } });
    return;
  }
  if (request.method === 'GET' && !request.url?.startsWith('/v1/jobs/')) response.end('other bytes');
  if (request.method !== 'POST') return;
  answer(201, { success: true, data: { file: 'upl_0123456789abcdef' } });
});
let url = '';
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

it('a second signal ends the process at once while the first still waits, and its temporary files go', async () => {
  const command = [process.execPath, MAIN, 'extract', '-', '-o', 'never.mp3', '--server', url];
  const running = desk().start(command, 'pipe', { SOUNDPOST_API_KEY: 'sp_key' });
  running.stdin?.end('a video');
  await until('the upload is asked about', () => asked.includes('HEAD'));
  running.signal('SIGINT');
  await until('the upload is to be deleted', () => asked.includes('DELETE'));
  expect(await desk().leftovers()).toHaveLength(1);
  running.signal('SIGINT');
  expect((await running.ended).code).toBe(130);
  expect(await desk().leftovers()).toEqual([]);
});

it('audio that is not what the service took the sha256 of is an error, with the way to fetch it again', async () => {
  const client = createClient({ baseUrl: url, apiKey: 'sp_key' });
  const { signal } = new AbortController();
  const made = { name: 'audio', sha256: '0'.repeat(64) };
  const audio = await download({ client, url, apiKey: 'sp_key' }, 'job_1', made, signal);
  await expect(text(audio)).rejects.toThrow(
    'its download is damaged; download it again with "soundpost jobs download job_1"',
  );
});

it('a job that could not be cancelled is told, with the command that tries again', async () => {
  const address = 'https://example.com/talk.mp4';
  const command = [process.execPath, MAIN, 'extract', address, '-o', 'never.mp3', '--server', url];
  const running = desk().start(command, 'pipe', { SOUNDPOST_API_KEY: 'sp_key' });
  await until('the job is followed', () => asked.some((what) => what.startsWith(`GET /v1/jobs/${JOB}`)));
  running.signal('SIGINT');
  const { code, stderr } = await running.ended;
  expect(code).toBe(130);
  expect(stderr).toContain(`${JOB} may still be running: `);
  expect(stderr).toContain(`cancel it with "soundpost jobs cancel ${JOB}"`);
});
