// @module-tag chromium
/** The inbox page in a real browser. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { freePort } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
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
  // Long enough for a browser that stands still for a while to show some of it.
  await makeTone(join(folder.path, 'tone.ogg'), 5);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  // It comes back on the same one.
  const port = await freePort();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, port });
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

/** Has the page note how far a message has sounded: at the end its position is back at 0, and a slow browser may not be asked before. */
const follow = (message: Locator): Promise<void> =>
  message.getByRole('slider').evaluate((slider) => {
    setInterval(() => {
      slider.dataset.farthest = String(Math.max(Number(slider.dataset.farthest ?? 0), Number(slider.value)));
    }, 10);
  });

const farthest = async (message: Locator): Promise<number> =>
  Number(await message.getByRole('slider').getAttribute('data-farthest'));

async function openInbox(): Promise<void> {
  await page.goto(await gateway.inboxLink());
  await page.getByText('Live', { exact: true }).waitFor();
}

describe('the inbox', () => {
  it('shows a message that comes while the page is open, plays it, and its tick follows', async () => {
    await openInbox();
    await chat(ada.name).click();
    await page.getByText('No messages yet.').waitFor();
    let loads = 0;
    page.on('load', () => loads++);
    const { id } = await send(ada.number);
    await bubble(id).waitFor();
    // Somebody has the chat open, so it is read at once.
    await page.locator(`[data-message-id="${id}"][data-status="READ"]`).waitFor();
    await follow(bubble(id));
    await page.getByRole('button', { name: 'Play voice message, 5 seconds' }).click();
    await page.locator(`[data-message-id="${id}"][data-status="PLAYED"]`).waitFor();
    expect(await bubble(id).locator('.tick').innerText()).toBe('Played');
    // It really sounds: the position moves on its own, to the end.
    await eventually(
      () => farthest(bubble(id)),
      (seconds) => seconds > 1,
    );
    await bubble(id).getByRole('button', { name: 'Play voice message, 5 seconds' }).waitFor();
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
      // Long enough to be seen by a browser that is slow to show it.
      delay: 5000,
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
    await page.getByText('Connection lost, reconnecting…').waitFor();
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
    const posted: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') posted.push(new URL(request.url()).pathname);
    });
    await openInbox();
    await chat(ada.name).click();
    await page.locator(`[data-message-id="${id}"][data-status="READ"]`).waitFor();
    await bubble(id).getByRole('button', { name: /^Play/ }).click();
    await bubble(id).getByText('Cannot play: the recording is damaged.').waitFor();
    expect(posted).not.toEqual([]);
    expect(posted.filter((path) => path.endsWith('/played'))).toEqual([]);
  });
});

