/**
 * Takes the picture of the voice inbox for the documentation: a gateway of its own, a conversation, a real browser.
 * Writes docs/images/inbox.png.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChromium } from 'soundpost-testing/chromium';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { ada, eventually, hedy, makeFolder, run, startTestGateway } from '../test/gateway/gateway-fixture.ts';

const PICTURE = 'docs/images/inbox.png';
/** Nikola Tesla of the loopback network. */
const nikola = '12025550103';

const redis = await startTestRedis();
const folder = await makeFolder();
const gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
const browser = await startChromium({ width: 1180, height: 720 });
try {
  await converse();
  await takePicture();
} finally {
  await browser.close();
  await gateway.close();
  await redis.close();
  await folder.remove();
}

/** Sound with the rise and fall of speech: syllables, words and pauses, from a seed. */
async function speech(seed: number, seconds: number): Promise<string> {
  const file = join(folder.path, `speech-${seed}.ogg`);
  const voice = `sin(${150 + seed * 9}*2*PI*t)+0.5*sin(${310 + seed * 17}*2*PI*t)`;
  const syllables = `pow(abs(sin(PI*t*${2.1 + seed / 7})),0.7)*(0.35+0.65*abs(sin(t*${1.3 + seed / 3}+${seed})))`;
  const pauses = `gt(sin(t*${1.7 + seed / 5}+${seed}*2)\\,-0.72)`;
  await run('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi'],
    ...['-i', `aevalsrc='(${voice})*${syllables}*${pauses}*0.5':d=${seconds}:s=48000`],
    ...['-y', file],
  ]);
  return (await readFile(file)).toString('base64');
}

async function send(number: string, audio: string, more: object = {}): Promise<object> {
  const { body } = await gateway.call('POST', '/message/sendMessengerAudio/main', { number, audio, ...more });
  return body.key;
}

function say(chat: string, as: string, text: string): Promise<unknown> {
  return gateway.call('POST', `/inbox/api/instances/main/chats/${chat}/replies`, { as, text });
}

async function converse(): Promise<void> {
  const { body: contacts } = await gateway.call('POST', '/chat/findContacts/main');
  const group = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
  await send(nikola, await speech(4, 4));
  await send(group, await speech(3, 7), { mentionsEveryOne: true });
  await say(group, hedy.jid, 'Beautiful. Can everybody hear the second voice?');
  await send(hedy.number, await speech(2, 6));
  const first = await send(ada.number, await speech(1, 9));
  await gateway.call('POST', '/chat/updateMessage/main', {
    number: ada.number,
    key: first,
    text: 'The interview, first part',
  });
  await say(ada.jid, ada.jid, 'Could you send me the questions as well?');
  await send(ada.number, await speech(5, 5), {
    quoted: { key: { id: 'X' }, message: { conversation: 'Could you send me the questions as well?' } },
  });
}

async function takePicture(): Promise<void> {
  const page = await browser.context.newPage();
  await page.goto(await gateway.inboxLink());
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('navigation').getByRole('button', { name: ada.name }).click();
  const players = page.getByRole('button', { name: /^Play voice message/ });
  await players.first().click();
  await page.locator('[data-status="PLAYED"]').waitFor();
  // In the middle of it: the position moves, so the picture shows what is heard and what is to come.
  await eventually(
    () => page.getByRole('slider').first().inputValue(),
    (seconds) => Number(seconds) > 3.2,
  );
  await page.screenshot({ path: PICTURE });
}
