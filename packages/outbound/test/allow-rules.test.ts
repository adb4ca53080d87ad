import { PUBLIC_ADDRESS, stubNetwork } from 'soundpost-testing/stub-network';
import { describe, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundRefused } from '../src/errors.ts';

describe('OUTBOUND_ALLOW is read', () => {
  test('as rules between commas, spaces and empty places ignored', () => {
    const rules = parseAllowRules(' media.example:8080 , ,10.0.0.0/8:443,\n[::1]:9000,');
    expect(rules.map(({ text, port }) => [text, port])).toEqual([
      ['media.example:8080', 8080],
      ['10.0.0.0/8:443', 443],
      ['[::1]:9000', 9000],
    ]);
    expect(parseAllowRules('')).toEqual([]);
  });

  test.each([
    ['media.example', 'no port'],
    ['media.example:', 'no port'],
    ['media.example:http', 'no port'],
    ['media.example:0', 'no port'],
    ['media.example:65536', 'no port'],
    ['media.example:80x', 'no port'],
    ['media.example:*', 'no port'],
    [':8080', 'no port'],
    ['http://media.example:8080', 'CIDR'],
    ['*.example:8080', 'no host'],
    ['media..example:8080', 'no host'],
    ['user@media.example:8080', 'no host'],
    ['10.0.0.0/33:80', 'CIDR'],
    ['10.0.0/8:80', 'CIDR'],
    ['0x7f.1/8:80', 'CIDR'],
    ['10.0.0.0/8/8:80', 'CIDR'],
    ['media.example/8:80', 'CIDR'],
    ['::1:9000', 'brackets'],
    ['fd12::1', 'brackets'],
  ])('and "%s" is refused by name, with the form to write', (text, complaint) => {
    expect(() => parseAllowRules(`good.example:80,${text}`)).toThrow(`"${text}"`);
    expect(() => parseAllowRules(text)).toThrow(complaint);
    expect(() => parseAllowRules(text)).toThrow('10.0.0.0/8:443');
  });

  test.each([
    '169.254.169.254:80',
    '169.254.169.254/32:80',
    '169.254.170.2:80',
    '169.254.0.0/16:80',
    '168.63.129.16:80',
    '168.63.0.0/16:80',
    '100.100.100.200:80',
    '100.64.0.0/10:80',
    '192.0.0.192:80',
    '0.0.0.0/0:80',
    '128.0.0.0/1:443',
    '[fd00:ec2::254]:80',
    '[fd00::/8]:80',
    '[fc00::]/7:80',
    '[fd20:ce::254]:80',
    '[fe80::a9fe:a9fe]:80',
    '[::]/0:80',
    '[::ffff:169.254.169.254]:80',
    '[::ffff:0:0/96]:80',
    '[::169.254.169.254]:80',
    '[::]/96:80',
    '[64:ff9b::a9fe:a9fe]:80',
    '[64:ff9b::]/96:80',
    '[64:ff9b:1::]/48:80',
    '[2002::]/16:80',
    '[2001::]/32:80',
    '[2000::]/3:80',
  ])('and %s, which would open metadata or an address inside an address, is refused', (text) => {
    expect(() => parseAllowRules(text)).toThrow('which no rule opens');
  });

  test.each(['metadata.google.internal:80', 'METADATA.google.internal:80', 'metadata.goog:80'])(
    'and the metadata name %s is refused',
    (text) => expect(() => parseAllowRules(text)).toThrow('which no rule opens'),
  );
});

const names = {
  'media.example': ['10.0.0.5'],
  minio: ['10.0.0.6'],
  'metadata.example': ['169.254.169.254'],
  'mapped.example': ['::ffff:10.0.0.5'],
  'both.example': ['10.0.0.5', PUBLIC_ADDRESS],
  'ten.example': ['10.1.1.1'],
};

