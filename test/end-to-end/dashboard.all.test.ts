// @module-tag prometheus
/**
 * The dashboard, the alerts and the table of metrics against the real thing: three processes that do some of everything, scraped by a real Prometheus,
 * which is asked every query that there is.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { metricTable } from 'soundpost-kit/observe/metrics/table';
import { Client, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { type Prometheus, startPrometheus } from 'soundpost-testing/prometheus';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { samplesOf } from '../api/metrics/samples.ts';
import { run } from '../house/command.ts';
import { ada } from './inbox.ts';
import { useVideos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';
const deploy = join(import.meta.dirname, '../../deploy');
const alertFile = join(deploy, 'prometheus/alerts.yml');
const alertTests = join(import.meta.dirname, 'alerts.test.yml');

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard = JSON.parse(readFileSync(join(deploy, 'grafana/soundpost.json'), 'utf8')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string }[] };
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): [string, string] => [title, expr]),
);

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
const rules: Rule[] = parse(readFileSync(alertFile, 'utf8')).groups.flatMap(
  ({ rules: inGroup }: { rules: Rule[] }) => inGroup,
);

/** What an alert watches for and a healthy service does not do: nothing is there before it happens for the first time. */
const absentWhileWell = ['http_server_request_duration_seconds_count{status=~"5..", route!="/health/ready"}'];

/** What {@link doSomeOfEverything} does nothing for: what a healthy service has none of, and what may be over, or not measurable yet, when it is looked at. */
const mayBeNothing = [
  ...['Jobs waiting', 'Oldest job waits', 'Oldest job that waits', 'Workers that take no jobs'],
  ...['ffmpeg and ffprobe', 'Processes of ffmpeg', 'Webhooks given up'],
];
/** Of a panel with several queries the ones that may be 0. */
const mayBeZero = [/source_bytes_saved/];

const videos = useVideos();
let redis: TestRedis;
let home: ServiceHome;
let web: VideoServer;
let slow: Server;
let hooks: WebhookReceiver;
let prometheus: Prometheus;
let client: Client;
/** `host:port` of each process. */
let servers: Record<'api' | 'worker' | 'gateway', string>;

beforeAll(async () => {
  redis = await startTestRedis();
  web = await serveVideos(videos.folder);
  slow = await startSlowSource();
  hooks = await receiveWebhooks((nth) => (nth === 1 ? 500 : 204));
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that three processes share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow},127.0.0.1:${portOf(slow)}`,
    WEBHOOK_SCHEDULE_SECONDS: '0,1',
  });
  const api = await home.start('api').says(/^API\s+http:\/\/(\S+)/m);
  const addresses = { PUBLIC_URL: `http://${api}`, GATEWAY_EVENTS_URL: `http://${api}/hooks/gateway` };
  const gateway = await home.start('gateway', addresses).says(/^Gateway\s+http:\/\/(\S+)/m);
  const worker = await home
    .start('worker', { ...addresses, GATEWAY_URL: `http://${gateway}` })
    .says(/^Worker.* http:\/\/(127\.0\.0\.1:\d+)\//m);
  servers = { api, worker, gateway };
  client = new Client(`http://${api}`, home.key);
  prometheus = await startPrometheus(servers, alertFile);
  await doSomeOfEverything();
});
afterAll(async () => {
  await prometheus?.close();
  await home?.remove();
  await hooks?.close();
  await web?.close();
  slow?.closeAllConnections();
  slow?.close();
  await redis?.close();
});

/** Jobs that complete, fail and are cancelled, webhooks of both kinds, a voice message, requests that are refused. */
async function doSomeOfEverything(): Promise<void> {
  const source = { type: 'url', url: web.url('talk.mp4') };
  await atGateway('POST', '/webhook/set/main', {
    webhook: { enabled: true, url: hooks.url, events: ['messages.upsert', 'messages.update'] },
  });
  const voiceMessage = { instance: 'main', number: ada.number };
  const jobId = await client.submit({
    source,
    output: { format: 'mp3', normalize: true },
    options: { webhook: hooks.url, voiceMessage },
  });
  await client.completed(jobId);
  await hooks.notifications(jobId, 'voice.updated');
  await client.ended(
    await client.submit({ source: { ...source, url: web.url('missing.mp4') }, output: { format: 'mp3' } }),
  );
  web.hold();
  const held = await client.submit({ source, output: { format: 'flac' } });
  await until('it is being fetched', () => web.requests.filter((name) => name === 'talk.mp4').length > 1);
  await client.call('DELETE', `/v1/jobs/${held}`);
  web.letGo();
  await askAround();
  // What is there for the first time has no rate yet.
  await until('the requests were seen', async () => {
    const seen = await prometheus.query('http_server_request_duration_seconds_count{status="404"}');
    return new Set(seen.map(({ labels }) => labels.server)).size === 2;
  });
  await askAround();
  // What is in the queues is told of the moment alone, so something stays there until the end.
  const url = `http://127.0.0.1:${portOf(slow)}/slow.wav`;
  await client.submit({ source: { type: 'url', url }, output: { format: 'wav' } });
}

