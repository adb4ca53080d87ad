import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundFailed } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { httpServer, tcpServer } from './hostile-server.ts';

/** A certificate for the name media.example that signs itself; its key guards nothing. */
const certificate = readFileSync(new URL('fixtures/media.example.crt', import.meta.url), 'utf8');
const key = readFileSync(new URL('fixtures/media.example.key', import.meta.url), 'utf8');

function outboundWith(allow: string, resolve?: Parameters<typeof createOutbound>[0]['resolve']): Outbound {
  const logger = pino({ level: 'silent' });
  const rules = parseAllowRules(allow);
  const options = { allow: rules, ports: [], userAgent: 'Soundpost test', logger };
  const outbound = createOutbound(resolve === undefined ? options : { ...options, resolve });
  onTestFinished(() => outbound.close());
  return outbound;
}

const loopback = async () => ['127.0.0.1'];

describe('over TLS', () => {
  const trusted = getCACertificates('default');
  let server: Server;
  let port: number;
  let names: (string | undefined)[];

  beforeAll(() => setDefaultCACertificates([...trusted, certificate]));
  afterAll(() => setDefaultCACertificates(trusted));

  beforeEach(async () => {
    names = [];
    server = createServer({ cert: certificate, key }, (_request, response) => response.end('secret'));
    server.on('secureConnection', (socket) => names.push(socket.servername || undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });

  afterEach(() => new Promise((resolve) => server.close(resolve)));

  test('the checked address is connected to under the name of the URL', async () => {
    const outbound = outboundWith(`media.example:${port}`, loopback);
    const bytes = await outbound.fetchBytes({ url: `https://media.example:${port}/`, maxBytes: 100 });
    expect(Buffer.from(bytes).toString()).toBe('secret');
    expect(names).toEqual(['media.example']);
  });

  test('with several addresses too', async () => {
    // The one that answers is the last: the others are left after a second, which this process may stand still for.
    const outbound = outboundWith(`media.example:${port}`, async () => [
      '127.0.0.2',
      '127.0.0.3',
      '127.0.0.1',
    ]);
    await outbound.post({ url: `https://media.example:${port}/`, headers: {}, body: '', timeoutMs: 5_000 });
    expect(names).toEqual(['media.example']);
  });

  test.each(['other.example', '127.0.0.1'])(
    'a certificate for another host than %s is refused',
    async (host) => {
      const outbound = outboundWith(`${host}:${port}`, loopback);
      const error = await outbound
        .fetchBytes({ url: `https://${host}:${port}/`, maxBytes: 100 })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OutboundFailed);
      expect(error).toMatchObject({ kind: 'tls', retryable: false });
      expect(error).toHaveProperty('message', 'no trusted TLS connection could be made');
    },
  );

  test('a certificate that nobody vouches for is refused', async () => {
    setDefaultCACertificates(trusted);
    try {
      const outbound = outboundWith(`media.example:${port}`, loopback);
      const attempt = outbound.fetchBytes({ url: `https://media.example:${port}/`, maxBytes: 100 });
      await expect(attempt).rejects.toMatchObject({ kind: 'tls', retryable: false });
    } finally {
      setDefaultCACertificates([...trusted, certificate]);
    }
  });

  test('a server that speaks no TLS is refused', async () => {
    const plain = await httpServer((_request, response) => response.end());
    onTestFinished(plain.close);
    const outbound = outboundWith(`media.example:${plain.port}`, loopback);
    const attempt = outbound.fetchBytes({ url: `https://media.example:${plain.port}/`, maxBytes: 100 });
    await expect(attempt).rejects.toMatchObject({ kind: 'tls', retryable: false });
  });
});

test('a name of an allow rule is looked up as the system does it, hosts file included', async () => {
  const server = await httpServer((_request, response) => response.end('here'));
  onTestFinished(server.close);
  const outbound = outboundWith(`localhost:${server.port}`);
  const bytes = await outbound.fetchBytes({ url: `http://localhost:${server.port}/`, maxBytes: 100 });
  expect(Buffer.from(bytes).toString()).toBe('here');
});

test('an address that refuses the connection leads to the next one', async () => {
  const server = await httpServer((_request, response) => response.end('here'));
  onTestFinished(server.close);
  const outbound = outboundWith(`media.example:${server.port}`, async () => ['127.0.0.2', '127.0.0.1']);
  const bytes = await outbound.fetchBytes({ url: `http://media.example:${server.port}/`, maxBytes: 100 });
  expect(Buffer.from(bytes).toString()).toBe('here');
});

describe('when something never answers', { concurrent: true }, () => {
  const rules = parseAllowRules('10.0.0.0/8:80');
  const silent = { allow: rules, ports: [], userAgent: 'test', logger: pino({ level: 'silent' }) };
  const silentNames = () => createOutbound({ ...silent, resolve: () => new Promise<never>(() => {}) });

  test('a name server: the URL passes at submission', async () => {
    await silentNames().checkUrl('http://media.example/', 'source');
  });

  test('a name server: an abort of the check is passed on', async ({ expect }) => {
    const reason = new Error('the client is gone');
    const controller = new AbortController();
    const check = silentNames().checkUrl('http://media.example/', 'source', controller.signal);
    controller.abort(reason);
    await expect(check).rejects.toBe(reason);
    const late = silentNames().checkUrl('http://media.example/', 'source', controller.signal);
    await expect(late).rejects.toBe(reason);
  });

  test('a name server: the download fails and may be tried again', async ({ expect }) => {
    const folder = await mkdtemp(join(tmpdir(), 'outbound-'));
    const url = 'http://media.example/';
    const file = join(folder, 'source');
    const attempt = silentNames().download({ url, file, maxBytes: 1, limits: { tries: 1 } });
    await expect(attempt).rejects.toMatchObject({ kind: 'dns', retryable: true });
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true });
  });

  test('a TLS handshake: the connection is given up', async ({ expect }) => {
    const server = await tcpServer(() => {});
    const outbound = createOutbound({ ...silent, allow: parseAllowRules(`127.0.0.1:${server.port}`) });
    const attempt = outbound.fetchBytes({ url: `https://127.0.0.1:${server.port}/`, maxBytes: 1 });
    await expect(attempt).rejects.toMatchObject({ kind: 'timeout', retryable: true });
    await outbound.close();
    await server.close();
  });
});