describe.each([
  ['10.0.0.0/8:9000', 'http://10.0.0.1:9000/', true],
  ['10.0.0.0/8:9000', 'http://10.255.255.255:9000/', true],
  ['10.0.0.0/8:9000', 'http://11.0.0.0:9000/', false],
  ['10.0.0.0/8:9000', 'http://10.0.0.1:9001/', false],
  ['10.0.0.0/8:9000', 'http://10.0.0.1/', false],
  ['10.0.0.0/8:9000', 'http://ten.example:9000/', true],
  ['10.0.0.0/8:9000', 'http://ten.example/', false],
  ['10.0.0.0/8:9000', 'http://both.example:9000/', false],
  ['10.0.0.0/8:9000', 'http://unknown.example:9000/', false],
  ['10.0.0.0/8:9000', 'http://minio:9000/', false],
  ['10.0.0.0/8:9000', 'http://user:pw@10.0.0.1:9000/', false],
  ['10.0.0.0/8:9000', 'ftp://10.0.0.1:9000/', false],
  ['10.0.0.0/8:80', 'http://both.example/', true],
  ['127.0.0.1:8080', 'http://127.0.0.1:8080/', true],
  ['127.0.0.1:8080', 'http://127.0.0.2:8080/', false],
  ['127.0.0.1:8080', 'http://[::ffff:127.0.0.1]:8080/', false],
  ['127.0.0.1:8080', 'http://[::127.0.0.1]:8080/', false],
  ['127.0.0.1:8080', 'http://localhost:8080/', false],
  ['localhost:8080', 'http://localhost:8080/', true],
  ['localhost:8080', 'http://LOCALHOST.:8080/', true],
  ['localhost:8080', 'http://localhost/', false],
  ['localhost:8080', 'http://foo.localhost:8080/', false],
  ['[::1]:8080', 'http://[::1]:8080/', true],
  ['[::1]:8080', 'http://[::2]:8080/', false],
  ['[fd12:3456::/32]:8080', 'http://[fd12:3456:1::1]:8080/', true],
  ['fd12:3456::/32:8080', 'http://[fd12:3457::1]:8080/', false],
  ['minio:9000', 'http://minio:9000/bucket/file', true],
  ['minio:9000', 'http://minio:9001/', false],
  ['media.example:80', 'http://media.example/', true],
  ['media.example:80', 'http://ten.example/', false],
  ['media.example:80', 'http://other.media.example/', true],
  ['media.example:80', 'http://10.0.0.5/', false],
  ['metadata.example:80', 'http://metadata.example/', false],
  ['mapped.example:80', 'http://mapped.example/', false],
  ['93.184.215.14:9999', 'http://93.184.215.14:9999/', true],
])('with the rule %s, the source %s', (allow, url, allowed) => {
  test(allowed ? 'is allowed' : 'is refused without a connection', async () => {
    const network = stubNetwork({ names: { localhost: ['127.0.0.1'], ...names }, allow });
    const checked = network.outbound.checkUrl(url, 'source');
    const fetched = network.outbound.fetchBytes({ url, maxBytes: 1 });
    if (allowed) {
      await checked;
      await expect(fetched).rejects.toMatchObject({ kind: 'connect' });
      expect(network.connections).toHaveLength(1);
    } else {
      await expect(checked).rejects.toBeInstanceOf(OutboundRefused);
      await expect(fetched).rejects.toBeInstanceOf(OutboundRefused);
      expect(network.connections).toEqual([]);
    }
  });
});

test.each([
  ['10.0.0.0/8:8080', 'http://10.0.0.1:8080/', true],
  ['10.0.0.0/8:8080', 'http://ten.example:8080/', true],
  ['10.0.0.0/8:8080', 'http://unknown.example:8080/', false],
  ['media.example:8080', 'http://media.example:8080/', true],
  ['media.example:8080', 'http://media.example/', false],
  ['media.example:8080', 'http://unknown.example:8080/', false],
])('with the rule %s, the plain http webhook %s is allowed: %s', async (allow, url, allowed) => {
  const network = stubNetwork({ names, allow });
  const post = network.outbound.post({ url, headers: {}, body: '{}', timeoutMs: 5_000 });
  if (allowed) {
    await network.outbound.checkUrl(url, 'webhook');
    await expect(post).rejects.toMatchObject({ kind: 'connect' });
  } else {
    await expect(network.outbound.checkUrl(url, 'webhook')).rejects.toBeInstanceOf(OutboundRefused);
    await expect(post).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.connections).toEqual([]);
  }
});
