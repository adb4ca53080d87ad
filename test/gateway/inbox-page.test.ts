/** The inbox page in a real browser. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { startChromium, type TestBrowser } from './chromium.ts';
import {
  API_KEY,
  ada,
  chatMessages,
  eventually,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let browser: TestBrowser;
let page: Page;
let audio: string;
/** What the page complained of: errors, and what its content security policy kept out. */
const complaints: string[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 2);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  browser = await startChromium({ width: 1180, height: 760 });
});

afterAll(async () => {
  await browser.close();
  await gateway.close();
  await redis.close();
  await folder.remove();
});

beforeEach(async () => {
  complaints.length = 0;
  page = await browser.context.newPage();
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
});

afterEach(async () => {
  await page.close();
});

async function send(to: string, more: object = {}): Promise<{ id: string; remoteJid: string }> {
  const { body, status } = await gateway.call('POST', '/message/sendMessengerAudio/main', {
    number: to,
    audio,
    ...more,
  });
  expect(status).toBe(200);
  return body.key;
}

const bubble = (id: string) => page.locator(`[data-message-id="${id}"]`);
const chat = (name: string) => page.getByRole('navigation').getByRole('button', { name });

async function openInbox(): Promise<void> {
  await page.goto(await gateway.inboxLink());
  await page.getByText('Live', { exact: true }).waitFor();
}

describe('the inbox', () => {
  it('shows a message that comes while the page is open, plays it, and its tick follows', async () => {
    await openInbox();
    await chat(ada.name).click();
    await page.getByText('No voice messages yet.').waitFor();
    let loads = 0;
    page.on('load', () => loads++);
    const { id } = await send(ada.number);
    await bubble(id).waitFor();
    // Somebody has the chat open, so it is read at once.
    await page.locator(`[data-message-id="${id}"][data-status="READ"]`).waitFor();
    await page.getByRole('button', { name: 'Play voice message, 2 seconds' }).click();
    await page.locator(`[data-message-id="${id}"][data-status="PLAYED"]`).waitFor();
    expect(await bubble(id).locator('.tick').innerText()).toBe('Played');
    // It really sounds: the position moves on its own, to the end.
    await eventually(
      () => bubble(id).getByRole('slider').inputValue(),
      (seconds) => Number(seconds) > 1,
    );
    await bubble(id).getByRole('button', { name: 'Play voice message, 2 seconds' }).waitFor();
    expect(loads).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('leaves a message in a closed chat delivered, and marks the chat', async () => {
    await openInbox();
    const { id } = await send(hedy.number);
    await eventually(
      () => chatMessages(gateway, 'main', hedy.jid),
      (messages) => messages.at(-1)?.status === 'DELIVERY_ACK',
    );
    await chat(hedy.name).getByText('Delivered').waitFor();
    await chat(hedy.name).click();
    await page.locator(`[data-message-id="${id}"][data-status="READ"]`).waitFor();
  });

  it('draws 64 bars as the waveform says, twice: coming and heard', async () => {
    const { id } = await send(ada.number);
    await openInbox();
    await chat(ada.name).click();
    await bubble(id).waitFor();
    expect(await bubble(id).locator('.bars-coming rect').count()).toBe(64);
    expect(await bubble(id).locator('.bars-heard rect').count()).toBe(64);
    const heights = await bubble(id)
      .locator('.bars-coming rect')
      .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('height'))));
    expect(Math.max(...heights)).toBeGreaterThan(2 * Math.min(...heights));
  });

  it('shows that something is being recorded, and what is quoted and mentioned', async () => {
    await openInbox();
    await chat(ada.name).click();
    const sending = send(ada.number, {
      delay: 1500,
      quoted: { key: { id: 'X' }, message: { conversation: 'Shall we hear it?' } },
      mentionsEveryOne: true,
    });
    await page.getByText('main is recording…').waitFor();
    const { id } = await sending;
    await bubble(id).getByText('Shall we hear it?').waitFor();
    await bubble(id).getByText('@everyone').waitFor();
    await page.getByText('main is recording…').waitFor({ state: 'detached' });
  });

  it('can be used by keyboard alone', async () => {
    const { id } = await send(hedy.number);
    await openInbox();
    await chat(hedy.name).focus();
    await page.keyboard.press('Enter');
    await bubble(id).waitFor();
    await page.locator('#chat-name:focus').waitFor();
    await bubble(id).getByRole('slider', { name: 'Position' }).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    expect(Number(await bubble(id).getByRole('slider').inputValue())).toBeCloseTo(0.2);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Space');
    await page.locator(`[data-message-id="${id}"][data-status="PLAYED"]`).waitFor();
  });

  it('comes back by itself after the gateway was away, and shows what it missed', async () => {
    await openInbox();
    await chat(ada.name).click();
    const { port } = gateway;
    await gateway.close();
    await page.getByText('Connection lost, trying again…').waitFor();
    gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, port });
    const { id } = await send(ada.number);
    await bubble(id).waitFor();
  });

  it('says so when a recording was tampered with, and plays nothing', async () => {
    const { id } = await send(ada.number);
    await page.route('**/media/*.enc', async (route) => {
      const response = await route.fetch();
      const bytes = await response.body();
      bytes[100] = (bytes[100] ?? 0) ^ 1;
      await route.fulfill({ response, body: bytes });
    });
    await openInbox();
    await chat(ada.name).click();
    await bubble(id).getByRole('button', { name: /^Play/ }).click();
    await bubble(id).getByText('Cannot play: the recording is damaged.').waitFor();
    expect(await bubble(id).getAttribute('data-status')).toBe('READ');
  });
});

describe('signing in', () => {
  it('asks for a key, says when it is wrong, and keeps it for the tab only', async () => {
    await page.goto(`${gateway.url}/inbox`);
    const key = page.getByLabel('Gateway key or instance token');
    await key.fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This key does not open the inbox.').waitFor();
    await key.fill(API_KEY);
    await page.getByRole('button', { name: 'Open the inbox' }).click();
    await chat(ada.name).waitFor();
    await page.reload();
    await chat(ada.name).waitFor();
    expect(await browser.context.storageState()).toEqual({ cookies: [], origins: [] });
    const other = await browser.context.newPage();
    await other.goto(`${gateway.url}/inbox`);
    await other.getByLabel('Gateway key or instance token').waitFor();
    await other.close();
  });

  it('takes a one-time link once, and takes the code out of the address', async () => {
    const link = await gateway.inboxLink();
    await page.goto(link);
    await chat(ada.name).waitFor();
    expect(page.url()).toBe(`${gateway.url}/inbox`);
    const other = await browser.context.newPage();
    await other.goto(link);
    await other.getByText('That link has been used or is older than 10 minutes.').waitFor();
    await other.close();
  });
});

it('the page may load nothing but its own files, and runs no inline script', async () => {
  const response = await page.goto(`${gateway.url}/inbox`);
  const policy = response?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).not.toContain('unsafe');
  expect(complaints).toEqual([]);
});

it('on a phone there is one half at a time', async () => {
  await page.setViewportSize({ width: 390, height: 780 });
  await openInbox();
  await chat(ada.name).click();
  expect(await chat(ada.name).isVisible()).toBe(false);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await page.getByRole('button', { name: 'Back to the chats' }).click();
  await chat(ada.name).waitFor();
});

it('a slash at the end of its address leads to the page, with the link’s code', async () => {
  const link = (await gateway.inboxLink()).replace('/inbox?', '/inbox/?');
  await page.goto(link);
  await chat(ada.name).waitFor();
  expect(page.url()).toBe(`${gateway.url}/inbox`);
});
