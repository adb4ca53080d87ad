/** The MCP server, as its clients meet it: over HTTP in this process, and as the program over stdio. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { createApp } from 'soundpost-mcp/http';
import { fetch } from 'soundpost-testing/http';
import { startProcess } from 'soundpost-testing/service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, TestService, useClips } from '../api/api-fixture.ts';
import {
  hear,
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PROGRAM = [process.execPath, join(ROOT, 'packages/mcp/src/main.ts')];
const ADA = '12025550101';
const TOOLS = ['extract', 'probe', 'transcribe', 'status', 'download_link', 'send_voice_message'];

const clip = useClips('tone.mp4', 'silent.mp4');
let transcriber: TranscriberStub;
let service: TestService;
let token = '';
const listening: Server[] = [];
const clients: Client[] = [];
/** Address of an MCP server with an instance of the gateway. */
let mcp = '';

beforeAll(async () => {
  transcriber = await startTranscriber();
  service = await TestService.start({
    parts: ['worker', 'gateway'],
    environment: { TRANSCRIBER_URL: transcriber.url },
  });
  token = (await service.gateway('POST', '/instance/create', { instanceName: 'office' })).body.hash;
  mcp = await serve({ gateway: gateway() });
});
afterAll(async () => {
  for (const client of clients) await client.close();
  for (const server of listening) {
    server.closeAllConnections();
    await once(server.close(), 'close');
  }
  await service.close();
  await transcriber.close();
});

const gateway = () => ({ url: service.gatewayUrl, instance: 'office', token });

async function serve(more: Partial<Parameters<typeof createApp>[0]> = {}, allowedHosts: string[] = []) {
  const server = createApp({ url: service.url, ...more }, allowedHosts).listen(0, '127.0.0.1');
  listening.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

async function connect(url = mcp, headers: Record<string, string> = { 'X-API-Key': service.key }) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch, requestInit: { headers } });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  clients.push(client);
  return client;
}

async function overStdio(environment: Record<string, string>): Promise<Client> {
  const [command = '', ...args] = PROGRAM;
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command, args, env: environment }));
  clients.push(client);
  return client;
}

/** What a tool answered, which the client has held against the tool's schema. */
async function call(client: Client, name: string, args: Json): Promise<Json> {
  await client.listTools();
  const answer = await client.callTool({ name, arguments: args });
  expect(answer.isError, JSON.stringify(answer.content)).toBeFalsy();
  return answer.structuredContent;
}

/** The sentence of a call that failed. */
async function failure(client: Client, name: string, args: Json): Promise<string> {
  const { isError, content } = await client.callTool({ name, arguments: args });
  const [said] = content as { text: string }[];
  expect(isError, said?.text).toBe(true);
  expect(said?.text).not.toMatch(/\n\s+at /);
  return said?.text ?? '';
}

const video = async (name: 'tone.mp4' | 'silent.mp4' = 'tone.mp4') => ({
  url: await service.outside.file(name, clip(name)),
});

