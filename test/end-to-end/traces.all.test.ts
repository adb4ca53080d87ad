/**
 * One trace from the request to the message in the chat: three processes, a caller that has a trace of its own, and a collector. Then what must not happen: a collector that is
 * away does no harm, without one nothing of OpenTelemetry's SDK is loaded, and no trace holds what a caller said.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BucketServer, serveBucket } from 'soundpost-testing/bucket';
import { Client, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Collector,
  type Span,
  startCollector,
} from '../../packages/kit/test/observe/tracing/collector.ts';
import { ada } from './inbox.ts';
import { useVideos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';
const SECRET_WORD = 'canary7d41';
const AT_GATEWAY = 'POST /message/sendMessengerAudio/:instance';
/** Of the caller's own systems. */
const CALLER = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' };

const videos = useVideos();
let redis: TestRedis;
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;
let store: BucketServer;
let collector: Collector;
let worker: RunningProcess;
let client: Client;
let api = '';

beforeAll(async () => {
  redis = await startTestRedis();
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks();
  store = await serveBucket();
  collector = await startCollector();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that three processes share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow},${store.allow}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=a%20key',
    LOG_LEVEL: 'debug',
  });
  api = await home.start('api').says(/^API\s+(http\S+)/m);
  const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
  const gateway = await home.start('gateway', addresses).says(/^Gateway\s+(http\S+)/m);
  worker = home.start('worker', { ...addresses, GATEWAY_URL: gateway });
  await worker.says(/^Worker/m);
  client = new Client(api, home.key);
});
afterAll(async () => {
  await home?.remove();
  await collector?.close();
  await store?.close();
  await hooks?.close();
  await web?.close();
  await redis?.close();
});

/** Submits as a caller that is traced itself. */
async function submitTraced(job: object): Promise<string> {
  const response = await fetch(`${api}/v1/extract`, {
    method: 'POST',
    headers: {
      'X-API-Key': home.key,
      'content-type': 'application/json',
      traceparent: `00-${CALLER.trace}-${CALLER.span}-01`,
      tracestate: 'vendor=of-the-callers-own',
    },
    body: JSON.stringify(job),
  });
  expect(response.status).toBe(202);
  const { data } = (await response.json()) as { data: { jobId: string } };
  return data.jobId;
}

const ofTrace = (traceId: string): Span[] => collector.spans.filter((span) => span.traceId === traceId);

