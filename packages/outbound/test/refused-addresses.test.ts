import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PUBLIC_ADDRESS, type StubNetwork, stubNetwork } from 'soundpost-testing/stub-network';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OutboundFailed, OutboundRefused } from '../src/errors.ts';

/**
 * A URL that must not be asked for, and the word in the log that says why. For webhooks `http:` is
 * read as `https:`.
 */
const refused: readonly [url: string, reason: string][] = [
  // Loopback and this host, in every spelling that WHATWG parsing takes
  ['http://127.0.0.1/', 'loopback'],
  ['http://127.0.0.1:8080/', 'loopback'],
  ['http://127.255.255.254/', 'loopback'],
  ['http://127.1/', 'loopback'],
  ['http://127.0.1/', 'loopback'],
  ['http://2130706433/', 'loopback'],
  ['http://0x7f000001/', 'loopback'],
  ['http://0x7f.1/', 'loopback'],
  ['http://0177.0.0.1/', 'loopback'],
  ['http://017700000001/', 'loopback'],
  ['http://127.0.0.1./', 'loopback'],
  ['http://%31%32%37.0.0.1/', 'loopback'],
  ['http://①②⑦.⓪.⓪.①/', 'loopback'],
  ['http://１２７.０.０.１/', 'loopback'],
  ['http://127。0。0。1/', 'loopback'],
  ['http://127.0.0.1\\@example.com/', 'loopback'],
  ['https:127.0.0.1', 'loopback'],
  ['http:///127.0.0.1/', 'loopback'],
  ['http:\\\\127.0.0.1\\', 'loopback'],
  ['http://127.0.0.1#@example.com/', 'loopback'],
  ['http://127.0.0.1?@example.com/', 'loopback'],
  ['HTTP://127.0.0.1/', 'loopback'],
  ['http://0/', 'this network'],
  ['http://0.0.0.0/', 'this network'],
  ['http://0.255.255.255/', 'this network'],
  // The rest of the IPv4 registry, first and last address
  ['http://10.0.0.0/', 'private use'],
  ['http://10.255.255.255/', 'private use'],
  ['http://012.0.0.1/', 'private use'],
  ['http://100.64.0.0/', 'shared address space'],
  ['http://100.127.255.255/', 'shared address space'],
  ['http://100.100.100.200/', 'Alibaba'],
  ['http://169.254.0.0/', 'link local'],
  ['http://169.254.169.254/latest/meta-data/', 'metadata'],
  ['http://169.254.170.2/v2/credentials', 'metadata'],
  ['http://2852039166/', 'metadata'],
  ['http://0xa9fea9fe/', 'metadata'],
  ['http://169.254.255.255/', 'link local'],
  ['http://172.16.0.0/', 'private use'],
  ['http://172.31.255.255/', 'private use'],
  ['http://192.0.0.0/', 'IETF protocol assignments'],
  ['http://192.0.0.192/', 'Oracle'],
  ['http://192.0.0.255/', 'IETF protocol assignments'],
  ['http://192.0.2.1/', 'documentation'],
  ['http://192.31.196.1/', 'AS112'],
  ['http://192.52.193.1/', 'AMT'],
  ['http://192.88.99.1/', '6to4'],
  ['http://192.168.0.0/', 'private use'],
  ['http://192.168.255.255/', 'private use'],
  ['http://192.175.48.1/', 'AS112'],
  ['http://198.18.0.0/', 'benchmarking'],
  ['http://198.19.255.255/', 'benchmarking'],
  ['http://198.51.100.1/', 'documentation'],
  ['http://203.0.113.1/', 'documentation'],
  ['http://224.0.0.1/', 'multicast'],
  ['http://239.255.255.255/', 'multicast'],
  ['http://240.0.0.1/', 'reserved'],
  ['http://255.255.255.255/', 'reserved'],
  ['http://168.63.129.16/', 'Azure'],
  // IPv6: loopback, local, and every form that carries an IPv4 address
  ['http://[::1]/', '2000::/3'],
  ['http://[0:0:0:0:0:0:0:1]:8080/', '2000::/3'],
  ['http://[::]/', '2000::/3'],
  ['http://[::ffff:127.0.0.1]/', 'IPv4-mapped'],
  ['http://[::ffff:7f00:1]/', 'IPv4-mapped'],
  ['http://[::ffff:93.184.215.14]/', 'IPv4-mapped'],
  ['http://[::127.0.0.1]/', 'IPv4-compatible'],
  ['http://[::93.184.215.14]/', 'IPv4-compatible'],
  ['http://[::ffff:0:127.0.0.1]/', 'IPv4-translated'],
  ['http://[64:ff9b::a9fe:a9fe]/', 'NAT64'],
  ['http://[64:ff9b::93.184.215.14]/', 'NAT64'],
  ['http://[64:ff9b:1::a00:1]/', 'NAT64'],
  ['http://[2002:7f00:1::]/', '6to4'],
  ['http://[2002:5db8:d70e::1]/', '6to4'],
  ['http://[2001:0:1::1]/', 'Teredo'],
  ['http://[2001:1::1]/', 'IETF protocol assignments'],
  ['http://[2001:2::1]/', 'IETF protocol assignments'],
  ['http://[2001:10::1]/', 'IETF protocol assignments'],
  ['http://[2001:20::1]/', 'IETF protocol assignments'],
  ['http://[2001:1ff:ffff::1]/', 'IETF protocol assignments'],
  ['http://[2001:db8::1]/', 'documentation'],
  ['http://[3fff::1]/', 'documentation'],
  ['http://[2620:4f:8000::1]/', 'AS112'],
  ['http://[fe80::1]/', 'link local'],
  ['http://[fe80::a9fe:a9fe]/', 'link local'],
  ['http://[fec0::1]/', '2000::/3'],
  ['http://[fc00::1]/', '2000::/3'],
  ['http://[fd12:3456::1]/', '2000::/3'],
  ['http://[fd00:ec2::254]/', 'AWS'],
  ['http://[fd20:ce::254]/', 'Google'],
  ['http://[ff02::1]/', '2000::/3'],
  ['http://[5f00::1]/', '2000::/3'],
  ['http://[100::1]/', '2000::/3'],
  ['http://[100:0:0:1::1]/', '2000::/3'],
  ['http://[4000::1]/', '2000::/3'],
  ['http://[1fff:ffff::1]/', '2000::/3'],
  // Names that mean something on the local network only
  ['http://localhost/', 'RFC 6761'],
  ['http://LOCALHOST/', 'RFC 6761'],
  ['http://localhost./', 'RFC 6761'],
  ['http://foo.localhost/', 'RFC 6761'],
  ['http://printer.local/', 'RFC 6762'],
  ['http://printer.local./', 'RFC 6762'],
  ['http://metadata.google.internal/', '.internal'],
  ['http://router.home.arpa/', 'RFC 8375'],
  ['http://abcdefghijklmnop.onion/', 'RFC 7686'],
  ['http://redis/', 'single label'],
  ['http://redis./', 'single label'],
  ['http://example..com/', 'not a hostname'],
  ['http://example.com../', 'not a hostname'],
  [`http://${'a'.repeat(64)}.example/`, 'not a hostname'],
  // Names that resolve to something local
  ['http://private.example/', '10.1.2.3'],
  ['http://mixed.example/', '127.0.0.1'],
  ['http://mixed6.example/', '::1'],
  ['http://last.example/', '169.254.169.254'],
  ['http://zone.example/', 'not an address'],
  ['http://mapped.example/', 'IPv4-mapped'],
  // The URL itself
  ['http://user@example.com/', 'credentials'],
  ['http://user:secret@example.com/', 'credentials'],
  ['http://:secret@example.com/', 'credentials'],
  ['http://example.com@127.0.0.1/', 'credentials'],
  ['file:///etc/passwd', 'scheme'],
  ['gopher://example.com/', 'scheme'],
  ['ftp://example.com/', 'scheme'],
  ['data:text/plain,x', 'scheme'],
  ['blob:http://example.com/1', 'scheme'],
  ['javascript:alert(1)', 'scheme'],
  ['ws://example.com/', 'scheme'],
  ['http://example.com:22/', 'port'],
  ['http://example.com:6379/', 'port'],
  ['http://example.com:0/', 'port'],
  ['http://example.com:65535/', 'port'],
  ['http://93.184.215.14:81/', 'port'],
  ['http://exa\tmple.com/', 'whitespace'],
  ['http://example.com/\r\nX: y', 'whitespace'],
  [' http://example.com/', 'whitespace'],
  ['http://example.com/a b', 'whitespace'],
  ['http://example.com/\u0000', 'whitespace'],
  ['http://example.com/\u00a0', 'whitespace'],
  [`http://example.com/${'a'.repeat(2_030)}`, 'characters'],
  ['http://[fe80::1%25eth0]/', 'not a URL'],
  ['http://[::1%lo]/', 'not a URL'],
  ['http://256.256.256.256/', 'not a URL'],
  ['http://1.1.1.1.1/', 'not a URL'],
  ['http://09.0.0.1/', 'not a URL'],
  ['http://0x100000000/', 'not a URL'],
  ['http://example.com:65536/', 'not a URL'],
  ['http://localhost%00.example.com/', 'not a URL'],
  ['//127.0.0.1/', 'not a URL'],
  ['/etc/passwd', 'not a URL'],
  ['', 'not a URL'],
];