describe('The tools', () => {
  it('are listed with what they take and answer, and say what they change', async () => {
    const { tools } = await (await connect(await serve())).listTools();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS);
    for (const { description, outputSchema } of tools) {
      expect([typeof description, outputSchema?.type]).toEqual(['string', 'object']);
    }
    const readOnly = tools.filter(({ annotations }) => annotations?.readOnlyHint);
    expect(readOnly.map(({ name }) => name)).toEqual(['status', 'download_link']);
    const properties: Json = tools[0]?.inputSchema.properties;
    expect(properties.loudness).toMatchObject({ type: 'number', minimum: -36, maximum: -6 });
    expect(properties.format).toMatchObject({ default: 'mp3', enum: expect.arrayContaining(['voice']) });
  });

  it('extract audio, and link to a file that needs no key', async () => {
    const client = await connect();
    const job = await call(client, 'extract', { ...(await video()), format: 'flac', filename: 'note' });
    expect(job).toMatchObject({ status: 'completed', progress: 100, warnings: [] });
    expect(job.files).toMatchObject([{ name: 'audio', filename: 'note.flac', format: 'flac' }]);
    const link = await call(client, 'download_link', { jobId: job.jobId });
    const response = await fetch(link.url);
    expect((await response.arrayBuffer()).byteLength).toBe(link.sizeBytes);
    expect(await call(client, 'status', { jobId: job.jobId })).toEqual(job);
    expect(await failure(client, 'download_link', { jobId: job.jobId, name: 'other' })).toMatch(/^NOT_FOUND/);
  });

  it('probe a file that stands in the request, and make none', async () => {
    const data = await readFile(join(ROOT, 'examples/sample.mp4'), 'base64');
    const { input, files, next } = await call(await connect(), 'probe', { data });
    expect(input.tracks).toMatchObject([{ index: 0, codec: 'aac', decodable: true }]);
    expect(input.durationSeconds).toBeGreaterThan(0);
    expect([files, next]).toEqual([[], 'The job is done.']);
  });

  it('transcribe, and answer the words', async () => {
    const { files, transcript } = await call(await connect(), 'transcribe', await video());
    expect(transcript).toMatchObject({ status: 'completed', language: 'en', text: 'Part 1.\n' });
    expect(files.map(({ name }: Json) => name)).toEqual(['audio', 'transcript']);
  });

  it('send a voice message into a chat that they list, once', async () => {
    const client = await connect();
    const { jobId } = await call(client, 'extract', await video());
    const sending = { jobId, instance: 'office', number: ADA };
    const sent = async (more: Json = {}): Promise<string> => {
      const { voiceMessage } = await call(client, 'send_voice_message', { ...sending, ...more });
      expect(voiceMessage).toEqual({ status: 'sent' });
      return (await service.job(jobId)).voiceMessage.key.id;
    };
    const first = await sent();
    expect(await sent()).toBe(first);
    expect(await sent({ again: true })).not.toBe(first);
    const { instance, chats } = await call(client, 'list_chats', {});
    const [chat] = chats;
    expect([instance, chat.number, chat.isGroup]).toEqual(['office', `${ADA}@people.loopback`, false]);
  });

  it('fail where the voice message or the transcript does, though the job has completed', async () => {
    const client = await connect(mcp);
    const { jobId } = await call(client, 'extract', await video());
    const nobody = { jobId, instance: 'office', number: '12025559999' };
    expect(await failure(client, 'send_voice_message', nobody)).toMatch(
      /^unknown_recipient: .*not sent.*again: true/,
    );
    expect((await call(client, 'status', { jobId })).voiceMessage.status).toBe('failed');
    transcriber.answer = (response) => sendJson(response, 400, { error: { message: 'no words for this' } });
    expect(await failure(client, 'transcribe', await video())).toMatch(
      /^TRANSCRIPT_FAILED: .*Call transcribe/,
    );
    transcriber.answer = hear;
  });

  it('answer the id of a job that takes longer, and what to do', async () => {
    const client = await connect(await serve({ waitMs: 3000 }));
    const source = await service.outside.stalling('slow.mp4', clip('tone.mp4'));
    const { jobId, status, next } = await call(client, 'extract', { url: source.url });
    expect(status).not.toBe('completed');
    expect(next).toContain(`Call status with jobId ${jobId}`);
    expect(await failure(client, 'download_link', { jobId })).toMatch(/^JOB_NOT_COMPLETED/);
    source.letGo();
    const ended = await call(await connect(), 'status', { jobId, waitSeconds: 50 });
    expect(ended.status).toBe('completed');
  });

  it('tell how far the job is, in percent that only go up', async () => {
    const seen: number[] = [];
    const client = await connect();
    const asked = { name: 'extract', arguments: await video() };
    await client.callTool(asked, undefined, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen.at(-1)).toBe(100);
    expect(seen).toEqual([...new Set(seen)].toSorted((one, other) => one - other));
  });
});