describe('a job with a webhook and a voice message', () => {
  let spans: Span[];
  let jobId: string;
  const named = (service: string, name: string | RegExp): Span => {
    const found = spans.find(
      (span) =>
        span.service === `soundpost-${service}` &&
        (typeof name === 'string' ? span.name === name : name.test(span.name)),
    );
    if (found === undefined) {
      throw new Error(`no ${name} of ${service} in ${spans.map((s) => `${s.service} ${s.name}`).join(', ')}`);
    }
    return found;
  };
  /** Names of what the span is in, from the nearest to the first. */
  const above = (span: Span): string[] => {
    const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
    return parent === undefined ? [] : [parent.name, ...above(parent)];
  };

  beforeAll(async () => {
    jobId = await submitTraced({
      source: { type: 'url', url: `${web.url('talk.mp4')}?token=${SECRET_WORD}` },
      output: { format: 'mp3', normalize: true },
      options: {
        webhook: `${hooks.url}?token=${SECRET_WORD}`,
        voiceMessage: { instance: 'main', number: ada.number },
        filename: SECRET_WORD,
      },
      destination: {
        url: `${store.url}/${SECRET_WORD}.mp3?sig=${SECRET_WORD}`,
        headers: { Authorization: `Bearer ${SECRET_WORD}` },
      },
    });
    await client.completed(jobId);
    await hooks.notifications(jobId, 'voice.updated');
    await hooks.notifications(jobId, 'destination.updated');
    spans = await until('the last span has come', () => {
      const found = ofTrace(CALLER.trace);
      const posts = found.filter(({ name }) => name === 'POST webhook');
      const hasEnded = (end: string): boolean => found.some(({ name }) => name === end);
      // What a span is in ends after it, and may come with the next lot.
      const known = new Set([CALLER.span, ...found.map(({ spanId }) => spanId)]);
      const isWhole = found.every(({ parentSpanId }) => known.has(parentSpanId));
      return isWhole && posts.length === 3 && hasEnded('process completion') && hasEnded(AT_GATEWAY) && found;
    });
  });

  it('is one trace, which its caller began', () => {
    const request = named('api', 'POST /v1/extract');
    expect(request).toMatchObject({ parentSpanId: CALLER.span, kind: 2 });
    expect(request.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/extract',
      'http.response.status_code': 202,
      'soundpost.request.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const known = new Set([CALLER.span, ...spans.map(({ spanId }) => spanId)]);
    expect(spans.filter(({ parentSpanId }) => !known.has(parentSpanId))).toEqual([]);
    expect(new Set(spans.map(({ service }) => service))).toEqual(
      new Set(['soundpost-api', 'soundpost-worker', 'soundpost-gateway']),
    );
  });

  it('goes from the request through the queue to the worker, its steps and the runs of ffmpeg', () => {
    const processing = named('worker', 'process extract');
    expect(processing).toMatchObject({ kind: 5, attributes: { 'bullmq.job.id': jobId } });
    expect(above(processing)).toEqual([
      'addNode extract',
      'addNode completion',
      'addBulkFlows',
      'POST /v1/extract',
    ]);
    const steps = spans.filter(({ parentSpanId }) => parentSpanId === processing.spanId);
    expect(steps.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['download', 'await_encoder', 'analyze', 'extract', 'finalize']),
    );
    expect(above(named('worker', 'normalize'))[0]).toBe('extract');
    const runs = spans.filter(({ service, name }) => service === 'soundpost-worker' && /^ff/.test(name));
    expect(runs.map((run) => [run.name, above(run)[0]])).toEqual(
      expect.arrayContaining([['ffmpeg', 'extract']]),
    );
    expect(runs.every(({ attributes }) => attributes['soundpost.tool.ending'] === 'completed')).toBe(true);
  });

  it('goes on from its end to the webhook, which carries the ids and no more', async () => {
    const [post] = spans.filter(
      ({ name, attributes }) => name === 'POST webhook' && attributes['soundpost.event'] === 'job.completed',
    );
    if (post === undefined) throw new Error('no webhook of the end');
    expect(above(post).slice(0, 3)).toEqual([
      'process webhook',
      expect.stringMatching(/^add webhook/),
      'process completion',
    ]);
    expect(post).toMatchObject({ kind: 3, attributes: { 'http.response.status_code': 204 } });
    // Whose address it is was the caller's choice.
    expect(Object.keys(post.attributes).sort()).toEqual([
      'http.request.method',
      'http.response.status_code',
      'soundpost.event',
    ]);
    const [notification] = await hooks.notifications(jobId, 'job.completed');
    expect(notification?.headers.traceparent).toBe(`00-${CALLER.trace}-${post.spanId}-01`);
    expect(notification?.headers.tracestate).toBeUndefined();
  });

  it('and to the gateway, its preparation and the network', () => {
    const received = named('gateway', AT_GATEWAY);
    expect(above(received).slice(0, 2)).toEqual(['POST voice message', 'process voice']);
    const sent = named('gateway', 'send to network');
    expect(above(sent)[0]).toBe(received.name);
    expect(sent.attributes).toMatchObject({ 'soundpost.transport': 'loopback' });
    expect(above(named('gateway', 'ffprobe'))[0]).toBe('prepare voice note');
  });

  it('and to the bucket that its file is put to, by its host alone', () => {
    const put = named('worker', 'PUT destination');
    expect(above(put)[0]).toBe('process destination');
    expect(put).toMatchObject({ kind: 3 });
    expect(put.attributes).toEqual({
      'http.request.method': 'PUT',
      'server.address': '127.0.0.1',
      'http.response.status_code': 200,
    });
    expect(store.bucket.puts).toMatchObject([{ isWhole: true, status: 200 }]);
  });

  it('has its ids in the lines of the log', () => {
    const lines = worker
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    const downloaded = lines.find(({ msg }) => msg === 'source downloaded');
    expect(downloaded).toMatchObject({
      jobId,
      traceId: CALLER.trace,
      spanId: named('worker', 'download').spanId,
    });
  });

  it('says nothing of what the caller said: no address, no name, no number', () => {
    expect(collector.text()).toContain(jobId);
    for (const word of [SECRET_WORD, ada.number, 'talk.mp4', home.key]) {
      expect([word, collector.text().includes(word)]).toEqual([word, false]);
    }
  });
});

