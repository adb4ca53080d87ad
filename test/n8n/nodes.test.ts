/**
 * The nodes for n8n against a real service. n8n itself stays out of the lock file: what the nodes use
 * of it is imitated here as its httpRequest was seen to behave with ignoreHttpStatusErrors.
 */
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { fetch } from 'soundpost-testing/http';
import { describe, expect, it, vi } from 'vitest';
import { type Json, useClips, useService } from '../api/api-fixture.ts';

class Told extends Error {
  readonly description: string | undefined;
  constructor(error: string | { message: string }, { description }: Json = {}) {
    super(typeof error === 'string' ? error : error.message);
    this.description = description;
  }
}
/** As n8n's own: an error that is one already stays what it is, whatever else is given. */
function failure(_node: unknown, error: string | { message: string }, details: Json): Told {
  return error instanceof Told ? error : new Told(error, details);
}
vi.mock('n8n-workflow', () => ({
  NodeApiError: failure,
  NodeOperationError: failure,
  NodeConnectionTypes: { Main: 'main' },
  sleep: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms / 20)),
}));

const NODES = '../../packages/n8n-nodes-soundpost/nodes';
const nodes: Promise<Json> = import(/* @vite-ignore */ `${NODES}/Soundpost/Soundpost.node.ts`);
const triggers: Promise<Json> = import(
  /* @vite-ignore */ `${NODES}/SoundpostTrigger/SoundpostTrigger.node.ts`
);
const clip = useClips('tone.mp4');
const service = useService();

interface Request {
  readonly url: string;
  readonly headers: Headers;
}

/** What a node calls `this`. @param asked what it requested */
function n8n(parameters: Json, { binary = {}, asked = [] as Request[] } = {}): Json {
  const httpRequest = async (options: Json) => {
    const url = new URL(`${options.baseURL ?? ''}${options.url}`);
    for (const [name, value] of Object.entries(options.qs ?? {})) url.searchParams.set(name, String(value));
    const isRaw = Buffer.isBuffer(options.body);
    const headers = new Headers({
      ...(!isRaw && { 'content-type': 'application/json' }),
      ...options.headers,
    });
    asked.push({ url: url.href, headers });
    const body = options.body && (isRaw ? options.body : JSON.stringify(options.body));
    const answer = await fetch(url, { method: options.method, headers, body });
    if (!answer.ok && !options.ignoreHttpStatusErrors) throw new Error('n8n says something else');
    const isStream = options.encoding === 'stream';
    return {
      body: isStream ? Readable.fromWeb(answer.body as never) : await answer.text(),
      headers: Object.fromEntries(answer.headers),
      statusCode: answer.status,
    };
  };
  return {
    getInputData: () => [{ json: {} }],
    getNodeParameter: (name: string, _item: number, otherwise: unknown) => parameters[name] ?? otherwise,
    getCredentials: async () => ({ url: `${service().url}/`, apiKey: service().key }),
    getNode: () => ({ id: 'node' }),
    getExecutionId: () => '7',
    getWorkflowDataProxy: () => ({ $runIndex: 0 }),
    continueOnFail: () => false,
    helpers: {
      httpRequest,
      httpRequestWithAuthentication: (_name: string, options: Json) =>
        httpRequest({ ...options, headers: { ...options.headers, 'X-API-Key': service().key } }),
      assertBinaryData: (_item: number, name: string) => (binary as Json)[name],
      getBinaryDataBuffer: () => readFile(clip('tone.mp4')),
      prepareBinaryData: async (body: Readable, fileName: string, mimeType: string) => ({
        ...{ fileName, mimeType },
        data: await buffer(body),
      }),
      returnJsonArray: (json: Json) => [{ json }],
    },
  };
}

const defaults = { resource: 'job', options: {}, wait: true, minutes: 1, outputProperty: 'data' };
const video = () => service().outside.file('tone.mp4', clip('tone.mp4'));