/** Beside each range, one step outside: the table must not swallow its neighbours. */
const neighbours = [
  '1.0.0.0',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.15',
  '168.63.129.17',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '191.255.255.255',
  '192.0.1.0',
  '192.0.3.0',
  '192.31.195.255',
  '192.31.197.0',
  '192.52.192.255',
  '192.52.194.0',
  '192.88.98.255',
  '192.88.100.0',
  '192.167.255.255',
  '192.169.0.0',
  '192.175.47.255',
  '192.175.49.0',
  '198.17.255.255',
  '198.20.0.0',
  '198.51.99.255',
  '198.51.101.0',
  '203.0.112.255',
  '203.0.114.0',
  '223.255.255.255',
  '[2000::]',
  '[2001:200::]',
  '[2001:db7:ffff::]',
  '[2001:db9::]',
  '[2001:ffff::]',
  '[2003::]',
  '[2606:4700:4700::1111]',
  '[2620:4f:7fff::]',
  '[2620:4f:8001::]',
  '[3ffe:ffff::]',
  '[3fff:1000::]',
];

const names = {
  'private.example': ['10.1.2.3'],
  'mixed.example': [PUBLIC_ADDRESS, '127.0.0.1'],
  'mixed6.example': [PUBLIC_ADDRESS, '::1'],
  'last.example': [...Array(20).fill(PUBLIC_ADDRESS), '169.254.169.254'],
  'zone.example': ['fe80::1%eth0'],
  'mapped.example': ['::ffff:93.184.215.14'],
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-'));
});
afterAll(() => rm(folder, { recursive: true }));

