// @module-tag chromium
/** The session of the console in a real browser: it ends in the middle of work, and pages elsewhere try to use it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import { everyFault, makeTalk, signIn, type Watch, watchPage } from './console-page.ts';

const service = useService({ parts: ['worker', 'gateway'] });
let browser: TestBrowser;
let page: Page;
let watch: Watch;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-session-'));
  browser = await startChromium({ width: 1180, height: 800 });
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

/** As after 12 hours. */
async function expireSessions(): Promise<void> {
  const redis = connectPatiently(service().redis.url);
  try {
    const names = await redis.keys(ownKey('session', '*'));
    if (names.length > 0) await redis.del(...names);
  } finally {
    await closeRedis(redis);
  }
}

const again = (on = page) => on.getByRole('dialog', { name: 'Sign in again' });

async function signInAgain(key: string, on = page): Promise<void> {
  await again(on).getByLabel('API key').fill(key);
  await on.keyboard.press('Enter');
}

describe('a session that ends in the middle of work', () => {
  beforeEach(async () => {
    page = await browser.context.newPage();
    watch = await watchPage(page);
    await signIn(page, service().url, service().key);
    return () => page.close();
  });

  it('asks for the key in place: what was typed is there, and what was pressed is done', async () => {
    await page.getByLabel('Video URL').fill('https://media.example/half-typed');
    await page.getByRole('link', { name: 'Webhooks', exact: true }).click();
    const hook = service().outside.hook('tested');
    await page.getByLabel('URL', { exact: true }).fill(hook.url);
    await page.getByLabel('URL', { exact: true }).focus();
    await expireSessions();
    await page.evaluate(`document.querySelector('#test-form').requestSubmit()`);
    await again().waitFor();
    expect(hook.received).toEqual([]);
    expect(await everyFault(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await signInAgain('sp_nobody00_0123456789abcdef0123456789abcdef');
    await again().getByRole('alert').getByText('does not accept this key').waitFor();
    await signInAgain(service().key);
    await again().waitFor({ state: 'detached' });
    await page.locator('#test-url:focus').waitFor();
    await page.getByText(/HTTP 204 in \d+ ms/).waitFor();
    expect(hook.received).toHaveLength(1);
    expect(await page.getByLabel('URL', { exact: true }).inputValue()).toBe(hook.url);
    await page.getByRole('link', { name: 'New', exact: true }).click();
    expect(await page.getByLabel('Video URL').inputValue()).toBe('https://media.example/half-typed');
    expect(watch.complaints).toEqual([]);
  });

  it('an upload goes on after it; one sign-in does for all tabs', async () => {
    const other = await browser.context.newPage();
    await other.goto(`${service().url}/#/webhooks`);
    await other.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await expireSessions();
    await page.setInputFiles('#file', await makeTalk(folder, 'upload.mp4', 1));
    await again().waitFor();
    await again(other).waitFor();
    await signInAgain(service().key);
    await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
    await again(other).waitFor({ state: 'detached' });
    await other.close();
  });

  it('another key finds nothing of the one before', async () => {
    await page.getByLabel('Video URL').fill('https://media.example/of-the-first');
    await expireSessions();
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await again().waitFor();
    await signInAgain(await service().newKey());
    await page.locator('#key-facts').waitFor();
    await page.getByRole('link', { name: 'New', exact: true }).click();
    expect(await page.getByLabel('Video URL').inputValue()).toBe('');
  });

  it('nothing that opens anything is kept where scripts can read it', async () => {
    const seen = await page.evaluate<string>(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
    );
    expect(seen).not.toContain(service().key.split('_')[2]);
    const [cookie] = await browser.context.cookies(service().url);
    expect(seen).not.toContain(cookie?.value);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  });
});

/** Tries all that a page can, and tells what it could read. As text, since it speaks of what a browser has and Node has not. */
const attack = (api: string, jobId: string): string => `(async () => {
  const api = ${JSON.stringify(api)};
  const mine = { 'Soundpost-Console': '1' };
  const plain = { method: 'POST', headers: { 'Content-Type': 'text/plain' } };
  const got = {};
  const tried = async (name, ask) => {
    try { got[name] = await ask(); } catch (error) { got[name] = 'kept out'; }
  };
  const read = async (path, init) => {
    const response = await fetch(api + path, { credentials: 'include', ...init });
    return response.type === 'opaque' ? 'kept out' : response.status + ' ' + await response.text();
  };
  const loaded = (tag, path, on = 'onload') => new Promise((resolve, reject) => {
    const element = document.createElement(tag);
    element[on] = () => resolve('loaded');
    element.onerror = () => reject(new Error());
    element[tag === 'link' ? 'href' : 'src'] = api + path;
    if (tag === 'link') element.rel = 'stylesheet';
    document.head.append(element);
  });
  const framed = (path) => new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.onload = () => {
      try { resolve(frame.contentDocument?.body.innerText || 'kept out'); } catch { resolve('kept out'); }
    };
    frame.src = api + path;
    document.body.append(frame);
  });
  const posted = (path, enctype, fields) => new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.name = 'f' + Math.random();
    document.body.append(frame);
    const form = document.createElement('form');
    Object.assign(form, { action: api + path, method: 'post', enctype, target: frame.name });
    for (const [name, value] of Object.entries(fields)) {
      form.append(Object.assign(document.createElement('input'), { name, value }));
    }
    document.body.append(form);
    frame.onload = () => { try { resolve(frame.contentDocument?.body.innerText || 'kept out'); } catch { resolve('kept out'); } };
    form.submit();
  });
  await tried('fetch', () => read('/v1/jobs'));
  await tried('fetch with the header', () => read('/v1/jobs', { headers: mine }));
  await tried('fetch of the secret', () => read('/v1/webhooks/secret', { headers: mine }));
  await tried('delete', () => read('/v1/jobs/${jobId}', { method: 'DELETE', headers: mine }));
  await tried('post without cors', () => read('/v1/webhooks/secret', { ...plain, mode: 'no-cors' }));
  await tried('bulk as text', () => read('/v1/jobs/bulk', { ...plain, mode: 'no-cors', body: '{"action":"delete","jobs":["${jobId}"]}' }));
  await tried('sign out', () => read('/v1/session', { method: 'DELETE', headers: mine }));
  await tried('beacon', async () => (navigator.sendBeacon(api + '/v1/webhooks/secret', ''), 'kept out'));
  await tried('form', () => posted('/v1/webhooks/secret', 'application/x-www-form-urlencoded', {}));
  await tried('form as text', () => posted('/v1/jobs/bulk', 'text/plain', { '{"action":"delete","jobs":["${jobId}"],"x":"': '"}' }));
  await tried('form to upload', () => posted('/v1/uploads', 'multipart/form-data', { file: 'x' }));
  await tried('script', () => loaded('script', '/v1/webhooks/secret'));
  await tried('style', () => loaded('link', '/v1/jobs'));
  await tried('image', () => loaded('img', '/v1/jobs'));
  await tried('audio', () => loaded('audio', '/v1/download/${jobId}', 'onloadedmetadata'));
  await tried('frame of the API', () => framed('/v1/jobs'));
  await tried('frame of the console', () => framed('/'));
  await tried('EventSource', () => new Promise((resolve, reject) => {
    const source = new EventSource(api + '/v1/events', { withCredentials: true });
    source.onopen = () => resolve('open');
    source.onerror = () => { source.close(); reject(new Error()); };
  }));
  await tried('WebSocket', () => new Promise((resolve, reject) => {
    const socket = new WebSocket(api.replace('http', 'ws') + '/v1/events');
    socket.onopen = () => resolve('open');
    socket.onerror = () => reject(new Error());
  }));
  await tried('XMLHttpRequest', () => new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest();
    asked.open('GET', api + '/v1/keys');
    asked.withCredentials = true;
    asked.onload = () => resolve(asked.responseText);
    asked.onerror = () => reject(new Error());
    asked.send();
  }));
  return got;
})()`;

describe('a page elsewhere cannot use the session', () => {
  const blank = '<!doctype html><title>elsewhere</title><head></head><body></body>';
  let jobId = '';
  let address = '';

  beforeAll(async () => {
    const url = await service().outside.file('talk.mp4', await makeTalk(folder, 'talk.mp4', 1));
    ({ jobId } = await service().run({ source: { type: 'url', url }, output: { format: 'mp3' } }));
    address = service().outside.on('/elsewhere', (_incoming, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(blank),
    );
    page = await browser.context.newPage();
    await signIn(page, service().url, service().key);
  });

  const own = 'the console itself, by the same script';
  it.each([
    ['another port of the same host', () => address],
    ['another site', () => address.replace('127.0.0.1', 'localhost')],
    ['the gateway’s port', () => `${service().gatewayUrl}/elsewhere`],
    [own, () => `${service().url}/elsewhere`],
  ])('%s', async (what, where) => {
    const elsewhere = await browser.context.newPage();
    // What a page there could be, without a policy of its own in the way.
    await elsewhere.route('**/elsewhere', (route) =>
      route.fulfill({ contentType: 'text/html', body: blank }),
    );
    await elsewhere.goto(where());
    const secret = await service().call('GET', '/v1/webhooks/secret');
    const answers: string[] = [];
    elsewhere.on('response', (answer) => {
      const isApi = new URL(answer.url()).pathname.startsWith('/v1/');
      if (isApi && answer.status() < 400 && answer.request().method() !== 'OPTIONS') {
        answers.push(`${answer.status()} ${answer.request().method()} ${answer.url()}`);
      }
    });
    if (what === own) {
      // That the others are kept out has to be because of where they are.
      const header = `{ headers: { 'Soundpost-Console': '1' } }`;
      expect(await elsewhere.evaluate(`fetch('/v1/jobs', ${header}).then(({ status }) => status)`)).toBe(200);
      await elsewhere.close();
      return;
    }
    const got = await elsewhere.evaluate<Record<string, string>>(attack(service().url, jobId));
    expect(Object.keys(got)).toHaveLength(20);
    expect(Object.entries(got).filter(([, told]) => told !== 'kept out')).toEqual([]);
    expect(answers).toEqual([]);
    expect((await service().call('GET', '/v1/webhooks/secret')).body).toEqual(secret.body);
    expect((await service().job(jobId)).outputFile.url).toBeDefined();
    await elsewhere.close();
    await page.reload();
    await page.getByRole('heading', { name: 'New extraction' }).waitFor();
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await page.locator('#key-facts').waitFor();
    await page.getByRole('link', { name: 'New', exact: true }).click();
  });
});
