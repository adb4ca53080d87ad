/** The page at /docs of either server, in a real browser. */
import { startChromium } from './chromium.ts';
import { until } from './until.ts';

export interface SeenReference {
  /**
   * Whatever the browser complained of: errors of scripts, and what the content security policy
   * kept out.
   */
  readonly complaints: readonly string[];
  /** Origins of everything that was asked for. */
  readonly origins: readonly string[];
  readonly text: string;
  /** Of what can be scrolled to, CSS pixels. */
  readonly width: number;
}

/** @param awaited texts that have to appear */
export async function lookAtReference(
  url: string,
  viewport: { width: number; height: number },
  awaited: readonly string[],
): Promise<SeenReference> {
  const browser = await startChromium(viewport);
  try {
    const page = await browser.context.newPage();
    const complaints: string[] = [];
    const origins = new Set<string>();
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin);
    });
    await page.goto(url);
    const read = () => page.evaluate<string>('document.body.innerText');
    const text = await until(
      `${url} shows all of it`,
      async () => {
        const shown = await read();
        return awaited.every((part) => shown.includes(part)) ? shown : undefined;
      },
      60_000,
    );
    return {
      complaints,
      origins: [...origins],
      text,
      width: await page.evaluate<number>('document.documentElement.scrollWidth'),
    };
  } finally {
    await browser.close();
  }
}
