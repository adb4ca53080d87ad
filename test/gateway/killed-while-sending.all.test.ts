/** The same Idempotency-Key after the gateway's death in the middle of a send. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nameOfThisProcess } from 'soundpost-base/process-home';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { decrypted } from './decrypted.ts';
import {
  caller,
  chatMessages,
  eventually,
  type GatewaySetting,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';
import { type StopAt, startRedisProxy } from './redis-proxy.ts';

const SEND = '/message/sendMessengerAudio/main';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let tone: Buffer;
let audio: string;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  tone = await readFile(join(folder.path, 'tone.ogg'));
  audio = tone.toString('base64');
  gateway = await start();
});

const start = (): Promise<TestGateway> => startTestGateway({ redisUrl: redis.url, dataDir: folder.path });

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const idsIn = async (jid: string): Promise<string[]> =>
  (await chatMessages(gateway, 'main', jid)).map(({ key }) => key.id);

describe('a gateway that is killed while it sends', () => {
  const moments: (StopAt & { name: string })[] = [
    {
      name: 'after the intent was recorded and before the network has the message',
      command: ':loopback:taken:',
      reachesRedis: false,
    },
    {
      name: 'after the network took the message and before it is in the chat',
      command: ':loopback:taken:',
      reachesRedis: true,
    },
    {
      name: 'after the message is in the chat and before the answer is kept',
      // The script that keeps it gets the record, its fingerprint, its seed and the answer.
      command: /:idempotency:[^\r]+\r\n(\$\d+\r\n[^\r{]+\r\n){2}\$\d+\r\n\{/,
      reachesRedis: false,
    },
  ];

  it.for(moments)('$name, has sent once when the request is repeated', async ({ name, ...stopAt }) => {
    const proxy = await startRedisProxy(redis.socketPath, stopAt);
    const process = await startProcess({ redisUrl: proxy.url, dataDir: folder.path });
    onTestFinished(() => process.kill());
    const body = { number: hedy.number, audio };
    const headers = { 'Idempotency-Key': name };
    const before = await idsIn(hedy.jid);
    // It would have the instance, and do the sending itself.
    await gateway.close();
    await process.hasInstances();
    const lost = caller(process.url)('POST', SEND, body, headers).then(
      () => 'answered',
      () => 'lost',
    );
    await proxy.stopped;
    await process.kill();
    expect(await lost).toBe('lost');
    await proxy.close();
    gateway = await start();

    const answer = await eventually(
      () => gateway.call('POST', SEND, body, headers),
      ({ status }) => status !== 409,
    );
    expect(answer.status).toBe(200);
    const again = await gateway.call('POST', SEND, body, headers);
    expect(again.body).toEqual(answer.body);
    const after = await eventually(
      () => chatMessages(gateway, 'main', hedy.jid),
      (messages) => messages.at(-1)?.status === 'DELIVERY_ACK',
    );
    expect(after.map(({ key }) => key.id)).toEqual([...before, answer.body.key.id]);

    const { audioMessage } = answer.body.message;
    const file = Buffer.from(await (await fetch(`${gateway.url}${audioMessage.directPath}`)).arrayBuffer());
    expect(decrypted(file, audioMessage.mediaKey)).toMatchObject({
      macMatches: true,
      fileSha256: audioMessage.fileSha256,
    });
  });

  it('leaves no workspace that the next start does not remove', async () => {
    expect(await readdir(join(folder.path, 'workspaces'))).toEqual([await nameOfThisProcess()]);
  });
});

interface GatewayProcess {
  readonly url: string;
  /** Resolves when it has taken them from the one that has stopped. */
  hasInstances(): Promise<void>;
  kill(): Promise<void>;
}

async function startProcess(setting: GatewaySetting): Promise<GatewayProcess> {
  const child = fork(new URL('gateway-process.ts', import.meta.url), [JSON.stringify(setting)]);
  const ended = once(child, 'exit');
  const [{ port }] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => Promise.reject(new Error('the gateway process ended at once'))),
  ])) as [{ port: number }];
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    async hasInstances() {
      await eventually(
        () => caller(url)('GET', '/instance/connectionState/main'),
        ({ status, body }) => status === 200 && body.instance.state === 'open',
      );
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
