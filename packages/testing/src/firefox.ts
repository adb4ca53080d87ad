/**
 * Debian's Firefox with a profile of its own, driven by WebDriver BiDi: Playwright knows only a
 * Firefox that it has patched itself.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, type Page } from 'puppeteer-core';
import { descendants, isAlive } from './processes.ts';
import { until } from './until.ts';

const EXECUTABLE = '/usr/bin/firefox-esr';
/** The first start writes a profile, on a machine that may be busy. */
const STARTS_WITHIN_MS = 120_000;

export interface TestFirefox {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

/** @param settings of about:config, beside those for a test's browser */
export async function startFirefox(
  settings: Readonly<Record<string, string | number | boolean>> = {},
): Promise<TestFirefox> {
  // Whoever runs the tests may have a Firefox of their own.
  const home = await mkdtemp(join(tmpdir(), 'soundpost-firefox-'));
  const browser = await launch({
    browser: 'firefox',
    executablePath: EXECUTABLE,
    headless: true,
    timeout: STARTS_WITHIN_MS,
    env: { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' },
    extraPrefsFirefox: { ...settings },
    defaultViewport: { width: 1180, height: 800 },
  });
  return {
    newPage: () => browser.newPage(),
    async close() {
      const main = browser.process()?.pid;
      const pids = main === undefined ? [] : [main, ...descendants(main)];
      await browser.close();
      // Its processes may end after it, and write into the folder until then.
      await until('no process of the browser is left', () => !pids.some(isAlive));
      await rm(home, { recursive: true, force: true });
    },
  };
}
