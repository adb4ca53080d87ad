// @module-tag chromium
// @module-tag firefox
// @module-tag openssl
/** Daily tasks of somebody who manages, each within its clicks and keys (a typed word is one), in both browsers: with 40 endpoints of webhooks and 500 deliveries that failed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UserFacingSocketConfig } from 'baileys';
import type { Page } from 'playwright-core';
import { startChromium } from 'soundpost-testing/chromium';
import { startFirefox } from 'soundpost-testing/firefox';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { GATEWAY_API_KEY, type Hook, type Json, useService } from '../api/api-fixture.ts';
import { startTrustedServer } from '../gateway/whatsapp/noise/trusted-server.ts';
import { counted, type DrivenPage } from './clicks.ts';
import { signIn } from './console-page.ts';

const PHONE = '4915112345678';
const ENDPOINTS = 40;
const FAILED = 500;
/** Jobs of one batch. */
const BATCH = 10;

const whatsapp = vi.hoisted(() => ({ url: '' }));
vi.mock('baileys', async (original) => {
  const baileys = await original<typeof import('baileys')>();
  return {
    ...baileys,
    makeWASocket: (config: UserFacingSocketConfig) =>
      baileys.makeWASocket({ ...config, waWebSocketUrl: whatsapp.url }),
  };
});

const folder = await mkdtemp(join(tmpdir(), 'soundpost-tasks-'));
const phones = await startTrustedServer(PHONE, folder);
whatsapp.url = `wss://${phones.host}/ws/chat`;
const service = useService({
  parts: ['worker', 'gateway'],
  allow: [phones.host],
  names: {},
  environment: {
    GATEWAY_PORT: String(await freePort()),
    WEBHOOK_SCHEDULE_SECONDS: '0,1',
    RATE_SUBMIT_PER_MINUTE: '100000',
    UNFINISHED_PER_KEY: '10000',
  },
});

/** Endpoints that fail; the last asks for an hour of patience. */
const failing: Hook[] = [];
let isMended = false;
let healthy: Hook;
let jobId = '';

beforeAll(async () => {
  const { outside } = service();
  healthy = outside.hook('healthy');
  for (let nth = 0; nth < ENDPOINTS - 1; nth += 1) {
    const isLast = nth === ENDPOINTS - 2;
    const refusal = { status: 503, ...(isLast && { headers: { 'retry-after': '3600' } }) };
    failing.push(outside.hook(`failing-${nth}`, () => (isMended ? { status: 204 } : refusal)));
  }
  const source = { type: 'url', url: `http://127.0.0.1:${outside.port}/missing.mp4` };
  const job = (hook: Hook | undefined): Json => ({
    source,
    output: { format: 'mp3' },
    options: { webhook: hook?.url },
  });
  const jobs = Array.from({ length: FAILED + BATCH }, (_, nth) => job(failing[nth % failing.length]));
  for (let from = 0; from < jobs.length; from += BATCH) {
    const { status } = await service().call('POST', '/v1/batch', {
      json: { jobs: jobs.slice(from, from + BATCH) },
    });
    expect(status).toBe(202);
  }
  jobId = await service().submit(job(healthy));
  await until('what fails has failed', async () => (await failures()) >= FAILED - BATCH, 400_000);
}, 500_000);
afterAll(async () => {
  await phones.close();
  await rm(folder, { recursive: true, force: true });
});

