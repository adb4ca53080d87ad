/**
 * The whole service, as real processes: what it is told by callers, redirects and accounts leads none of them to where nobody may be led. Each process
 * writes down every connection that it tries to open (packages/testing/src/connect-recorder.ts).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, type Json } from 'soundpost-testing/client';
import { forbiddenAddresses, forbiddenHosts } from 'soundpost-testing/forbidden-hosts';
import { fetch } from 'soundpost-testing/http';
import {
  type Redirector,
  startRedirector,
  startXmppSender,
  type XmppSender,
} from 'soundpost-testing/misleading-servers';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** Every so manieth, so that each range and each spelling comes in one of the ways. */
const EVERY = 7;
const GATEWAY_KEY = 'a key of the gateway for these tests';
const recorder = import.meta.resolve('soundpost-testing/connect-recorder');

let server: TestRedis;
let home: ServiceHome;
let redirector: Redirector;
let sender: XmppSender;
let api = '';
let gateway = '';
let record = '';
const nextHosts: string[] = [];

const some = (hosts: readonly string[], offset: number): string[] =>
  hosts.filter((_host, nth) => nth % EVERY === offset % EVERY);

beforeAll(async () => {
  server = await startTestRedis();
  redirector = await startRedirector();
  sender = await startXmppSender('xmpp.example', () => nextHosts.shift() ?? '');
  home = await ServiceHome.make({
    REDIS_URL: server.url,
    SECRET_KEY: 'a secret of the tests, which is of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `127.0.0.1:${redirector.port},127.0.0.1:${sender.port}`,
    UNFINISHED_PER_KEY: '2000',
  });
  record = join(home.folder, 'connects');
  const recording = { CONNECTS_FILE: record, NODE_OPTIONS: `--import=${recorder}` };
  const processes = ['gateway', 'api', 'worker'].map((part) => home.start(part, recording));
  gateway = (await processes[0]?.says(/^Gateway\s+(http\S+)/m)) ?? '';
  api = (await processes[1]?.says(/^API\s+(http\S+)/m)) ?? '';
  await processes[2]?.says(/health at (http\S+)\/health/);
}, 120_000);
afterAll(async () => {
  await home.remove();
  redirector.close();
  await sender.close();
  await server.close();
});

const redirected = (url: string): string => redirector.to(url);
const job = (url: string, options: object = {}): object => ({
  source: { type: 'url', url },
  output: { format: 'mp3' },
  options,
});

async function callGateway(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${gateway}${path}`, {
    method,
    headers: { apikey: GATEWAY_KEY, 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

it('no process connects to where nobody may be led', { timeout: 240_000 }, async () => {
  const client = new Client(api, home.key);
  const tried = { submissions: 0, redirects: 0, audio: 0, webhooks: 0, accounts: 0, sentOn: 0 };

  for (const host of some(forbiddenHosts, 0)) {
    const { status } = await client.call('POST', '/v1/extract', job(`http://${host}/talk.mp4`));
    expect([host, status]).toEqual([host, 400]);
    tried.submissions += 1;
  }
  for (const host of some(forbiddenHosts, 1)) {
    const webhook = { webhook: `https://${host}/hook` };
    const { status } = await client.call(
      'POST',
      '/v1/extract',
      job(redirected('http://127.0.0.1/'), webhook),
    );
    expect([host, status]).toEqual([host, 400]);
    tried.submissions += 1;
  }
  // The worker is led there by a server that it may ask.
  const jobs: string[] = [];
  for (const host of some(forbiddenHosts, 2))
    jobs.push(await client.submit(job(redirected(`http://${host}/`))));
  for (const jobId of jobs) {
    const { error } = await client.ended(jobId, 60_000);
    expect(error?.code).toBe('DOWNLOAD_FAILED');
    tried.redirects += 1;
  }

  for (const host of some(forbiddenHosts, 3)) {
    for (const audio of [`https://${host}/note.ogg`, redirected(`http://${host}/`)]) {
      const { status, body } = await callGateway('POST', '/message/sendWhatsAppAudio/main', {
        number: '12025550101',
        audio,
      });
      // For the address, and not for a form that is wrong.
      expect([host, status, JSON.stringify(body)]).toEqual([
        host,
        400,
        expect.stringMatching(/address|fetch|URL|url/),
      ]);
      tried.audio += 1;
    }
    const webhook = { url: `https://${host}/hook`, events: ['messages.upsert'] };
    const { status, body } = await callGateway('POST', '/webhook/set/main', { webhook });
    expect([host, status, JSON.stringify(body)]).toEqual([host, 400, expect.stringMatching(/url/)]);
    tried.webhooks += 1;
  }

  // Accounts whose server lies there, and whose server sends them there.
  const account = async (instanceName: string, service: string): Promise<string> => {
    const connection = { jid: 'somebody@xmpp.example', password: 'secret', service };
    await callGateway('POST', '/instance/create', { instanceName, transport: 'xmpp', connection });
    await until(`${instanceName} is closed`, async () => {
      const { body } = await callGateway('GET', `/instance/connectionState/${instanceName}`);
      return body.instance?.state === 'close';
    });
    return instanceName;
  };
  for (const address of some(forbiddenAddresses, 4).slice(0, 40)) {
    const host = address.includes(':') ? `[${address}]` : address;
    await account(`at-${tried.accounts}`, `xmpp://${host}:5222`);
    tried.accounts += 1;
    nextHosts.push(`${host}:5222`);
    await account(`sent-${tried.sentOn}`, `xmpp://127.0.0.1:${sender.port}`);
    tried.sentOn += 1;
  }

  const attempts = (await readFile(record, 'utf8')).trim().split('\n');
  const ports = [new URL(api).port, new URL(gateway).port, redirector.port, sender.port];
  const known = [server.url.replace(/^unix:\/\//, ''), ...ports.map((port) => `127.0.0.1:${port}`)];
  expect(attempts.filter((at) => !known.some((one) => at === one || one.startsWith(at)))).toEqual([]);
  // It saw what they did open: redirects of jobs and audio, and the server that sends accounts on.
  const reached = (port: number): number => attempts.filter((at) => at === `127.0.0.1:${port}`).length;
  expect(reached(redirector.port)).toBeGreaterThanOrEqual(tried.redirects);
  expect(reached(sender.port)).toBeGreaterThanOrEqual(tried.sentOn);
  process.stdout.write(
    `${JSON.stringify({ row: 'connects of all processes', ...tried, attempts: attempts.length })}\n`,
  );
});