describe('A failure is an answer of the tool', () => {
  it('with the sentence of the API', async () => {
    const client = await connect();
    expect(await failure(client, 'status', { jobId: 'job_0000000000000000' })).toMatch(/^JOB_NOT_FOUND: /);
    const failed = await failure(client, 'extract', await video('silent.mp4'));
    expect(failed).toMatch(/^EXTRACTION_FAILED: .*no audio stream.* Job job_[0-9a-f]{16} has failed\.$/);
    const odd = { ...(await video()), format: 'flac', bitrate: '128k' };
    expect(await failure(client, 'extract', odd)).toContain('flac is lossless and takes no bitrate');
    expect(await failure(client, 'extract', {})).toBe('Give exactly one of url, upload and data.');
    expect(await failure(client, 'status', { jobId: 'x' })).toContain('must be of the form job_<16 hex>');
  });

  it('also where the key is wrong, or may not send as the instance whose chats it asks for', async () => {
    const wrong = await connect(mcp, { Authorization: 'Bearer sp_wrong' });
    expect(await failure(wrong, 'extract', await video())).toMatch(/^UNAUTHORIZED: /);
    expect(await failure(wrong, 'list_chats', {})).toMatch(/^UNAUTHORIZED: /);
    const key = await service.newKey({ instances: ['main'] });
    const other = await connect(mcp, { Authorization: `Bearer ${key}` });
    expect(await failure(other, 'list_chats', {})).toMatch(/^FORBIDDEN: .*"office"/);
  });

  it('also where the gateway refuses the token, or nobody answers', async () => {
    const refused = await connect(await serve({ gateway: { ...gateway(), token: 'none of this gateway' } }));
    expect(await failure(refused, 'list_chats', {})).toMatch(/^The gateway answered 401/);
    const lost = await connect(await serve({ gateway: { ...gateway(), url: 'http://127.0.0.1:1' } }));
    expect(await failure(lost, 'list_chats', {})).toMatch(/^The gateway did not answer/);
    const alone = await connect(await serve({ url: 'http://127.0.0.1:1' }));
    expect(await failure(alone, 'probe', await video())).toMatch(/^NETWORK_ERROR: .*SOUNDPOST_URL/);
  });
});

describe('Over HTTP', () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const post = (headers: Record<string, string>, url = mcp, key: string | null = service.key) =>
    service.call('POST', url, {
      key,
      json: ping,
      headers: { accept: 'application/json, text/event-stream', ...headers },
    });

  it('a request without a key is 401', async () => {
    const { status, headers, body } = await post({}, mcp, null);
    expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect(body.error.message).toContain('API key');
    expect((await post({})).status).toBe(200);
  });

  it.each<Record<string, string>>([
    { host: 'evil.example' },
    { origin: 'http://evil.example' },
    { origin: 'null' },
  ])('a page elsewhere reaches nothing: %o is 403', async (headers) =>
    expect((await post(headers)).status).toBe(403),
  );

  it('a name that is allowed is answered', async () => {
    const headers = { host: 'mcp.example', origin: 'https://mcp.example' };
    expect((await post(headers)).status).toBe(403);
    expect((await post(headers, await serve({}, ['mcp.example']))).status).toBe(200);
  });

  it('there are no sessions, and errors show no stack', async () => {
    expect((await service.call('GET', mcp)).status).toBe(405);
    expect((await service.call('GET', mcp.replace('/mcp', '/%'))).status).toBe(404);
    const odd = await service.call('POST', mcp, { body: '{' });
    expect(odd.status).toBeGreaterThanOrEqual(400);
    expect(odd.bytes.toString()).not.toMatch(/\bat \S+:\d+/);
  });
});

describe('The program', () => {
  it('answers over stdio, with the key of its environment', async () => {
    const client = await overStdio({ SOUNDPOST_URL: service.url, SOUNDPOST_API_KEY: service.key });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS);
    const { jobId, status } = await call(client, 'extract', await video());
    expect(status).toBe('completed');
    expect((await service.job(jobId)).output.format).toBe('mp3');
  });

  it('serves HTTP on the loopback interface, with the chats of an instance', async () => {
    const started = startProcess([...PROGRAM, '--http', '--port', '0'], {
      SOUNDPOST_URL: service.url,
      SOUNDPOST_GATEWAY_URL: service.gatewayUrl,
      SOUNDPOST_GATEWAY_INSTANCE: 'office',
      SOUNDPOST_GATEWAY_TOKEN: token,
    });
    const client = await connect(await started.says(/^MCP at (http:\/\/127\.0\.0\.1:\d+\/mcp)$/m));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([...TOOLS, 'list_chats']);
    started.signal('SIGTERM');
    await started.exited;
  });

  it.each([
    [{}, [], 'SOUNDPOST_API_KEY is not set'],
    [{ SOUNDPOST_GATEWAY_TOKEN: 'x' }, ['--http'], 'SOUNDPOST_GATEWAY_URL is set together with'],
  ])('ends with 2 and the reason: %o %o', async (environment, args, reason) => {
    const { exited, output } = startProcess([...PROGRAM, ...args], environment as Record<string, string>);
    expect(await exited).toBe(2);
    expect(output()).toContain(reason);
    expect(output().trim().split('\n')).toHaveLength(1);
  });
});
