// @module-tag prosody
// @module-tag slixmpp
/** A whole gateway with an account on XMPP: killed while it sends, and behind TLS of an own authority. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { startPeer, type XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { caller, type GatewaySetting, makeFolder, run, type TestGateway } from '../gateway-fixture.ts';
import { startCuttableLine } from './cuttable-line.ts';
import { jidOf, makeVoiceNote, numbers } from './xmpp-fixture.ts';

const accounts = { [numbers.soundpost]: 'one', [numbers.ada]: 'two' };

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let audio: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  audio = (await readFile(await makeVoiceNote(folder.path, 1))).toString('base64');
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
});
afterAll(async () => {
  await redis.close();
  await folder.remove();
});

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function startGatewayProcess(
  outboundAllow: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<{ child: ChildProcess; call: TestGateway['call'] }> {
  // Patience alone: what a send may take is no matter of these tests.
  const setting: GatewaySetting = {
    ...{ redisUrl: redis.url, dataDir: folder.path, outboundAllow },
    sendTimeoutMs: 100_000,
  };
  const child = fork(join(import.meta.dirname, '../gateway-process.ts'), [JSON.stringify(setting)], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  children.push(child);
  const [{ port }] = await once(child, 'message');
  return { child, call: caller(`http://127.0.0.1:${port}`) };
}

async function create(
  call: TestGateway['call'],
  instanceName: string,
  number: keyof typeof accounts,
  service: string,
): Promise<void> {
  const connection = { jid: jidOf(number), password: accounts[number], service };
  const { status } = await call('POST', '/instance/create', { instanceName, transport: 'xmpp', connection });
  expect(status).toBe(201);
}

const stateOf = async (call: TestGateway['call'], instance: string): Promise<string> =>
  (await call('GET', `/instance/connectionState/${instance}`)).body.instance.state;
const isOpen = (call: TestGateway['call'], instance: string) =>
  until(`${instance} to be open`, async () => (await stateOf(call, instance)) === 'open');

describe('a gateway that is killed after the server took a message and before it has noted it', () => {
  let prosody: TestProsody;
  let ada: XmppPeer;
  beforeAll(async () => {
    prosody = await startTestProsody({ accounts });
    // Without receipts: one of those would tell the gateway by itself that the message had arrived.
    ada = await startPeer({ port: prosody.port, jid: jidOf(numbers.ada), password: 'two' });
  });
  afterAll(async () => {
    await ada.close();
    await prosody.close();
  });

  it('has sent it once when the request is repeated, and its status goes on', async () => {
    await using stack = new AsyncDisposableStack();
    const line = await startCuttableLine(prosody.port);
    stack.defer(() => line.close());
    const allow = `${prosody.outboundAllow},127.0.0.1:${line.port}`;
    const first = await startGatewayProcess(allow);
    await create(first.call, 'alpha', numbers.soundpost, `xmpp://127.0.0.1:${line.port}`);
    await isOpen(first.call, 'alpha');
    const send = (call: TestGateway['call'], key: string) =>
      call(
        'POST',
        '/message/sendMessengerAudio/alpha',
        { number: numbers.ada, audio },
        { 'Idempotency-Key': key },
      );

    line.deafen('</file-sharing>');
    const lost = send(first.call, 'once').catch(() => undefined);
    const seen = await ada.seen('the voice message', ({ file }) => file);
    await kill(first.child);
    expect(await lost).toBeUndefined();

    const second = await startGatewayProcess(allow);
    await isOpen(second.call, 'alpha');
    const answer = await until('the request to be taken up', async () => {
      const repeated = await send(second.call, 'once');
      return repeated.body.code !== 'idempotency_in_progress' && repeated;
    });
    expect(answer.status).toBe(200);
    expect(answer.body.key.id).toBe(seen.id);
    const { body } = await send(second.call, 'another');
    await ada.seen('the other message', ({ id }) => id === body.key.id);
    expect(ada.events.filter(({ file }) => file).map(({ id }) => id)).toEqual([seen.id, body.key.id]);

    await ada.do('marker', { to: jidOf(numbers.soundpost), id: seen.id });
    const messages = `/inbox/api/instances/alpha/chats/${jidOf(numbers.ada)}/messages`;
    await until('it to be read', async () => {
      const shown: { key: { id: string }; status: string }[] = (await second.call('GET', messages)).body;
      return shown.find(({ key }) => key.id === seen.id)?.status === 'READ';
    });
    await second.call('DELETE', '/instance/delete/alpha');
  });
});

describe('a server with a certificate of an own authority', () => {
  let prosody: TestProsody;
  let authority: string;
  beforeAll(async () => {
    const at = (name: string): string => join(folder.path, name);
    authority = at('authority.crt');
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    await run('openssl', [
      ...[
        'req',
        '-x509',
        ...key,
        '-subj',
        '/CN=Test authority',
        '-keyout',
        at('authority.key'),
        '-out',
        authority,
      ],
    ]);
    await run('openssl', [
      ...['req', '-x509', ...key, '-subj', '/CN=chat.example', '-addext', 'subjectAltName=DNS:chat.example'],
      ...['-CA', authority, '-CAkey', at('authority.key')],
      ...['-addext', 'basicConstraints=CA:FALSE', '-keyout', at('server.key'), '-out', at('server.crt')],
    ]);
    prosody = await startTestProsody({
      accounts,
      tls: { keyFile: at('server.key'), certificateFile: at('server.crt') },
    });
  });
  afterAll(() => prosody.close());

  it('is spoken to by direct TLS and by STARTTLS, in both directions, by whoever trusts the authority', async () => {
    const { call } = await startGatewayProcess(prosody.outboundAllow, { NODE_EXTRA_CA_CERTS: authority });
    await create(call, 'direct', numbers.soundpost, `xmpps://127.0.0.1:${prosody.directTlsPort}`);
    await create(call, 'upgraded', numbers.ada, `xmpp://127.0.0.1:${prosody.port}`);
    await Promise.all([isOpen(call, 'direct'), isOpen(call, 'upgraded')]);
    const { status, body } = await call('POST', '/message/sendMessengerAudio/direct', {
      number: numbers.ada,
      audio,
    });
    expect(status, JSON.stringify(body)).toBe(200);
    const last = async (instance: string) =>
      (await call('POST', `/chat/findChats/${instance}`)).body[0]?.lastMessage;
    // The other instance has fetched the sound and keeps a copy of its own.
    const got = await until('it to arrive', async () => {
      const message = await last('upgraded');
      return message?.key.id === body.key.id && message;
    });
    expect(got.key).toEqual({ remoteJid: jidOf(numbers.soundpost), fromMe: false, id: body.key.id });
    expect(got.message.audioMessage.fileSha256).toBe(body.message.audioMessage.fileSha256);
    expect(got.message.audioMessage.mediaKey).not.toBe(body.message.audioMessage.mediaKey);
    await until('its delivery', async () => (await last('direct')).status === 'DELIVERY_ACK');
    for (const instance of ['direct', 'upgraded']) await call('DELETE', `/instance/delete/${instance}`);
  });

  it('is not trusted without it', async () => {
    const { call } = await startGatewayProcess(prosody.outboundAllow);
    const before = prosody.log().length;
    await create(call, 'direct', numbers.soundpost, `xmpps://127.0.0.1:${prosody.directTlsPort}`);
    await create(call, 'upgraded', numbers.ada, `xmpp://127.0.0.1:${prosody.port}`);
    const since = (): string => prosody.log().slice(before);
    for (const name of ['direct', 'upgraded']) {
      const { body } = await until(`${name} to be off`, async () => {
        const answer = await call('GET', `/instance/connectionState/${name}`);
        return answer.body.instance.state === 'close' && answer;
      });
      expect(body.instance.reason).toMatch(/certificate is not trusted \(\w+\).*NODE_EXTRA_CA_CERTS/);
    }
    expect(since()).not.toContain('Authenticated');
    // Told to connect it tries again at once, and does not wait for the next look.
    const tried = since().split('Client disconnected').length;
    await call('GET', '/instance/connect/upgraded');
    await until('another try', () => since().split('Client disconnected').length > tried);
  });
});
