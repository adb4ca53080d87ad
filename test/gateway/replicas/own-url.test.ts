/** Where other replicas reach this one, when nobody has said so. */
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { ownUrl } from '../../../src/gateway/replicas/own-url.ts';

const url = (address: string): string => ownUrl({ address, port: 8081, family: '' });

it('is the address that it listens on', () => {
  expect(url('127.0.0.1')).toBe('http://127.0.0.1:8081');
  expect(url('192.0.2.7')).toBe('http://192.0.2.7:8081');
  expect(url('2001:db8::7')).toBe('http://[2001:db8::7]:8081');
});

it('is one of this machine that others can reach, where it listens on all, and its own where there is none', () => {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const outside = all.filter(({ internal }) => !internal).map(({ address }) => address);
  for (const everywhere of ['0.0.0.0', '::']) {
    const host = new URL(url(everywhere)).hostname.replace(/^\[|\]$/g, '');
    expect(outside.length === 0 ? ['127.0.0.1'] : outside).toContain(host);
  }
});
