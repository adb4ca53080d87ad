/** An account's own server: connected to by other protocols than HTTP, and uploaded to. */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { PUBLIC_ADDRESS, stubNetwork } from 'soundpost-testing/stub-network';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundRefused } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { type HostileServer, httpServer } from './hostile-server.ts';

describe('the addresses of a service', () => {
  test('are those of its name, whatever the port', async () => {
    const { outbound, lookups } = stubNetwork({ names: { 'chat.example.com': [PUBLIC_ADDRESS, '1.1.1.1'] } });
    expect(await outbound.serviceAddresses('chat.example.com', 5222)).toEqual([PUBLIC_ADDRESS, '1.1.1.1']);
    expect(lookups).toEqual(['chat.example.com']);
  });

  test.each([
    ['an address that is not public', '10.0.0.1'],
    ['the machine itself', '127.0.0.1'],
    ['the machine itself by IPv6', '::1'],
    ['metadata', '169.254.169.254'],
    ['a local name', 'localhost'],
  ])('are refused for %s', async (_what, host) => {
    await expect(stubNetwork().outbound.serviceAddresses(host, 5222)).rejects.toBeInstanceOf(OutboundRefused);
  });

  test('are refused as a whole when one of them is not public', async () => {
    const { outbound, refusals } = stubNetwork({
      names: { 'chat.example.com': [PUBLIC_ADDRESS, '10.0.0.1'] },
    });
    await expect(outbound.serviceAddresses('chat.example.com', 5222)).rejects.toBeInstanceOf(OutboundRefused);
    expect(refusals).toEqual([expect.stringContaining('private use')]);
  });

  test('are open where a rule says so, on that port only', async () => {
    const { outbound } = stubNetwork({ allow: '127.0.0.1:5222,[::1]:5222' });
    expect(await outbound.serviceAddresses('127.0.0.1', 5222)).toEqual(['127.0.0.1']);
    expect(await outbound.serviceAddresses('::1', 5222)).toEqual(['::1']);
    await expect(outbound.serviceAddresses('127.0.0.1', 5223)).rejects.toBeInstanceOf(OutboundRefused);
  });

  test('may be talked to without TLS only where a rule opens them', async () => {
    const { outbound } = stubNetwork({ allow: '127.0.0.1:5222' });
    expect(await outbound.serviceAddresses('127.0.0.1', 5222, true)).toEqual(['127.0.0.1']);
    await expect(outbound.serviceAddresses('chat.example.com', 5222, true)).rejects.toBeInstanceOf(
      OutboundRefused,
    );
  });
});

describe('an upload', () => {
  let server: HostileServer;
  let outbound: Outbound;
  let received: string[];
  beforeEach(async () => {
    received = [];
    server = await httpServer(async (request, response) => {
      received.push(await text(request).catch(() => 'broken off'));
      response.writeHead(201).end();
    });
    outbound = createOutbound({
      allow: parseAllowRules(`127.0.0.1:${server.port}`),
      ports: [],
      userAgent: 'Soundpost test',
      logger: pino({ level: 'silent' }),
    });
  });
  afterEach(async () => {
    await outbound.close();
    await server.close();
  });

  const upload = (url: string, body: string, sizeBytes = Buffer.byteLength(body)) =>
    outbound.put({
      purpose: 'service',
      url,
      headers: { Authorization: 'Basic abc', 'Content-Type': 'audio/ogg' },
      body: Readable.from([Buffer.from(body)]),
      sizeBytes,
      idleMs: 5_000,
    });

  test('arrives byte for byte, with its size and the headers that were given', async () => {
    const answer = await upload(`http://127.0.0.1:${server.port}/slot/voice.ogg`, 'OggS and more');
    expect(answer.status).toBe(201);
    expect(received).toEqual(['OggS and more']);
    const [request] = server.requests;
    expect(request).toMatchObject({ method: 'PUT', url: '/slot/voice.ogg' });
    expect(request?.headers).toMatchObject({
      authorization: 'Basic abc',
      'content-type': 'audio/ogg',
      'content-length': '13',
    });
  });

  test('that is shorter than it was said to be is broken off', async () => {
    await expect(upload(`http://127.0.0.1:${server.port}/`, 'OggS', 5)).rejects.toThrow();
    expect(received).not.toContain('OggS');
  });

  test.each([
    ['an address that is not public', 'https://10.0.0.1/slot'],
    ['http to a public address', 'http://share.example.com/slot'],
  ])('to %s is refused', async (_what, url) => {
    const { outbound: stubbed, connections } = stubNetwork();
    const put = stubbed.put({
      purpose: 'service',
      url,
      headers: {},
      body: Readable.from(['x']),
      sizeBytes: 1,
      idleMs: 5_000,
    });
    await expect(put).rejects.toBeInstanceOf(OutboundRefused);
    expect(connections).toEqual([]);
  });

  test('goes to any port of a public address', async () => {
    const { outbound: stubbed, connections } = stubNetwork({ serverPort: server.port });
    const url = 'https://share.example.com:5281/slot';
    await stubbed.put({
      purpose: 'service',
      url,
      headers: {},
      body: Readable.from(['x']),
      sizeBytes: 1,
      idleMs: 5_000,
    });
    expect(connections).toMatchObject([
      { hostname: 'share.example.com', port: 5281, addresses: [PUBLIC_ADDRESS] },
    ]);
  });
});