async function run(parameters: Json, more: Parameters<typeof n8n>[1] = {}): Promise<Json> {
  const { Soundpost } = await nodes;
  const [[item]] = await new Soundpost().execute.call(n8n({ ...defaults, ...parameters }, more));
  return item;
}

describe('the node for n8n', () => {
  it('answers the job with its file, whose bucket would get no key', async () => {
    const asked: Request[] = [];
    const request = { operation: 'extract', source: 'url', url: await video(), format: 'mp3' };
    const { json, binary, pairedItem } = await run(request, { asked });
    expect([json.status, pairedItem]).toEqual(['completed', { item: 0 }]);
    expect(binary.data).toMatchObject({ fileName: 'tone.mp3', mimeType: 'audio/mpeg' });
    expect(binary.data.data.length).toBe(json.outputFile.size);
    expect(asked.at(-1)?.headers.has('x-api-key')).toBe(false);
  });

  it('uploads binary data under its name', async () => {
    const binary = { data: { fileName: "it's täst.mp4", mimeType: 'video/mp4' } };
    const request = { operation: 'extract', source: 'binary', binaryProperty: 'data', format: 'voice' };
    expect((await run(request, { binary })).json.inputFile.name).toBe("it's täst.mp4");
  });

  it('fails in the words of the service', async () => {
    const refused = { operation: 'extract', source: 'url', url: 'http://10.0.0.1/a.mp4', format: 'mp3' };
    await expect(run(refused)).rejects.toMatchObject({
      message: expect.stringMatching(/^INVALID_SOURCE: /),
      description: expect.stringContaining('OUTBOUND_ALLOW'),
    });
    await expect(run({ operation: 'download', jobId: 'job_0000000000000000' })).rejects.toThrow(
      /^JOB_NOT_FOUND/,
    );
    await expect(
      run({ operation: 'extract', source: 'url', url: `${await video()}-not`, format: 'mp3' }),
    ).rejects.toThrow(/^DOWNLOAD_FAILED/);
  });

  it('makes no file of a job that is not ready', async () => {
    const slow = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
    const request = { operation: 'extract', source: 'url', url: slow.url, format: 'mp3', wait: false };
    const { json } = await run(request);
    await expect(run({ operation: 'download', jobId: json.jobId })).rejects.toThrow(/has no file/);
    slow.letGo();
    await service().ended(json.jobId);
    expect((await run({ operation: 'download', jobId: json.jobId })).binary.data.fileName).toBe('slow.mp3');
  });
});

describe('the trigger for n8n', () => {
  it('takes what the key has signed, and asks for nothing where nothing can be signed', async () => {
    const { SoundpostTrigger } = await triggers;
    const { secret } = (await service().call('GET', '/v1/webhooks/secret')).body.data;
    const post = async (headers: Json, body = '{"event":"job.completed"}') => {
      const asked: Request[] = [];
      let status = 200;
      const functions = {
        ...n8n({ events: ['job.completed'] }, { asked }),
        getRequestObject: () => ({ rawBody: Buffer.from(body) }),
        getHeaderData: () => headers,
        getBodyData: () => JSON.parse(body),
        getResponseObject: () => ({ status: (code: number) => ({ json: () => (status = code) }) }),
      };
      const { workflowData } = await new SoundpostTrigger().webhook.call(functions);
      return { status, started: workflowData !== undefined, asked: asked.length };
    };
    const signed = (key: string, seconds = Math.floor(Date.now() / 1000)) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
        .update(`msg_1.${seconds}.{"event":"job.completed"}`)
        .digest('base64')}`,
    });
    expect(await post(signed(secret))).toEqual({ status: 200, started: true, asked: 1 });
    expect(await post(signed(`whsec_${Buffer.alloc(32).toString('base64')}`))).toMatchObject({
      status: 401,
      started: false,
    });
    expect(await post(signed(secret), '{"event":"job.completed" }')).toMatchObject({
      status: 401,
      started: false,
    });
    expect(await post(signed(secret, 1))).toEqual({ status: 401, started: false, asked: 0 });
    expect(await post({})).toEqual({ status: 401, started: false, asked: 0 });
  });
});
