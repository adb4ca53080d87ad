/**
 * Whatever a caller, a resolver or a server names, no connection is opened to where nobody may be led: each forbidden host × each way in which the service
 * is told of one, on real sockets, as a recorder below all libraries sees it.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import tls from 'node:tls';
import { fetchOptions } from 'soundpost-chat-whatsapp/network-request';
import { createGuardedClient } from 'soundpost-chat-xmpp/guarded-client';
import { createLogger } from 'soundpost-kit/observe/logger';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { recordConnects } from 'soundpost-testing/connect-recorder';
import { forbiddenAddresses, forbiddenHosts } from 'soundpost-testing/forbidden-hosts';
import {
  type Redirector,
  startRedirector,
  startXmppSender,
  type XmppSender,
} from 'soundpost-testing/misleading-servers';
import { PUBLIC_ADDRESS } from 'soundpost-testing/stub-network';
import { afterAll, beforeAll, expect, it } from 'vitest';

const STEP = 20;

let folder = '';
let redirector: Redirector;
let sender: XmppSender;
let outbound: Outbound;
/** What the names of the next vectors resolve to. */
const answers = new Map<string, string[]>();
let elsewhere = '';

/** With connections of its own, none of which is open yet. */
const opened = (): Outbound =>
  createOutbound({
    allow: parseAllowRules(`127.0.0.1:${redirector.port},127.0.0.1:${sender.port}`),
    ports: [80, 443, 8080, 8443],
    userAgent: 'Soundpost test',
    logger: createLogger('silent'),
    resolve: async (name) => answers.get(name) ?? [],
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-forbidden-'));
  redirector = await startRedirector();
  sender = await startXmppSender('xmpp.example', () => elsewhere);
  outbound = opened();
});
afterAll(async () => {
  await outbound.close();
  redirector.close();
  await sender.close();
  await rm(folder, { recursive: true });
});

let nth = 0;
const download = (url: string): Promise<unknown> => {
  nth += 1;
  return outbound.download({
    url,
    file: join(folder, `${nth}`),
    maxBytes: 1000,
    limits: { tries: 1, headersTimeoutMs: 5000 },
  });
};
const parts = (url: string): Promise<unknown> => {
  nth += 1;
  const limits = { tries: 1, headersTimeoutMs: 5000 };
  return outbound.downloadParts({
    url,
    file: join(folder, `${nth}`),
    maxBytes: 1000,
    limits,
    choose: async () => false,
  });
};
const post = (url: string): Promise<unknown> =>
  outbound.post({ url, headers: {}, body: '{}', timeoutMs: 5000 });
const put = (url: string): Promise<unknown> =>
  outbound.put({
    purpose: 'service',
    url,
    headers: {},
    body: Readable.from(['x']),
    sizeBytes: 1,
    idleMs: 5000,
  });
const putTo = (url: string): Promise<unknown> =>
  outbound.put({
    purpose: 'destination',
    url,
    headers: {},
    body: Readable.from(['x']),
    sizeBytes: 1,
    idleMs: 5000,
  });
const bytes = (url: string): Promise<unknown> => outbound.fetchBytes({ url, maxBytes: 1000 });
/** As `ws` and Baileys' uploads do. */
const byAgent = async (host: string, service = outbound.service()): Promise<unknown> => {
  const { agent } = await service;
  const asking = request(`https://${host}/`, { agent }).end();
  return once(asking, 'response').finally(() => asking.destroy());
};
const byFetch = async (url: string): Promise<unknown> => fetch(url, fetchOptions(await outbound.service()));
const redirected = (url: string): string => redirector.to(url);

/** A name of its own, which resolves to the address alone, or to a public one before it. */
function named(address: string, how: 'alone' | 'mixed'): string {
  nth += 1;
  const name = `n${nth}.example`;
  answers.set(name, how === 'mixed' ? [PUBLIC_ADDRESS, address] : [address]);
  return name;
}

/** What it ended with, the cause of what `fetch` throws in its place; `done` when it did not fail. */
const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: Error) => `${(error.cause instanceof Error ? error.cause : error).name}`,
  );

/** Those that the guard did not refuse, with how they ended. */
async function tryAll(
  vectors: readonly string[],
  attempt: (vector: string) => Promise<unknown>,
): Promise<string[]> {
  const others: string[] = [];
  for (let from = 0; from < vectors.length; from += STEP) {
    const some = vectors.slice(from, from + STEP);
    const ends = await Promise.all(some.map((vector) => outcome(attempt(vector))));
    others.push(
      ...some
        .map((vector, index) => `${vector}: ${ends[index]}`)
        .filter((end) => !end.endsWith(': OutboundRefused')),
    );
  }
  return others;
}

type Way = readonly [name: string, vectors: readonly string[], attempt: (vector: string) => Promise<unknown>];

