/** What a person does at a page, counted: each click, key and typed word is one. For Chromium (Playwright) and Firefox (Puppeteer). */
import { until } from 'soundpost-testing/until';

const PATIENCE_MS = 60_000;
const MARK = 'data-clicked-next';

/** What the pages of both libraries have in common. */
export interface DrivenPage {
  evaluate(script: string): Promise<unknown>;
  click(selector: string): Promise<void>;
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
}

/** @param page starts at no clicks */
export function counted(page: DrivenPage) {
  let count = 0;
  return {
    /** Clicks and keys so far. */
    get count(): number {
      return count;
    },
    /** @param name its label or all of its text, where the selector alone does not say which one; waits for it */
    async click(selector: string, name?: string): Promise<void> {
      count += 1;
      await until(
        `there is ${selector} ${name ?? ''}`,
        () => page.evaluate(marking(selector, name)),
        PATIENCE_MS,
      );
      await page.click(`[${MARK}]`);
    },
    /** A word, into what has the focus. */
    async type(word: string): Promise<void> {
      count += 1;
      await page.keyboard.type(word);
    },
    /** @param key as in `Enter` */
    async press(key: string): Promise<void> {
      count += 1;
      await page.keyboard.press(key);
    },
    /** A word from the clipboard, to what has the focus. */
    async paste(word: string): Promise<void> {
      count += 1;
      await page.evaluate(pasting(word));
    },
    /** Waits until the page says all of this; does not count. */
    async shows(...texts: readonly string[]): Promise<void> {
      let shown = '';
      await until(
        `the page shows ${texts.join(' and ')}`,
        async () => {
          shown = String(await page.evaluate('document.body.innerText'));
          return texts.every((text) => shown.includes(text));
        },
        PATIENCE_MS,
      ).catch((error: unknown) => {
        throw new Error(`${error}; it shows:\n${shown}`);
      });
    },
  };
}

/** As text, since it speaks of what a browser has and Node has not. Of what lies behind a question nothing is clicked. */
const marking = (selector: string, name: string | undefined): string => `(() => {
  const words = (text) => (text ?? '').trim().replace(/\\s+/g, ' ');
  const nameOf = (one) => words(one.getAttribute('aria-label') ?? one.labels?.[0]?.innerText ?? one.innerText);
  const within = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document;
  const found = [...within.querySelectorAll(${JSON.stringify(selector)})].find(
    (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled &&
      ${name === undefined ? 'true' : `nameOf(one) === ${JSON.stringify(name)}`},
  );
  for (const one of document.querySelectorAll('[${MARK}]')) one.removeAttribute('${MARK}');
  found?.setAttribute('${MARK}', '');
  return found !== undefined;
})()`;

/** Firefox takes no clipboardData for a new event. */
const pasting = (word: string): string => `(() => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', ${JSON.stringify(word)});
  const event = new ClipboardEvent('paste', { bubbles: true, cancelable: true });
  Object.defineProperty(event, 'clipboardData', { value: clipboardData });
  document.activeElement.dispatchEvent(event);
})()`;
