/** The console in a real browser: what a test sees of a page that it must not complain of, and the steps that several journeys have in common. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { ffmpeg } from 'soundpost-testing/oracle';

/** What pages said and did that they must not, and what they fetched. */
export interface Watch {
  /** Errors of scripts, and what the content security policy kept out. A request that broke is no complaint: some are broken on purpose. */
  readonly complaints: string[];
  /** Addresses that were asked for. */
  readonly requests: string[];
  /** Bytes of script over the wire, by address. */
  readonly scripts: Map<string, number>;
}

/** Of one load of the page; what moves right after somebody pressed or typed something does not count. */
const LAYOUT_SHIFT_BUDGET = 0.1;

/** Keeps what a page cannot tell later. Add it before the page opens anything. */
export async function watchPage(page: Page): Promise<Watch> {
  const watch: Watch = { complaints: [], requests: [], scripts: new Map() };
  page.on('pageerror', (error) => watch.complaints.push(error.message));
  page.on('console', (message) => {
    const isBroken = message.text().startsWith('Failed to load resource');
    // axe-core, which the test puts in, copies style sheets without their nonces; what the page does has an address.
    const isOfTheTest = message.location().url === '';
    if (message.type() === 'error' && !isBroken && !isOfTheTest) watch.complaints.push(message.text());
  });
  page.on('request', (request) => watch.requests.push(request.url()));
  page.on('requestfinished', async (request) => {
    if (request.resourceType() === 'script') {
      const { responseBodySize } = await request.sizes();
      watch.scripts.set(request.url(), Math.max(responseBodySize, watch.scripts.get(request.url()) ?? 0));
    }
  });
  // As text: it speaks of things that a browser has and Node has not.
  await page.addInitScript(`
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        const what = sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
        if (!hadRecentInput) globalThis.shifts.push({ value, view: location.hash, what });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  `);
  return watch;
}

/** What has moved on its own since the page was loaded (Layout Instability, "layout shift"), when it is more than a page may move altogether. */
export async function shiftsBeyondBudget(page: Page): Promise<unknown[]> {
  const shifts = await page.evaluate<{ value: number }[]>('globalThis.shifts');
  return shifts.reduce((sum, { value }) => sum + value, 0) < LAYOUT_SHIFT_BUDGET ? [] : shifts;
}

/** Whoever was signed in in this browser is signed out, in all tabs. */
export async function signIn(page: Page, address: string, key: string): Promise<void> {
  await page.goto(address);
  const [field, out] = [page.getByLabel('API key'), page.locator('#sign-out')];
  await field.or(out).first().waitFor();
  if (await out.isVisible()) await out.click();
  await field.fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'New extraction' }).waitFor();
}

/** Whether any bar reaches half of the way up: before the sound is decoded, a line is drawn. As text, since it speaks of what a browser has and Node has not. */
export const isDrawn = (page: Page, drawing: string): Promise<boolean> =>
  page.evaluate(`(() => {
    const canvas = document.querySelector('${drawing} > div')?.shadowRoot.querySelector('canvas');
    if (!canvas) return false;
    const { data } = canvas.getContext('2d').getImageData(0, Math.round(canvas.height / 4), canvas.width, 1);
    return data.some((value) => value > 0);
  })()`);

/** What axe-core finds that is serious or critical, in the colours that the page has now. */
export const seriousFaults = (page: Page): Promise<string[]> => faultsOf(page, ['serious', 'critical']);

/** All that axe-core finds, however small. */
export const everyFault = (page: Evaluating): Promise<string[]> =>
  faultsOf(page, ['minor', 'moderate', 'serious', 'critical']);

/** Playwright's page and Puppeteer's. */
interface Evaluating {
  evaluate(script: string): Promise<unknown>;
}

interface AxeResult {
  readonly violations: {
    id: string;
    impact: string;
    nodes: { target: string[]; failureSummary: string }[];
  }[];
}

async function faultsOf(page: Evaluating, impacts: readonly string[]): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
  const { violations } = found as AxeResult;
  return violations
    .filter(({ impact }) => impacts.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')} ${failureSummary}`),
    );
}

/** Presses Tab until what is wanted has the focus. */
export async function tabTo(page: Page, what: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate(`document.activeElement?.matches(${JSON.stringify(what)}) ?? false`)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${what} is not reached by Tab`);
}

const SPEECH =
  "aevalsrc='(sin(190*2*PI*t)+0.5*sin(310*2*PI*t))*pow(abs(sin(PI*t*1.3)),0.7)*(0.3+0.6*abs(sin(t*0.7)))*gt(sin(t*1.9)\\,-0.75)*0.4':s=48000";

/** A video of that many seconds whose sound rises and falls like speech. @returns its path */
export async function makeTalk(folder: string, name: string, seconds: number): Promise<string> {
  const file = join(folder, name);
  await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-i', 'color=c=teal:s=64x64:r=5', '-f', 'lavfi', '-t', String(seconds)],
    ...['-i', SPEECH, '-c:v', 'mpeg4', '-c:a', 'aac', '-b:a', '96k', '-shortest', file],
  );
  return file;
}

/** Makes an MP4 that large, by a box that says of itself that it holds nothing (ISO/IEC 14496-12, 8.1.2). */
export async function padTo(file: string, sizeBytes: number): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    const { size } = await handle.stat();
    const box = Buffer.alloc(8);
    box.writeUInt32BE(sizeBytes - size, 0);
    box.write('free', 4, 'latin1');
    await handle.write(box, 0, box.length, size);
    await handle.truncate(sizeBytes);
  } finally {
    await handle.close();
  }
}

export const GOOD_FILES = Array.from({ length: 26 }, (_, index) => `talk ${index + 1}.mp4`);
export const BROKEN_FILES = ['empty.mp4', 'text.mp4', 'cut off.mp4', 'silent.mp4'];

export interface Dropped {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Those 30, made in the folder. */
export async function thirtyFiles(folder: string): Promise<Dropped[]> {
  const talk = await makeTalk(folder, 'talk.mp4', 2);
  const good = await readFile(talk);
  // Its index stands at the front, so that it says itself how much is missing.
  const [whole, silent] = [join(folder, 'whole.mp4'), join(folder, 'silent.mp4')];
  await ffmpeg('-v', 'error', '-i', talk, '-c', 'copy', '-movflags', '+faststart', whole);
  await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-i', 'color=c=teal:s=64x64:r=5', '-t', '1', '-c:v', 'mpeg4'],
    silent,
  );
  const broken = [
    Buffer.alloc(0),
    Buffer.from('no video at all\n'.repeat(100)),
    (await readFile(whole)).subarray(0, -8000),
    await readFile(silent),
  ];
  const files = [
    ...GOOD_FILES.map((name) => ({ name, bytes: good })),
    ...BROKEN_FILES.map((name, index) => ({ name, bytes: broken[index] ?? good })),
  ];
  for (const { name, bytes } of files) await writeFile(join(folder, name), bytes);
  return files;
}

/** A script for a page: files are dropped on it, beside every field. */
export function dropping(files: readonly Dropped[]): string {
  const sent = files.map(({ name, bytes }) => ({ name, text: bytes.toString('base64') }));
  return `(() => {
    const carried = new DataTransfer();
    for (const { name, text } of ${JSON.stringify(sent)}) {
      const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
      carried.items.add(new File([bytes], name, { type: 'video/mp4', lastModified: 1 }));
    }
    const event = (name) => new DragEvent(name, { dataTransfer: carried, bubbles: true, cancelable: true });
    document.body.dispatchEvent(event('dragover'));
    document.body.dispatchEvent(event('drop'));
  })()`;
}