describe('playing somebody', () => {
  const reply = () => page.getByRole('textbox', { name: 'Message' });
  const last = async (jid: string): Promise<{ message: { conversation?: string }; authorName?: string }> =>
    (await chatMessages(gateway, 'main', jid)).at(-1) as never;

  it('replies as a person, by keyboard, and the instance gets it', async () => {
    await openInbox();
    await chat(ada.name).click();
    await reply().fill('Thank you,\nI will listen');
    await page.keyboard.press('Enter');
    const text = page.getByRole('article', { name: `Message from ${ada.name}` }).last();
    await text.getByText('I will listen').waitFor();
    expect(await last(ada.jid)).toMatchObject({
      key: { fromMe: false },
      authorName: ada.name,
      message: { conversation: 'Thank you,\nI will listen' },
    });
    expect(await reply().inputValue()).toBe('');
    expect(complaints).toEqual([]);
  });

  it('chooses who speaks in a group', async () => {
    await openInbox();
    await chat('The Sound Society').click();
    await page.getByLabel('Reply as').selectOption(hedy.name);
    await reply().fill('Good evening');
    await page.keyboard.press('Enter');
    await page
      .getByRole('article', { name: `Message from ${hedy.name}` })
      .getByText('Good evening')
      .waitFor();
  });

  it('speaks into the microphone, and the voice message can be played', async () => {
    await openInbox();
    await chat(ada.name).click();
    await page.getByRole('button', { name: 'Record a voice message' }).click();
    await page
      .getByRole('timer')
      // As above.
      .getByText(/0:0[5-9]/)
      .waitFor();
    await page.getByRole('button', { name: 'Send the recording' }).click();
    const voice = page.getByRole('article', { name: `Voice message from ${ada.name}` }).last();
    await follow(voice);
    await voice.getByRole('button', { name: /^Play voice message/ }).click();
    await eventually(
      () => farthest(voice),
      (seconds) => seconds > 0.2,
    );
    expect(complaints).toEqual([]);
  });

  it('throws a recording away', async () => {
    const before = (await chatMessages(gateway, 'main', ada.jid)).length;
    await openInbox();
    await chat(ada.name).click();
    await page.getByRole('button', { name: 'Record a voice message' }).click();
    await page.getByRole('timer').getByText(/0:0\d/).waitFor();
    await page.keyboard.press('Escape');
    await reply().waitFor();
    await reply().fill('No, rather in writing');
    await page.keyboard.press('Enter');
    await page.getByText('No, rather in writing').last().waitFor();
    expect(await chatMessages(gateway, 'main', ada.jid)).toHaveLength(before + 1);
  });

  it('shows to others that somebody writes', async () => {
    const other = await browser.context.newPage();
    await other.goto(await gateway.inboxLink());
    await other.getByRole('navigation').getByRole('button', { name: 'The Sound Society' }).click();
    await other.getByLabel('Reply as').waitFor();
    await other.getByText('Live', { exact: true }).waitFor();
    await openInbox();
    await chat('The Sound Society').click();
    await page.getByLabel('Reply as').selectOption(hedy.name);
    await reply().pressSequentially('Well');
    await other.getByText(`${hedy.name} is typing…`).waitFor();
    await reply().fill('');
    await other.getByText(`${hedy.name} is typing…`).waitFor({ state: 'detached' });
    await other.close();
  });

  it('calls the instance, which may reject and say why', async () => {
    await gateway.call('POST', '/settings/set/main', { rejectCall: true, msgCall: 'Please write instead.' });
    await openInbox();
    await chat(hedy.name).click();
    await page.getByRole('button', { name: `Call main as ${hedy.name}` }).click();
    await page.locator('#call-text', { hasText: 'main rejected the call' }).waitFor();
    await page.getByRole('article', { name: 'Message sent' }).getByText('Please write instead.').waitFor();
    await gateway.call('POST', '/settings/set/main', { rejectCall: false });
  });

  it('hangs up', async () => {
    await openInbox();
    await chat(hedy.name).click();
    await page.getByRole('button', { name: `Call main as ${hedy.name}` }).click();
    await page.getByRole('button', { name: 'Hang up' }).click();
    await page.locator('#call-text', { hasText: `${hedy.name} hung up` }).waitFor();
  });

  it('blocks the instance: nothing gets through in either direction until it is let in again', async () => {
    await openInbox();
    await chat(hedy.name).click();
    const block = page.getByRole('button', { name: `${hedy.name} blocks main`, pressed: false });
    await block.click();
    await page.getByText(`${hedy.name} has blocked main: nothing gets through.`).waitFor();
    const { id } = await send(hedy.number);
    await page.locator(`[data-message-id="${id}"][data-status="ERROR"]`).waitFor();
    expect(await bubble(id).locator('.tick').innerText()).toBe('Undelivered');
    await reply().fill('Hello?');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Not delivered').waitFor();
    await page.getByRole('button', { name: `${hedy.name} blocks main`, pressed: true }).click();
    await reply().fill('Hello again');
    await page.keyboard.press('Enter');
    await page.getByRole('article').getByText('Hello again').waitFor();
  });

  it('shows a caption and a changed text while the page is open', async () => {
    const key = await send(ada.number);
    await openInbox();
    await chat(ada.name).click();
    await bubble(key.id).waitFor();
    await gateway.call('POST', '/chat/updateMessage/main', {
      number: ada.number,
      key,
      text: 'The <b>second</b> take',
    });
    await bubble(key.id).getByText('The <b>second</b> take').waitFor();
    await bubble(key.id).getByText('edited').waitFor();
    await chat(ada.name).getByText('The <b>second</b> take').waitFor();
  });
});

