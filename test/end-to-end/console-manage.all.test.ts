// @module-tag chromium
// @module-tag openssl
/** What somebody manages at the console, in a real browser: instances, one of them paired with a phone over Baileys as it is; keys; webhooks; usage. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UserFacingSocketConfig } from 'baileys';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { GATEWAY_API_KEY, type Hook, useService } from '../api/api-fixture.ts';
import { startTrustedServer } from '../gateway/whatsapp/noise/trusted-server.ts';
import { everyFault, makeTalk, shiftsBeyondBudget, signIn, type Watch, watchPage } from './console-page.ts';

const PHONE = '4915112345678';
/** The narrowest phone there is (WCAG 2.2, 1.4.10). */
const NARROW = { width: 320, height: 640 };

const whatsapp = vi.hoisted(() => ({ url: '' }));
vi.mock('baileys', async (original) => {
  const baileys = await original<typeof import('baileys')>();
  return {
    ...baileys,
    makeWASocket: (config: UserFacingSocketConfig) =>
      baileys.makeWASocket({ ...config, waWebSocketUrl: whatsapp.url }),
  };
});

const folder = await mkdtemp(join(tmpdir(), 'soundpost-manage-'));
const server = await startTrustedServer(PHONE, folder);
const ada = server.addPerson('4915100000001');
const GROUP = 'The Sound Society';
server.addGroup('120363000000000001', GROUP, {
  [`${PHONE}@s.whatsapp.net`]: 'superadmin',
  [ada.jid]: undefined,
});
whatsapp.url = `wss://${server.host}/ws/chat`;
const gatewayPort = await freePort();
const service = useService({
  parts: ['worker', 'gateway'],
  allow: [server.host],
  // No name leads anywhere: WhatsApp's own page neither.
  names: {},
  environment: { GATEWAY_PORT: String(gatewayPort), WEBHOOK_SCHEDULE_SECONDS: '0,1' },
});
let browser: TestBrowser;
let page: Page;
let watch: Watch;