const ways: readonly Way[] = [
  ['a source', forbiddenHosts, (host) => download(`http://${host}/`)],
  ['a source of which parts are fetched', forbiddenHosts, (host) => parts(`https://${host}:8443/`)],
  ['audio for the gateway', forbiddenHosts, (host) => bytes(`https://${host}/`)],
  ['a webhook', forbiddenHosts, (host) => post(`https://${host}/`)],
  ['an upload slot', forbiddenHosts, (host) => put(`https://${host}/`)],
  ['a destination', forbiddenHosts, (host) => putTo(`https://${host}/`)],
  ['a redirect of a source', forbiddenHosts, (host) => download(redirected(`http://${host}/`))],
  ['a redirect in parts', forbiddenHosts, (host) => parts(redirected(`http://${host}/`))],
  ['a redirect of audio', forbiddenHosts, (host) => bytes(redirected(`http://${host}/`))],
  ['the WebSocket of WhatsApp, and its uploads', forbiddenHosts, (host) => byAgent(host)],
  ['the address of their name', forbiddenAddresses, (address) => byAgent(named(address, 'mixed'))],
  ['what WhatsApp has fetched', forbiddenHosts, (host) => byFetch(`https://${host}/`)],
  ['a redirect of it', forbiddenHosts, (host) => byFetch(redirected(`https://${host}/`))],
  ['a name of a source', forbiddenAddresses, (address) => download(`http://${named(address, 'alone')}/`)],
  [
    'a name with public addresses too',
    forbiddenAddresses,
    (address) => download(`http://${named(address, 'mixed')}/`),
  ],
  ['a name of a webhook', forbiddenAddresses, (address) => post(`https://${named(address, 'alone')}/`)],
  ['a name of an upload slot', forbiddenAddresses, (address) => put(`https://${named(address, 'mixed')}/`)],
  ['a name of a destination', forbiddenAddresses, (address) => putTo(`https://${named(address, 'mixed')}/`)],
  [
    'a redirect to a name',
    forbiddenAddresses,
    (address) => download(redirected(`http://${named(address, 'alone')}/`)),
  ],
  [
    'a name that was public when it was checked',
    forbiddenAddresses,
    async (address) => {
      const name = named(PUBLIC_ADDRESS, 'alone');
      await outbound.checkUrl(`http://${name}/`, 'source');
      answers.set(name, [address]);
      return download(`http://${name}/`);
    },
  ],
];

it.each(ways)('%s', { timeout: 120_000 }, async (_name, vectors, attempt) => {
  const recorder = recordConnects();
  try {
    expect(await tryAll(vectors, attempt)).toEqual([]);
  } finally {
    recorder.stop();
  }
  expect(recorder.attempts.filter((at) => at !== `127.0.0.1:${redirector.port}`)).toEqual([]);
});

const clientOf = () => {
  const guarded = createGuardedClient({
    local: 'a',
    domain: 'xmpp.example',
    password: 'p',
    resource: 'r',
    deviceId: '00000000-0000-4000-8000-000000000000',
    guard: outbound,
  });
  const failed = new Promise<Error>((resolve) => guarded.client.on('error', resolve));
  return { ...guarded, failed };
};

const open = (hostname: string, port: number): Promise<unknown> => {
  const client = clientOf();
  return client.open({ directTls: false, hostname, port }).finally(() => client.cut());
};

it.each<Way>([
  [
    'an account’s server, as the operator or an SRV record names it',
    forbiddenAddresses,
    (address) => open(address, 5222),
  ],
  ['the address of its name', forbiddenAddresses, (address) => open(named(address, 'mixed'), 5222)],
])('%s', { timeout: 120_000 }, async (_name, vectors, attempt) => {
  const recorder = recordConnects();
  try {
    expect(await tryAll(vectors, attempt)).toEqual([]);
  } finally {
    recorder.stop();
  }
  expect(recorder.attempts).toEqual([]);
});

it('where an XMPP server sends its clients', { timeout: 240_000 }, async () => {
  const recorder = recordConnects();
  const ended: string[] = [];
  try {
    for (const address of forbiddenAddresses) {
      elsewhere = address.includes(':') ? `[${address}]:5222` : `${address}:5222`;
      const client = clientOf();
      await client.open({ directTls: false, hostname: '127.0.0.1', port: sender.port });
      ended.push((await client.failed).name);
      client.cut();
    }
  } finally {
    recorder.stop();
  }
  expect(new Set(ended)).toEqual(new Set(['OutboundRefused']));
  expect(recorder.attempts.filter((at) => at !== `127.0.0.1:${sender.port}`)).toEqual([]);
  expect(recorder.attempts).toHaveLength(forbiddenAddresses.length);
});

it('what WhatsApp uses reaches what is allowed', async () => {
  const recorder = recordConnects();
  const fresh = opened();
  const service = fresh.service();
  const moved = await fetch(redirected('https://127.0.0.1/'), {
    ...fetchOptions(await service),
    redirect: 'manual',
  });
  expect(moved.status).toBe(302);
  // It speaks no TLS: an answer that is none, or a connection that breaks, as the server is sooner or later.
  expect(await outcome(byAgent(`127.0.0.1:${redirector.port}`, service))).toBe('Error');
  recorder.stop();
  await fresh.close();
  expect(recorder.attempts).toEqual([`127.0.0.1:${redirector.port}`, `127.0.0.1:${redirector.port}`]);
});

it('the recorder sees TCP, TLS and UDP, whoever opens them', async () => {
  const recorder = recordConnects();
  const port = redirector.port;
  const sockets = [connect(port, '127.0.0.1'), tls.connect(port, '127.0.0.1')];
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.race(sockets.map((socket) => once(socket, 'connect')));
  await fetch(redirected('http://127.0.0.1/'), { redirect: 'manual' });
  const udp = createSocket('udp4');
  udp.send('x', port, '127.0.0.1');
  for (const socket of sockets) socket.destroy();
  udp.close();
  recorder.stop();
  expect(recorder.attempts.filter((at) => at === `127.0.0.1:${port}`).length).toBeGreaterThanOrEqual(3);
  expect(recorder.attempts.some((at) => at.startsWith('udp '))).toBe(true);
});

it('there are enough of them', () => {
  const total = ways.reduce((sum, [, vectors]) => sum + vectors.length, 0);
  expect([forbiddenHosts.length > 800, forbiddenAddresses.length > 380, total > 2000]).toEqual([
    true,
    true,
    true,
  ]);
});