/** Sends a source for hours, quickly enough not to be given up; one that stands still would be. */
async function startSlowSource(): Promise<Server> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': 100_000_000 });
    const dripping = setInterval(() => response.write(Buffer.alloc(20_000)), 1000);
    response.once('close', () => clearInterval(dripping));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function askAround(): Promise<void> {
  await client.call('GET', '/v1/status/job_0000000000000000');
  await client.call('GET', '/nowhere');
  await atGateway('GET', '/instance/connectionState/nobody');
}

async function atGateway(method: string, path: string, body?: object): Promise<void> {
  await fetch(`http://${servers.gateway}${path}`, {
    method,
    headers: { apikey: GATEWAY_KEY, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
}

/** As Grafana fills it in. */
function filledIn(expression: string): string {
  return expression
    .replaceAll('$job', '.*')
    .replaceAll('$__rate_interval', '5m')
    .replaceAll('$__range', '5m');
}

/** Whether what the panel shows was done, so that it must show more than 0. */
function isDone(title: string, expression: string): boolean {
  return !mayBeNothing.includes(title) && !mayBeZero.some((pattern) => pattern.test(expression));
}

describe('the dashboard', () => {
  it('is exempt from showing something only where there is a panel', () => {
    const titles = queries.map(([title]) => title);
    expect(mayBeNothing.filter((title) => !titles.includes(title))).toEqual([]);
  });

  it('has panels, and no variable that the test does not know', () => {
    expect(queries.length).toBeGreaterThan(30);
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'job']);
    expect(queries.filter(([, expression]) => filledIn(expression).includes('$'))).toEqual([]);
  });

  it.each(queries)('%s: %s', async (title, expression) => {
    // A rate needs two scrapes after what it is the rate of.
    const found = await until(`${expression} answers`, async () => {
      const series = await prometheus.query(filledIn(expression));
      const least = isDone(title, expression) ? Number.MIN_VALUE : Number.NEGATIVE_INFINITY;
      return series.some(({ value }) => Number.isFinite(value) && value >= least) && series;
    });
    expect(found.length).toBeGreaterThan(0);
  });
});

describe('the alerts', () => {
  it('fire when they should, and not otherwise', async () => {
    // promtool finds the rules beside the tests.
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-alerts-'));
    try {
      await writeFile(join(folder, 'alerts.yml'), readFileSync(alertFile));
      await writeFile(join(folder, 'alerts.test.yml'), readFileSync(alertTests));
      const { code, output } = await run(folder, 'promtool', ['test', 'rules', 'alerts.test.yml']);
      expect(output).toContain('SUCCESS');
      expect(code).toBe(0);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    const tested = parse(readFileSync(alertTests, 'utf8')).tests.flatMap(
      ({ alert_rule_test }: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }) =>
        alert_rule_test
          .filter(({ exp_alerts = [] }) => exp_alerts.length > 0)
          .map(({ alertname }) => alertname),
    );
    expect(rules.map(({ alert }) => alert).filter((name) => !tested.includes(name))).toEqual([]);
  });

  it.each(rules.map(({ alert, expr }): [string, string] => [alert, expr]))(
    '%s asks for what is there, and is quiet',
    async (alert, expression) => {
      const selectors = [...expression.matchAll(/\b(?:soundpost|http|nodejs)_\w+(?:\{[^}]*\})?/g)].map(
        ([text]) => text,
      );
      expect(selectors.length).toBeGreaterThan(0);
      for (const selector of selectors.filter((one) => !absentWhileWell.includes(one))) {
        // On a busy machine a scrape may come too late, and until the next one nothing is there.
        await until(`${selector} is there`, async () => (await prometheus.query(selector)).length > 0);
      }
      expect(await prometheus.query(`ALERTS{alertname="${alert}", alertstate="firing"}`)).toEqual([]);
    },
  );
});

describe('GET /metrics', () => {
  it.each(['api', 'worker', 'gateway'] as const)('of the %s pleases promtool', async (server) => {
    const text = await (await fetch(`http://${servers[server]}/metrics`)).text();
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-metrics-'));
    try {
      await writeFile(join(folder, 'metrics'), text);
      const { code, output } = await run(folder, 'sh', ['-c', 'promtool check metrics <metrics']);
      // Names of prom-client's own.
      const ours = output.split('\n').filter((line) => /^(soundpost|http)_/.test(line));
      expect(ours).toEqual([]);
      expect([0, 3]).toContain(code);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('tells in each process what the table says that its part tells', async () => {
    for (const [part, server] of Object.entries(servers)) {
      const text = await (await fetch(`http://${server}/metrics`)).text();
      const told = new Set(samplesOf(text).map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')));
      const wanted = Object.entries(metricTable)
        .filter(([, { of }]) => (of as readonly string[]).includes(part))
        .map(([name]) => name);
      // What is told of a key comes with its first event.
      const missing = wanted.filter((name) => !told.has(name) && !name.startsWith('soundpost_key_'));
      expect([part, missing]).toEqual([part, []]);
      const surplus = [...told].filter((name) => name.startsWith('soundpost_') && !wanted.includes(name));
      expect([part, surplus]).toEqual([part, []]);
    }
  });
});