/** How many deliveries were given up. */
async function failures(): Promise<number> {
  const counts = await Promise.all(
    failing.map(async ({ url }) => {
      const { body } = await service().call('GET', `/v1/deliveries?status=failed&limit=100&endpoint=${url}`);
      return body.data.deliveries.length;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

interface TaskPage extends DrivenPage {
  goto(url: string): Promise<unknown>;
  close(): Promise<void>;
}

interface TaskBrowser {
  newPage(): Promise<TaskPage>;
  close(): Promise<void>;
}

const browsers: readonly [name: string, start: () => Promise<TaskBrowser>][] = [
  [
    'Chromium',
    async () => {
      const browser = await startChromium({ width: 1180, height: 800 });
      await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
      return { newPage: () => browser.context.newPage(), close: () => browser.close() };
    },
  ],
  ['Firefox', () => startFirefox()],
];

describe.each(browsers)('in %s', (name, start) => {
  let browser: TaskBrowser;
  let page: TaskPage;
  const [broken, other] = name === 'Chromium' ? [0, 1] : [2, 3];
  const phone = `phone-${name.toLowerCase()}`;

  beforeAll(async () => {
    browser = await start();
    page = await browser.newPage();
  });
  afterAll(() => browser?.close());

  const home = async (): Promise<void> => {
    await page.goto(`${service().url}/?${Math.random()}#/`);
    await counted(page).shows('New extraction');
  };
  const open = (view: string): string => `a[data-view="${view}"]`;

  it('17: a link to a job while signed out: sign in, and land on that job', async () => {
    await page.goto(`${service().url}/#/jobs/${jobId}`);
    const person = counted(page);
    await person.shows('API key');
    await person.type(service().key);
    await person.press('Enter');
    await person.shows('missing.mp4', 'HTTP 404');
    expect(person.count).toBeLessThanOrEqual(2);
  });

  it('16: the same link in a fresh tab, while signed in', async () => {
    const tab = await browser.newPage();
    await tab.goto(`${service().url}/#/jobs/${jobId}`);
    await counted(tab).shows('missing.mp4', 'HTTP 404');
    await tab.close();
  });

  it('20: why an endpoint fails: its last answer, since when, how many wait', async () => {
    await home();
    const person = counted(page);
    await person.click(open('webhooks'));
    const patient = failing.at(-1)?.url ?? '';
    const cells = await until('its row is there', () =>
      page.evaluate(
        `(() => { const row = document.querySelector('[data-endpoint="${patient}"]'); return row && [...row.cells].map((cell) => cell.innerText); })()`,
      ),
    );
    expect(cells).toEqual([
      patient,
      'Failing',
      'HTTP 503',
      expect.stringMatching(/\d:\d\d/),
      expect.stringMatching(/^[1-9]\d*$/),
      expect.stringMatching(/^[1-9]\d*$/),
      expect.stringMatching(/\d:\d\d/),
    ]);
    const rows = await page.evaluate(`document.querySelectorAll('#endpoints tr').length`);
    expect(rows).toBe(ENDPOINTS);
    expect(person.count).toBeLessThanOrEqual(2);
  });

  it('21: resend what that endpoint missed since noon', async () => {
    const [hook, neighbour] = [failing[broken], failing[other]];
    if (hook === undefined || neighbour === undefined) throw new Error('no endpoint');
    const [before, beside] = [hook.received.length, neighbour.received.length];
    isMended = true;
    await home();
    const person = counted(page);
    await person.click(open('webhooks'));
    await person.click('#endpoints a', hook.url);
    await person.click('[data-since="noon"]');
    await person.shows('Resending');
    expect(person.count).toBeLessThanOrEqual(3);
    await hook.got(before + Math.floor(FAILED / failing.length));
    expect(neighbour.received).toHaveLength(beside);
    await person.shows('Delivered');
    isMended = false;
  });

  it('22: test a new endpoint', async () => {
    await home();
    const hook = service().outside.hook(`new-in-${name}`);
    const person = counted(page);
    await person.click(open('webhooks'));
    await person.shows('Test an endpoint');
    await person.paste(hook.url);
    await until('the address has the focus', () =>
      page.evaluate(`document.activeElement?.id === 'test-url'`),
    );
    await person.press('Enter');
    await person.shows('HTTP 204 in');
    expect(person.count).toBeLessThanOrEqual(3);
    expect(hook.received[0]?.json.event).toBe('webhook.test');
  });

  it('23: rotate the webhook secret, and see until when the old one counts', async () => {
    await home();
    const person = counted(page);
    await person.click(open('webhooks'));
    await person.click('button', 'Replace secret');
    await person.click('#confirm-yes');
    await person.shows('The old one works until');
    expect(person.count).toBeLessThanOrEqual(3);
    const { body } = await service().call('GET', '/v1/webhooks/secret');
    await person.shows(body.data.secret);
  });

  it('25: a key with two scopes for a colleague, copied', async () => {
    await home();
    const colleague = `colleague in ${name}`;
    const person = counted(page);
    await person.click(open('keys'));
    await person.click('#new-key-open');
    await until('the name has the focus', () =>
      page.evaluate(`document.activeElement?.id === 'new-key-name'`),
    );
    await person.type(colleague);
    await person.click('input[name="scope"][value="extract"]');
    await person.click('button', 'Create key');
    await person.click('button', 'Copy');
    await person.shows('Key copied');
    expect(person.count).toBeLessThanOrEqual(6);
    const key = String(await page.evaluate(`document.querySelector('.secret-value').innerText`));
    const { body } = await service().call('GET', '/v1/usage', { key });
    expect(body.data.key).toMatchObject({ name: colleague, scopes: ['read', 'download'] });
  });

  it('26, 27: the hours of audio of each day of two weeks; what is left of the limits, and when they renew', async () => {
    await home();
    const person = counted(page);
    await person.click(open('usage'));
    await person.shows('Hours of audio', 'Requests per minute', 'left', 'resets in');
    const days = await page.evaluate(`document.querySelectorAll('#days tr').length`);
    expect(days).toBe(14);
    expect(person.count).toBeLessThanOrEqual(1);
  });

  it('28: connect a chat account by its code, and see its state', async () => {
    for (const instanceName of [phone, `${phone}-2`]) {
      const made = await service().gateway('POST', '/instance/create', {
        instanceName,
        transport: 'whatsapp',
      });
      expect(made.status).toBe(201);
    }
    await home();
    const person = counted(page);
    await person.click(open('instances'));
    await person.shows('Instances belong to the messaging gateway');
    await person.click('#gateway-key');
    await person.type(GATEWAY_API_KEY);
    await person.press('Enter');
    await person.click(`[data-instance="${phone}"] button`, 'Pair phone');
    await until('the code is there', () => page.evaluate(`document.querySelector('img.qr') !== null`));
    phones.scan((await service().gateway('GET', `/instance/connect/${phone}`)).body.code);
    await until('it is connected', () =>
      page.evaluate(`document.querySelector('[data-instance="${phone}"]').dataset.state === 'open'`),
    );
    expect(person.count).toBeLessThanOrEqual(5);

    await home();
    const second = counted(page);
    await second.click(open('instances'));
    await second.click(`[data-instance="${phone}-2"] button`, 'Pair phone');
    await second.click('summary', 'Pair by phone number');
    await until('the number has the focus', () => page.evaluate(`document.activeElement?.type === 'tel'`));
    await second.type(PHONE);
    await second.press('Enter');
    await until('the code is there', () => page.evaluate(`document.querySelector('.pairing-code') !== null`));
    await second.shows('Connecting');
    expect(second.count).toBeLessThanOrEqual(5);
    await service().gateway('DELETE', `/instance/delete/${phone}-2`);
    await service().gateway('DELETE', `/instance/delete/${phone}`);
  });

  it('28: another tab has the gateway’s key without a question', async () => {
    const tab = await browser.newPage();
    await tab.goto(`${service().url}/#/instances`);
    await counted(tab).shows('Loopback');
    await tab.close();
  });

  it('30: sign out, so that the other tab is signed out as well', async () => {
    await home();
    const tab = await browser.newPage();
    await tab.goto(`${service().url}/#/jobs`);
    await counted(tab).shows('History');
    const person = counted(page);
    await person.click('#sign-out');
    await person.shows('API key');
    await counted(tab).shows('API key');
    expect(person.count).toBeLessThanOrEqual(2);
    await tab.goto(`${service().url}/?again#/jobs/${jobId}`);
    await counted(tab).shows('API key');
  });
});

describe('with all of that', () => {
  const LOADS = 5;

  /** The least of a few loads, seconds. */
  async function scriptSeconds(page: Page, view: string, content: string): Promise<number> {
    const client = await page.context().newCDPSession(page);
    await client.send('Performance.enable');
    const took: number[] = [];
    for (let load = 0; load < LOADS; load += 1) {
      await page.goto(`${service().url}/?${view}-${load}#/${view}`);
      await page.locator(content).first().waitFor();
      const { metrics } = await client.send('Performance.getMetrics');
      took.push(metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? Number.POSITIVE_INFINITY);
    }
    return Math.min(...took);
  }

  it.each([
    ['webhooks', '#endpoints', '#webhooks-empty'],
    ['usage', '#days', '#days'],
  ])('#/%s takes at most three times the script time of an empty one', async (view, full, empty) => {
    const browser = await startChromium({ width: 1180, height: 800 });
    try {
      const page = await browser.context.newPage();
      await signIn(page, service().url, await service().newKey());
      const least = await scriptSeconds(page, view, empty);
      await signIn(page, service().url, service().key);
      expect(await scriptSeconds(page, view, full)).toBeLessThanOrEqual(3 * least);
    } finally {
      await browser.close();
    }
  });
});
