import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { dieWithParent } from 'soundpost-base/launcher';
import { fetch } from 'soundpost-testing/http';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { projectFolder } from './markdown.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const HOUR_MS = 60 * 60 * 1000;
const body = JSON.stringify({ event: 'job.completed', jobId: 'job_0123456789abcdef' });

/** Signed by the library that the specification's authors keep. */
function signed(secret: string, at = new Date()): Record<string, string> {
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
  };
}

describe.each([
  ['receiver.mjs', process.execPath],
  ['receiver.py', 'python3'],
])('examples/webhook-receiver/%s', { tags: 'python3' }, (file, program) => {
  let stop: () => Promise<void> = async () => undefined;
  afterEach(() => stop());

  async function start(): Promise<(headers: Record<string, string>, text?: string) => Promise<number>> {
    const path = join(projectFolder, 'examples/webhook-receiver', file);
    const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
    const child = spawn(launcher, [...prefix, program, path, '0'], {
      env: { ...process.env, SECRET },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    stop = async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    };
    const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
    const [port] = /\d+$/.exec(String(value)) ?? [];
    return async (headers, text = body) => {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text });
      return answer.status;
    };
  }

  it('takes what is signed with its secret, also beside another signature', async () => {
    const post = await start();
    const headers = signed(SECRET);
    const rotating = `${signed(OTHER_SECRET)['webhook-signature']} ${headers['webhook-signature']}`;
    expect(await post(headers)).toBe(204);
    expect(await post({ ...headers, 'webhook-signature': rotating })).toBe(204);
  });

  it('refuses another secret, another body, an old timestamp and no signature', async () => {
    const post = await start();
    expect(await post(signed(OTHER_SECRET))).toBe(401);
    expect(await post(signed(SECRET), body.replace('completed', 'failed'))).toBe(401);
    expect(await post(signed(SECRET, new Date(Date.now() - HOUR_MS)))).toBe(401);
    expect(await post({})).toBe(401);
  });
});
