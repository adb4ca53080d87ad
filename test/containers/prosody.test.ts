/** The stack with deploy/compose/prosody.yml: a voice message goes from one account to another of its XMPP server. */

import type { Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';
import { composes, healthIs } from './engine.ts';
import { Stack } from './stack.ts';

const PASSWORD = 'a password for tests';
/** A number is an account of the instance's own domain. */
const RECIPIENT = '12025550199';

const videos = useVideos();
let stack: Stack;
beforeAll(async () => {
  const [compose] = await composes();
  stack = await Stack.make(compose?.command ?? [], ['deploy/compose/prosody.yml']);
  await stack.compose('up', '-d', '--no-build');
  for (const id of await stack.containers()) await healthIs(id, 'healthy');
});
afterAll(() => stack.remove());

async function gateway(method: string, path: string, body?: object) {
  const response = await fetch(`${stack.gateway}${path}`, {
    method,
    headers: { apikey: stack.gatewayKey, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

it('a job of the stack is posted by an account of its server, which takes it', async () => {
  for (const account of ['soundpost', RECIPIENT]) {
    await stack.compose('exec', '-T', 'prosody', 'prosodyctl', 'register', account, 'chat.example', PASSWORD);
  }
  const created = await gateway('POST', '/instance/create', {
    instanceName: 'post',
    transport: 'xmpp',
    connection: { jid: 'soundpost@chat.example', password: PASSWORD, service: 'xmpp://prosody:5222' },
  });
  expect(created.status).toBe(201);
  await until('the account is connected', async () => {
    const { body } = await gateway('GET', '/instance/connectionState/post');
    return JSON.stringify(body).includes('"open"');
  });
  const { body } = await stack.client.upload(videos.talk, {
    output: { format: 'mp3' },
    options: { voiceMessage: { instance: 'post', number: RECIPIENT } },
  });
  let last: Json;
  const message = await until('the server has it', async () => {
    const { body: now } = await stack.client.call('GET', `/v1/status/${body.data.jobId}`);
    last = now;
    return now.data?.voiceMessage?.messageStatus === 'SERVER_ACK' && now.data.voiceMessage;
  }).catch(async (error: Error) => {
    throw new Error(
      `${error.message}: ${JSON.stringify(last)}${await stack.compose('logs', '--no-color', 'gateway', 'prosody')}`,
    );
  });
  expect(message).toMatchObject({ status: 'sent', key: { remoteJid: `${RECIPIENT}@chat.example` } });
});
