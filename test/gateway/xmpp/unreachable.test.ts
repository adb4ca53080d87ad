/** An XMPP server that ends each connection: its instance says why, and is left alone once it is deleted. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DOMAIN } from 'soundpost-testing/prosody';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestService } from '../../api/api-fixture.ts';

let connections = 0;
const server = createServer((socket) => {
  connections += 1;
  socket.on('error', () => undefined);
  socket.resetAndDestroy();
});
let service: TestService;
let address = '';

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  service = await TestService.start({ parts: ['gateway'], allow: [address] });
});
afterAll(async () => {
  await service?.close();
  server.close();
});

async function created(instanceName: string): Promise<void> {
  const connection = { jid: `soundpost@${DOMAIN}`, password: 'one', service: `xmpp://${address}` };
  await service.gateway('POST', '/instance/create', { instanceName, transport: 'xmpp', connection });
}

it('says why it is still connecting', async () => {
  await created('waiting');
  const instance = await until('there is a reason', async () => {
    const { body } = await service.gateway('GET', '/instance/connectionState/waiting');
    return body.instance.reason !== undefined && body.instance;
  });
  expect(instance).toEqual({
    ...{ instanceName: 'waiting', state: 'connecting' },
    reason: 'the server cannot be reached (ECONNRESET); the gateway keeps trying',
  });
  await service.gateway('DELETE', '/instance/delete/waiting');
  connections = 0;
});

it('is not connected again after it was deleted', async () => {
  await created('unwanted');
  await until('it has tried', () => connections > 0);
  await service.gateway('DELETE', '/instance/delete/unwanted');
  connections = 0;
  // The first retries follow within a second.
  await delay(1500);
  expect(connections).toBe(0);
});
