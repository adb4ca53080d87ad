/** A real browser with a profile of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { descendants, isAlive, processesOver } from './processes.ts';
import { until } from './until.ts';

const EXECUTABLE = '/usr/bin/chromium';

/** Playwright's 30 s are too few for 3 MB of script on a busy machine. */
const PATIENCE_MS = 60_000;

export interface TestBrowser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

export async function startChromium(viewport: { width: number; height: number }): Promise<TestBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'soundpost-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: EXECUTABLE,
    headless: true,
    viewport,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // No loudspeaker on a server, and nobody whose click would allow the sound.
      '--autoplay-policy=no-user-gesture-required',
      '--mute-audio',
      // A microphone that beeps, for whoever is allowed to listen.
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
    ],
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return {
    context,
    async close() {
      const pids = processesOver(profile).flatMap(({ pid }) => [pid, ...descendants(pid)]);
      await context.close();
      // Its processes may end after it, and write into the profile until then.
      await until('no process of the browser is left', () => !pids.some(isAlive));
      await rm(profile, { recursive: true, force: true });
    },
  };
}