const paths = {
  'a source at submission': ({ outbound }: StubNetwork, url: string) => outbound.checkUrl(url, 'source'),
  'a source at download': ({ outbound }: StubNetwork, url: string) =>
    outbound.download({ url, file: join(folder, 'source'), maxBytes: 1, limits: { tries: 1 } }),
  'a source read into memory': ({ outbound }: StubNetwork, url: string) =>
    outbound.fetchBytes({ url, maxBytes: 1 }),
  'a webhook at submission': ({ outbound }: StubNetwork, url: string) =>
    outbound.checkUrl(asHttps(url), 'webhook'),
  'a webhook at delivery': ({ outbound }: StubNetwork, url: string) =>
    outbound.post({ url: asHttps(url), headers: {}, body: '{}', timeoutMs: 5_000 }),
};

function asHttps(url: string): string {
  return url.replace(/http:/i, 'https:');
}

describe.each(Object.entries(paths))('%s', (path, ask) => {
  test('what is refused is not connected to', async () => {
    const network = stubNetwork({ names });
    for (const [nth, [url, reason]] of refused.entries()) {
      const error = await ask(network, url).then(
        () => 'let through',
        (thrown: unknown) => thrown,
      );
      expect(error, url).toBeInstanceOf(OutboundRefused);
      expect(error, url).toHaveProperty(
        'message',
        expect.stringMatching(/^the address is not allowed: .* OUTBOUND_ALLOW$/),
      );
      expect(network.refusals, url).toHaveLength(nth + 1);
      expect(network.refusals[nth], url).toContain(reason);
      expect(network.connections, url).toEqual([]);
    }
    await network.outbound.close();
  });

  test('what lies beside a range is allowed', async () => {
    const network = stubNetwork();
    for (const host of neighbours) {
      const url = `http://${host}/`;
      if (path.endsWith('submission')) await ask(network, url);
      else
        await expect(ask(network, url), url).rejects.toSatisfy(
          (error) => error instanceof OutboundFailed && error.kind === 'connect',
        );
    }
    expect(network.connections.map(({ addresses }) => addresses)).toEqual(
      path.endsWith('submission') ? [] : neighbours.map((host) => [host.replace(/[[\]]/g, '')]),
    );
    expect(network.refusals).toEqual([]);
    await network.outbound.close();
  });
});

test('a webhook needs https', async () => {
  const network = stubNetwork();
  const hook = { url: 'http://example.com/hook', headers: {}, body: '{}', timeoutMs: 5_000 };
  await expect(network.outbound.checkUrl(hook.url, 'webhook')).rejects.toBeInstanceOf(OutboundRefused);
  await expect(network.outbound.post(hook)).rejects.toBeInstanceOf(OutboundRefused);
  expect(network.refusals).toEqual(['a webhook needs https', 'a webhook needs https']);
  expect(network.connections).toEqual([]);
});

test('the ports of the configuration are open on public addresses', async () => {
  const { outbound } = stubNetwork();
  for (const port of [80, 443, 8080, 8443]) {
    await outbound.checkUrl(`http://example.com:${port}/`, 'source');
    await outbound.checkUrl(`https://93.184.215.14:${port}/`, 'webhook');
  }
});

test('the log names the host but neither path nor query', async () => {
  const lines: string[] = [];
  const { pino } = await import('pino');
  const { createOutbound } = await import('../src/outbound.ts');
  const logger = pino({ level: 'info' }, { write: (line) => lines.push(line) });
  const outbound = createOutbound({ allow: [], ports: [80], userAgent: 'test', logger });
  await expect(outbound.checkUrl('http://127.0.0.1/secret-path?sig=secret', 'source')).rejects.toThrow();
  expect(lines.join('')).toContain('127.0.0.1');
  expect(lines.join('')).not.toContain('secret');
});
