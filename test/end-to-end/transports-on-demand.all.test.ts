/** What a network needs is loaded with the first instance on it, and never by a service that has none. */
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { ServiceHome, type Serving } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

const GATEWAY_KEY = 'the-gateways-own-key';
const ofXmpp = /\/packages\/chat-xmpp\/src\/|\/node_modules\/@xmpp\//;
const ofWhatsApp = /\/packages\/chat-whatsapp\/src\/|\/node_modules\/baileys\//;

let home: ServiceHome;
let list: string;

beforeAll(async () => {
  home = await ServiceHome.make({
    GATEWAY_API_KEY: GATEWAY_KEY,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, 'note-loaded.ts')}`,
  });
});
afterAll(() => home?.remove());

async function serve(name: string): Promise<Serving> {
  list = join(home.folder, name);
  await appendFile(list, '');
  return home.serve({ LOADED_MODULES: list });
}

async function loaded(which: RegExp): Promise<string[]> {
  return (await readFile(list, 'utf8')).split('\n').filter((url) => which.test(url));
}

async function call(serving: Serving, method: string, path: string, body?: object): Promise<void> {
  const response = await fetch(`${serving.gateway}${path}`, {
    method,
    headers: { apikey: GATEWAY_KEY, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  expect(response.status, await response.text()).toBeLessThan(300);
}

// Broken by hand: an import of the XMPP transport in src/gateway/start.ts.
it('a transport is loaded with its first instance, or at the start of a service that has one', async () => {
  const first = await serve('without-instances');
  const ofLoopback = /\/src\/gateway\/loopback\//;
  await until('the loopback is loaded', async () => (await loaded(ofLoopback)).length > 0);
  expect([...(await loaded(ofXmpp)), ...(await loaded(ofWhatsApp))]).toEqual([]);

  // Port 9 of this machine: nobody has to answer for the code to be loaded.
  const connection = { jid: 'ada@example.com', password: 'x', service: 'xmpp://127.0.0.1:9' };
  await call(first, 'POST', '/instance/create', { instanceName: 'jabber', transport: 'xmpp', connection });
  expect((await loaded(ofXmpp)).length).toBeGreaterThan(30);
  expect(await loaded(ofWhatsApp)).toEqual([]);

  await call(first, 'POST', '/instance/create', { instanceName: 'phone', transport: 'whatsapp' });
  expect((await loaded(ofWhatsApp)).length).toBeGreaterThan(20);
  await call(first, 'DELETE', '/instance/delete/phone');
  first.process.signal('SIGTERM');
  expect(await first.process.exited).toBe(0);

  const second = await serve('with-an-instance');
  await until('XMPP is loaded', async () => (await loaded(ofXmpp)).length > 30);
  expect(await loaded(ofWhatsApp)).toEqual([]);
  await call(second, 'DELETE', '/instance/delete/jabber');
  second.process.signal('SIGTERM');
  expect(await second.process.exited).toBe(0);
}, 120_000);