beforeAll(async () => {
  browser = await startChromium({ width: 1180, height: 800 });
  page = await browser.context.newPage();
  watch = await watchPage(page);
  // By a name of this machine that is not the one of PUBLIC_URL.
  await signIn(page, service().url.replace('127.0.0.1', 'localhost'), service().key);
});
afterAll(async () => {
  await browser?.close();
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const open = (view: string): Promise<void> => page.getByRole('link', { name: view, exact: true }).click();
const confirm = (name: string): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
const instance = (name: string) => page.locator(`[data-instance="${name}"]`);
const button = (name: string) => page.getByRole('button', { name, exact: true });

describe('instances', () => {
  it('ask for the gateway’s key once, and say what to do about a wrong one', async () => {
    await open('Instances');
    await page.getByRole('textbox', { name: 'Gateway key', exact: true }).fill('a wrong key');
    await button('Show instances').click();
    await page.getByRole('alert').getByText('The gateway does not accept this key').waitFor();
    await page.getByRole('textbox', { name: 'Gateway key', exact: true }).fill(GATEWAY_API_KEY);
    await page.keyboard.press('Enter');
    await instance('main').getByText('Connected', { exact: true }).waitFor();
    await page.reload();
    await instance('main').getByText('Loopback').waitFor();
  });

  it('list the people of one', async () => {
    await button('People of main').click();
    const people = page.getByRole('list', { name: 'People of main' });
    await people.getByText('Ada Lovelace').waitFor();
    await button('People of main').click();
  });

  it('are made, with a token that is shown once and opens that one alone', async () => {
    await button('New instance').click();
    await page.getByLabel('Name', { exact: true }).fill('main');
    await page.getByRole('radio', { name: /^Loopback/ }).check();
    await button('Create instance').click();
    await page.getByRole('alert').getByText('Choose another name, or delete the other instance.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('office');
    await button('Create instance').click();
    await page.getByRole('heading', { name: 'office created' }).waitFor();
    const token = await page.locator('.secret-value').innerText();
    const { status, body } = await service().call(
      'GET',
      `${service().gatewayUrl}/instance/connectionState/office`,
      { key: null, headers: { apikey: token } },
    );
    expect([status, body.instance.state]).toEqual([200, 'open']);
    await button('Done').click();
    expect(await page.getByText(token).count()).toBe(0);
  });

  it('keep each setting as soon as it is changed', async () => {
    await button('Settings of office').click();
    const card = instance('office');
    await card.getByText('Reject calls').click();
    await card.getByLabel('Message after a rejected call').fill('Please write.');
    await card.getByRole('button', { name: 'Save' }).click();
    const settings = async () => (await service().gateway('GET', '/settings/find/office')).body;
    const kept = await until('both are kept', async () => {
      const now = await settings();
      return now.rejectCall && now.msgCall !== '' && now;
    });
    expect(kept).toMatchObject({ rejectCall: true, msgCall: 'Please write.', readStatus: true });
    await button('Settings of office').click();
    await button('Settings of office').click();
    expect(await card.getByRole('checkbox', { name: /^Reject calls/ }).isChecked()).toBe(true);
    await button('Settings of office').click();
  });

  it('have a webhook', async () => {
    const hook = service().outside.hook('events');
    await button('Webhook of office').click();
    await instance('office').getByLabel('URL').fill(hook.url);
    await instance('office').getByRole('button', { name: 'Save' }).click();
    await instance('office').getByText('Signing secret').waitFor();
    expect((await service().gateway('GET', '/webhook/find/office')).body.webhook).toMatchObject({
      url: hook.url,
      enabled: true,
    });
    await button('Webhook of office').click();
  });

  it('are logged out, connected again, and deleted, all after a question where it matters', async () => {
    await button('Log out office').click();
    await confirm('Log out');
    await instance('office').getByText('Disconnected', { exact: true }).waitFor();
    await instance('office').getByRole('button', { name: 'Connect', exact: true }).click();
    await instance('office').getByText('Connected', { exact: true }).waitFor();
    await button('Delete office').click();
    await confirm('Keep it');
    expect(await instance('office').count()).toBe(1);
    await button('Delete office').click();
    await confirm('Delete instance');
    await instance('office').waitFor({ state: 'detached' });
    expect((await service().gateway('GET', '/instance/connectionState/office')).status).toBe(404);
  });

  it('on XMPP ask for its account, and say why one does not connect', async () => {
    await button('New instance').click();
    await page.getByLabel('Name', { exact: true }).fill('post');
    await page.getByRole('radio', { name: /^XMPP/ }).check();
    await page.getByRole('textbox', { name: 'Account' }).fill('soundpost@chat.example');
    await page.getByLabel('Password').fill('secret');
    await page.getByText('Server settings').click();
    await page.getByLabel('Server', { exact: true }).fill('xmpp://127.0.0.1:1');
    await button('Create instance').click();
    await page.getByRole('heading', { name: 'post created' }).waitFor();
    await button('Done').click();
    await instance('post').locator('.reason').waitFor();
    await button('Delete post').click();
    await confirm('Delete instance');
    await instance('post').waitFor({ state: 'detached' });
  });

  it.each([
    ['Telegram', /^Telegram/, [['Bot token', '123456:AAabcdefghijklmnopqrstuvwxyz']]],
    [
      'the Cloud API',
      /^WhatsApp Cloud/,
      [
        ['Phone number ID', '106540352242922'],
        ['Access token', 'EAAtoken'],
        ['App secret', 'secret-of-the-app'],
        ['Verify token', 'made-up-here'],
      ],
    ],
  ])('on %s ask for what it needs, and are made', async (_, network, fields) => {
    await button('New instance').click();
    await page.getByLabel('Name', { exact: true }).fill('official');
    await page.getByRole('radio', { name: network }).check();
    for (const [label = '', value = ''] of fields) await page.getByLabel(label).fill(value);
    await button('Create instance').click();
    await page.getByRole('heading', { name: 'official created' }).waitFor();
    await button('Done').click();
    await button('Delete official').click();
    await confirm('Delete instance');
    await instance('official').waitFor({ state: 'detached' });
  });
});

describe('an instance on WhatsApp', () => {
  it('is paired by the picture in the page, which is renewed until the phone has scanned it', async () => {
    await button('New instance').click();
    await page.getByLabel('Name', { exact: true }).fill('phone');
    await page.getByRole('radio', { name: /^WhatsApp(?! Cloud)/ }).check();
    await button('Create and pair').click();
    const picture = instance('phone').getByRole('img', { name: /^QR code/ });
    await picture.waitFor();
    // The token, which nobody shows again, beside the picture; first the one, then the other has the focus.
    expect(await instance('phone').locator('.secret-value').isVisible()).toBe(true);
    const focused = page.locator(':focus');
    expect(await focused.innerText()).toBe('phone created');
    const { body } = await service().gateway('GET', '/instance/connect/phone');
    expect(await picture.getAttribute('src')).toBe(body.base64);
    expect(await everyFault(page)).toEqual([]);
    await page.setViewportSize(NARROW);
    const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    await page.setViewportSize({ width: 1180, height: 800 });
    expect(wide).toBeLessThanOrEqual(0);
    await button('Done').click();
    await focused.getByText('Pair your phone').waitFor();
    expect(await instance('phone').locator('.secret-value').count()).toBe(0);

    server.scan(body.code);
    await instance('phone').getByRole('heading', { name: 'Connected' }).waitFor();
    await instance('phone').locator('.status', { hasText: 'Connected' }).waitFor();
    await instance('phone').getByText(`WhatsApp · +${PHONE}`).waitFor();
    await button('Done').click();
  });

  it('lists its groups, and a result is sent to one that is picked', async () => {
    await button('People of phone').click();
    await page.getByRole('list', { name: 'People of phone' }).getByText(GROUP).waitFor();
    const url = await service().outside.file('said.mp4', await makeTalk(folder, 'said.mp4', 2));
    const { jobId } = await service().run({ source: { type: 'url', url }, output: { format: 'voice' } });
    await page.evaluate(`location.hash = '#/jobs/${jobId}'`);
    await page.locator('select#instance').selectOption('phone');
    await page.getByRole('combobox', { name: 'To', exact: true }).click();
    await page.getByRole('option', { name: new RegExp(GROUP) }).click();
    await button('Send').click();
    await page.locator('#send-status', { hasText: /Sent|Delivered/ }).waitFor();
    const got = await until('Ada hears it', () => server.received.find(({ by }) => by === ada.jid));
    expect(got.message.audioMessage).toMatchObject({ ptt: true });
    await open('Instances');
  });

  it('says what it means that WhatsApp refuses it and what helps, and offers nothing that does not', async () => {
    await button('Log out phone').click();
    await confirm('Log out');
    server.refusesVersion = () => true;
    await instance('phone').getByRole('button', { name: 'Pair phone' }).click();
    const trouble = instance('phone').getByRole('alert').filter({ hasText: 'too old for WhatsApp' });
    await trouble.getByText('Ask your operator').waitFor();
    expect(await trouble.innerText()).toMatch(/The gateway says: .*WHATSAPP_VERSION/);
    expect(await everyFault(page)).toEqual([]);
    expect(await button('Show new QR code').count()).toBe(0);
    server.refusesVersion = () => false;
    await button('Not now').click();
  });

  it('is paired anew after it was logged out', async () => {
    await instance('phone').getByRole('button', { name: 'Pair phone' }).click();
    await instance('phone')
      .getByRole('img', { name: /^QR code/ })
      .waitFor();
    await button('Not now').click();
    await button('Delete phone').click();
    await confirm('Delete instance');
    await instance('phone').waitFor({ state: 'detached' });
  });
});

describe('keys', () => {
  const made = (name: string) => page.locator('.key', { has: page.getByRole('heading', { name }) });
  const usage = (key: string) => service().call('GET', '/v1/usage', { key });
  const secret = () => page.locator('.secret-value').innerText();
  let newsroom = '';

  it('are made with what they may do, shown once, and work', async () => {
    await open('Keys');
    await button('New key').click();
    await page.getByLabel('Name', { exact: true }).fill('newsroom');
    await page.getByRole('checkbox', { name: /^voice/ }).check();
    await page.getByRole('textbox', { name: 'Instances' }).fill('main');
    await button('Create key').click();
    await page.getByRole('heading', { name: 'newsroom created' }).waitFor();
    newsroom = await secret();
    const { body } = await usage(newsroom);
    expect(body.data.key).toMatchObject({
      name: 'newsroom',
      scopes: ['extract', 'read', 'download', 'voice'],
      instances: ['main'],
    });
    await button('Done').click();
    await made('newsroom').getByText('Active').waitFor();
  });

  it('are revoked, after a question; the secret of another key is not to be had', async () => {
    expect(await button('Rotate newsroom').count()).toBe(0);
    await button('Revoke newsroom').click();
    await confirm('Revoke key');
    await made('newsroom').waitFor({ state: 'detached' });
    expect((await usage(newsroom)).status).toBe(401);
    await button('Show 1 revoked').click();
    await made('newsroom').getByText('Revoked').waitFor();
  });

  it('of one’s own say so, are rotated, and sign out', async () => {
    const other = await browser.context.newPage();
    await signIn(other, service().url, await service().newKey({ name: 'leaving' }));
    await other.getByRole('link', { name: 'Keys', exact: true }).click();
    await other.getByRole('heading', { name: 'leaving (yours)' }).waitFor();
    await other.getByRole('button', { name: 'Rotate leaving' }).click();
    await other.getByRole('button', { name: 'Rotate key' }).click();
    await other.getByRole('heading', { name: 'leaving rotated' }).waitFor();
    await other.getByRole('button', { name: 'Done' }).click();
    await other.getByRole('button', { name: 'Revoke leaving' }).click();
    await other.getByText('will be signed out').waitFor();
    await other.getByRole('button', { name: 'Revoke my own key' }).click();
    await other.getByLabel('API key').waitFor();
    await other.close();
  });

  it('are not shown to a key without admin, which is told what to do', async () => {
    const other = await browser.context.newPage();
    await signIn(other, service().url, await service().newKey({ scopes: ['read'] }));
    await other.getByRole('link', { name: 'Keys', exact: true }).click();
    await other.getByText('soundpost keys create --name admin').waitFor();
    await other.close();
  });
});

describe('webhooks', () => {
  let hook: Hook;
  let isUp = false;

  it('come by themselves, with the end of a job that is submitted meanwhile', async () => {
    const quiet = service().outside.hook('quiet');
    const url = await service().outside.file('short.mp4', await makeTalk(folder, 'short.mp4', 1));
    await open('Webhooks');
    await page.getByRole('heading', { name: 'No endpoints' }).waitFor();
    await service().submit({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { webhook: `${quiet.url}?token=secret` },
    });
    await page.locator(`[data-endpoint="${quiet.url}"]`).getByText('HTTP 204').waitFor();
    expect(await page.getByText('token').count()).toBe(0);
  });

  it('are listed by endpoint with what was sent, and what failed is sent again from a time on', async () => {
    hook = service().outside.hook('receiver', () => ({ status: isUp ? 204 : 503 }));
    const video = await makeTalk(folder, 'talk.mp4', 2);
    const url = await service().outside.file('talk.mp4', video);
    const jobId = await service().submit({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    });
    await until('it is given up', async () => {
      const { body } = await service().call('GET', `/v1/jobs/${jobId}/deliveries`);
      return body.data.deliveries[0]?.status === 'failed';
    });
    await page.getByRole('link', { name: hook.url }).click();
    const delivery = page.locator(`[data-delivery="${jobId}-webhook"]`);
    await delivery.getByText('HTTP 503').waitFor();
    await page.locator('#endpoint-facts').getByText('HTTP 503').waitFor();
    expect(await everyFault(page)).toEqual([]);

    // Which endpoint, and which of its deliveries, are in the address.
    await button('Pending').click();
    await page.reload();
    await page.getByText('No deliveries.').waitFor();
    await button('Failed').click();
    await delivery.getByText('Failed').waitFor();

    isUp = true;
    const before = hook.received.length;
    await page.getByLabel('Failed since').fill('2026-01-01T00:00');
    await button('Resend').click();
    await page.getByText('Resending 1 delivery.').waitFor();
    await hook.got(before + 1);
    await button('All').click();
    await delivery.getByText('Delivered').waitFor();
    await button('Resend').click();
    await page.getByText('Nothing has failed since then.').waitFor();
    await button(`Resend job.completed of ${jobId}`).click();
    await hook.got(before + 2);
    await page.getByRole('link', { name: 'All endpoints' }).click();
    await page.locator(`[data-endpoint="${hook.url}"]`).getByText('Working').waitFor();
  });

  it('show their secret on demand, and replace it', async () => {
    await button('Show secret').click();
    const first = await page.locator('.secret-value').innerText();
    expect(first).toMatch(/^whsec_/);
    await button('Replace secret').click();
    await confirm('Replace secret');
    await page.getByText('This is the new secret.').waitFor();
    const { body } = await service().call('GET', '/v1/webhooks/secret');
    expect(await page.locator('.secret-value').innerText()).toBe(body.data.secret);
    expect(body.data.secret).not.toBe(first);
  });

  it('try a receiver', async () => {
    await page.getByLabel('URL', { exact: true }).fill(hook.url);
    await button('Send test').click();
    await page.getByText(/HTTP 204 in \d+ ms/).waitFor();
  });
});

describe('for everybody', () => {
  const views = ['Webhooks', 'Instances', 'Keys', 'Usage'];
  const opened = async (view: string): Promise<void> => {
    await open(view);
    await page.getByRole('heading', { name: view, level: 1 }).waitFor();
    await page.locator('.card:visible').first().waitFor();
  };

  it('nothing that axe-core finds is serious, light and dark', async () => {
    for (const colours of ['Use dark theme', 'Use light theme']) {
      await button(colours).click();
      for (const view of views) {
        await opened(view);
        if (view === 'Instances') await button('Settings of main').click();
        if (view === 'Keys') await button('New key').click();
        expect(await everyFault(page), `${view}, ${colours}`).toEqual([]);
      }
    }
  });

  it('a phone of 320 pixels shows all of it without scrolling sideways', async () => {
    await page.setViewportSize(NARROW);
    for (const view of views) {
      await opened(view);
      if (view === 'Instances') await button('New instance').click();
      if (view === 'Keys') await button('New key').click();
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(wide, view).toBeLessThanOrEqual(0);
    }
  });

  it('nothing moves by itself while a view comes', async () => {
    for (const view of views) {
      await opened(view);
      await page.reload();
      await opened(view);
      expect(await shiftsBeyondBudget(page), view).toEqual([]);
    }
  });

  it('nothing complains, and all comes from the service', async () => {
    expect(watch.complaints).toEqual([]);
    const ours = [service().url.replace('127.0.0.1', 'localhost'), service().gatewayUrl];
    expect(
      watch.requests.filter((url) => !ours.includes(new URL(url).origin) && !url.startsWith('data:')),
    ).toEqual([]);
  });
});
