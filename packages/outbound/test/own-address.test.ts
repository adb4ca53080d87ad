import { syncBuiltinESMExports } from 'node:module';
import os, { type NetworkInterfaceInfo } from 'node:os';
import { PUBLIC_ADDRESS, stubNetwork } from 'soundpost-testing/stub-network';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { OutboundRefused } from '../src/errors.ts';

/** A machine with public addresses of its own, which the machine that runs this test need not be. */
const addresses = ['127.0.0.1', '93.184.215.14', '2606:2800:21f::1', 'fe80::1%eth0'];

beforeAll(() => {
  const interfaces = { eth0: addresses.map((address) => ({ address }) as NetworkInterfaceInfo) };
  vi.spyOn(os, 'networkInterfaces').mockReturnValue(interfaces);
  syncBuiltinESMExports();
});
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

let network: ReturnType<typeof stubNetwork>;
afterEach(() => network.outbound.close());

test.each([
  ['its IPv4 address', `http://${PUBLIC_ADDRESS}/`],
  ['its IPv6 address', 'http://[2606:2800:21f:0::1]/'],
  ['a name for it', 'http://self.example/'],
])("this machine's services are not reached by %s", async (_what, url) => {
  network = stubNetwork({ names: { 'self.example': [PUBLIC_ADDRESS] } });
  await expect(network.outbound.checkUrl(url, 'source')).rejects.toBeInstanceOf(OutboundRefused);
  await expect(network.outbound.fetchBytes({ url, maxBytes: 1 })).rejects.toBeInstanceOf(OutboundRefused);
  expect(network.refusals[0]).toContain("this machine's own");
  expect(network.connections).toEqual([]);
});

test("the address next to this machine's is reached", async () => {
  network = stubNetwork();
  await network.outbound.checkUrl('http://93.184.215.15/', 'source');
});

test("an allow rule opens this machine's own address", async () => {
  network = stubNetwork({ allow: `${PUBLIC_ADDRESS}:80` });
  await network.outbound.checkUrl(`http://${PUBLIC_ADDRESS}/`, 'source');
});