it('what nobody asked for makes no trace: no look into the queue, no scrape, no health check', async () => {
  for (const path of ['/metrics', '/health/live', '/health/ready']) await fetch(`${api}${path}`);
  await client.call('GET', '/v1/usage');
  await until('the request came', () => collector.spans.some(({ name }) => name === 'GET /v1/usage'));
  const firsts = collector.spans.filter(({ parentSpanId }) => parentSpanId === '');
  expect(firsts.filter(({ kind }) => kind === 1)).toEqual([]);
  expect(firsts.filter(({ name }) => /metrics|health/.test(name))).toEqual([]);
});

it('a caller who does not want a trace gets none', async () => {
  const traceId = 'ffffffffffffffffffffffffffffff01';
  const headers = { 'X-API-Key': home.key, traceparent: `00-${traceId}-${CALLER.span}-00` };
  await fetch(`${api}/v1/usage`, { headers });
  await fetch(`${api}/v1/usage`, { headers: { ...headers, traceparent: `00-${traceId}-${CALLER.span}-01` } });
  await until('the second came', () => ofTrace(traceId).length > 0);
  expect(ofTrace(traceId)).toHaveLength(1);
});

it('a request whose caller left before the answer has no status', async () => {
  const traceId = 'ffffffffffffffffffffffffffffff02';
  const socket = connect(Number(new URL(api).port), '127.0.0.1');
  await once(socket, 'connect');
  const headers = [
    'Host: 127.0.0.1',
    `X-API-Key: ${home.key}`,
    `traceparent: 00-${traceId}-${CALLER.span}-01`,
    'Content-Type: application/json',
    'Content-Length: 100',
  ];
  socket.end(`POST /v1/extract HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n{`);
  const [span] = await until('its span has come', () => {
    const found = ofTrace(traceId);
    return found.length > 0 && found;
  });
  expect(span?.attributes).toMatchObject({ 'http.route': '/v1/extract', 'soundpost.answered': false });
  expect(span?.attributes).not.toHaveProperty('http.response.status_code');
});

it('the collector gets the headers that it asks for', () => {
  expect(collector.headers[0]).toMatchObject({ 'x-collector-key': 'a key', ':path': '/v1/traces' });
});

describe('a process of its own', () => {
  let folder: string;
  let own: ServiceHome;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'soundpost-loaded-'));
    own = await ServiceHome.make({ OUTBOUND_ALLOW: web.allow });
  });
  afterAll(async () => {
    await own?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function loadedBy(environment: Record<string, string>): Promise<{ modules: string[]; log: string }> {
    const list = join(folder, `${Object.keys(environment).length}`);
    const { process: server, api: address } = await own.serve({
      ...environment,
      LOADED_MODULES: list,
      NODE_OPTIONS: `--import ${join(import.meta.dirname, 'note-loaded.ts')}`,
    });
    const caller = new Client(address, own.key);
    const source = { type: 'url', url: web.url('talk.mp4') };
    await caller.completed(await caller.submit({ source, output: { format: 'opus' } }));
    server.signal('SIGTERM');
    expect(await server.exited).toBe(0);
    return { modules: (await readFile(list, 'utf8')).split('\n'), log: server.output() };
  }
  const tracers = (modules: readonly string[]): string[] =>
    modules.filter((url) => /@opentelemetry\/(?!api\/)|bullmq-otel|\/src\/observe\/tracing\/open-/.test(url));

  it('without a collector loads nothing of it', async () => {
    const { modules } = await loadedBy({});
    expect(modules.filter((url) => url.includes('/prom-client/')).length).toBeGreaterThan(0);
    expect(tracers(modules)).toEqual([]);
  });

  it('with one that is away works and stops all the same, and says so once', async () => {
    const { modules, log } = await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    expect(tracers(modules).length).toBeGreaterThan(5);
    expect(log.match(/traces could not be sent/g)).toHaveLength(1);
  });
});