describe('what is only to be listened to', () => {
  it('the chat with another instance is answered in the inbox of that instance', async () => {
    const { body } = await gateway.call('POST', '/instance/create', { instanceName: 'office' });
    const { body: instances } = await gateway.call('GET', '/inbox/api/instances');
    const { ownJid } = instances.find(({ id }: { id: string }) => id === body.instance.instanceId);
    const { id } = await send(ownJid);
    await openInbox();
    await chat('office').click();
    await bubble(id).waitFor();
    await page.getByText('The other side of this chat is an instance with its own inbox.').waitFor();
    expect(await page.getByRole('textbox', { name: 'Message' }).isVisible()).toBe(false);
    expect(await page.getByRole('button', { name: /^Call/ }).isVisible()).toBe(false);
    await page.getByRole('combobox', { name: 'Instance' }).selectOption('office');
    await chat('main').click();
    await page.getByRole('article', { name: 'Voice message from main' }).waitFor();
    await gateway.call('DELETE', '/instance/delete/office');
  });

  it('an instance on another network has no controls', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'far', transport: 'whatsapp' });
    await openInbox();
    await page.getByRole('combobox', { name: 'Instance' }).selectOption('far');
    const { body: instances } = await gateway.call('GET', '/inbox/api/instances');
    expect(instances.find(({ name }: { name: string }) => name === 'far')).toMatchObject({ readOnly: true });
    for (const [path, body] of [
      ['chats/1@s.whatsapp.net/replies', { as: '1@s.whatsapp.net', text: 'x' }],
      ['calls', { as: '1@s.whatsapp.net' }],
    ] as const) {
      const answer = await gateway.call('POST', `/inbox/api/instances/far/${path}`, body);
      expect([answer.status, answer.body.code]).toEqual([501, 'unsupported']);
    }
    await gateway.call('DELETE', '/instance/delete/far');
  });
});

describe('an invitation', () => {
  it('asks which instance enters the group, and shows the group to it', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'guest' });
    const { body: contacts } = await gateway.call('POST', '/chat/findContacts/main');
    const group = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
    const { body } = await gateway.call('GET', `/group/inviteCode/main?groupJid=${group}`);
    await openInbox();
    await page.goto(body.inviteUrl);
    await page.getByLabel('Who joins?').selectOption('guest');
    await page.getByRole('button', { name: 'Join group' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await chat('The Sound Society').first().waitFor();
    await page.locator('#instances option:checked', { hasText: 'guest' }).waitFor({ state: 'attached' });
    const { body: members } = await gateway.call('GET', `/group/participants/guest?groupJid=${group}`);
    expect(members.participants.at(-1)).toMatchObject({ name: 'guest', admin: null });
    expect(page.url()).toBe(`${gateway.url}/inbox`);
    await gateway.call('DELETE', '/instance/delete/guest');
  });
});

describe('signing in', () => {
  it('waits for a gateway that does not answer, with a link as with a key', async () => {
    let isAway = true;
    const refused = new Set<string | undefined>();
    await page.route('**/inbox/api/**', async (route) => {
      const what = new URL(route.request().url()).pathname.split('/').at(-1);
      // Once it is there, each thing is refused once more.
      const isRefused = isAway || !refused.has(what);
      if (!isAway) refused.add(what);
      await (isRefused ? route.fulfill({ status: 503, json: {} }) : route.continue());
    });
    await page.goto(await gateway.inboxLink());
    await page.getByText('The gateway does not respond, retrying…').waitFor();
    isAway = false;
    await chat(ada.name).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    expect([...refused].sort()).toEqual(['chats', 'events', 'instances', 'session']);
    isAway = true;
    await page.reload();
    await page.getByText('The gateway does not respond, retrying…').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    isAway = false;
    await page.getByLabel('Gateway key or instance token').fill(API_KEY);
    await page.keyboard.press('Enter');
    await chat(ada.name).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('#chats:not(:has(*))').waitFor({ state: 'attached' });
  });

  it('asks for a key, says when it is wrong, and keeps it for the tab only', async () => {
    await page.goto(`${gateway.url}/inbox`);
    const key = page.getByLabel('Gateway key or instance token');
    await key.fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This key does not open the inbox.').waitFor();
    await key.fill(API_KEY);
    await page.getByRole('button', { name: 'Open inbox' }).click();
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
    await other.getByText('That link was used already or is older than 10 minutes.').waitFor();
    await other.close();
  });
});

it('on a phone there is one half at a time', async () => {
  await page.setViewportSize({ width: 390, height: 780 });
  await openInbox();
  await chat(ada.name).click();
  await chat(ada.name).waitFor({ state: 'hidden' });
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
