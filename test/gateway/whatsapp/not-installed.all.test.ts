/** A gateway without the package baileys makes no instance that could never connect, and says what to install (decisions B "Instances"). */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { INSTALL_COMMAND } from 'soundpost-chat-whatsapp/library';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';

const WITHOUT_BAILEYS = new URL('../../../packages/chat-whatsapp/test/without-baileys.ts', import.meta.url)
  .href;

import { caller, type GatewaySetting, makeFolder, type TestGateway } from '../gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let child: ReturnType<typeof fork>;
let ended: Promise<unknown>;
let call: TestGateway['call'];

beforeAll(async () => {
  [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  const setting: GatewaySetting = { redisUrl: redis.url, dataDir: folder.path };
  child = fork(join(import.meta.dirname, '../gateway-process.ts'), [JSON.stringify(setting)], {
    execArgv: ['--import', WITHOUT_BAILEYS],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  ended = once(child, 'exit');
  const [{ port }] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => Promise.reject(new Error('the gateway process ended at once'))),
  ])) as [{ port: number }];
  call = caller(`http://127.0.0.1:${port}`);
});
afterAll(async () => {
  child.kill('SIGKILL');
  await ended;
  await redis.close();
  await folder.remove();
});

it.each([
  ['the public server’s integration', { integration: 'WHATSAPP-BAILEYS' }],
  ['the transport', { transport: 'whatsapp' }],
])('named by %s', async (_what, fields) => {
  const { status, body } = await call('POST', '/instance/create', { instanceName: 'phone', ...fields });
  expect([status, body.code]).toEqual([400, 'bad_request']);
  expect(body.response.message[0]).toContain(INSTALL_COMMAND);
  const listed = (await call('GET', '/instance/fetchInstances')).body;
  expect(listed.map(({ name }: { name: string }) => name)).not.toContain('phone');
});
