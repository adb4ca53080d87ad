/**
 * What some tests need of a machine beyond what script/demo installs. A file says so in a comment
 * on a line of its own, `// @module-tag chromium`, a describe or a test by its options, `{ tags:
 * 'chromium' }`. Where it is missing these tests are left out, and the run counts them with the
 * reason. With TEST_NEEDS_ALL=1 they run, and fail. `script/bootstrap --all` installs everything.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestOptions, TestTagDefinition } from 'vitest';

declare module 'vitest' {
  interface TestTags {
    needs: keyof typeof programs | 'helm' | 'mount' | 'quick-ffmpeg';
  }
  interface TaskMeta {
    /** Why the test did not run. */
    leftOut?: string;
  }
}

/** By script/helm. */
export const FETCHED_HELM = join(import.meta.dirname, '../../../.cache/helm/helm');

/** By script/ffmpeg. */
export const BUILT_FOLDER = join(import.meta.dirname, '../../../.ffmpeg/bin');

const runsAll = process.env.TEST_NEEDS_ALL === '1';

/** Of each, a command on the PATH or files that show that it is there, and Debian's package. */
const programs = {
  chromium: { shownBy: ['/usr/bin/chromium'], package: 'chromium' },
  curl: { shownBy: ['curl'], package: 'curl' },
  'espeak-ng': { shownBy: ['espeak-ng'], package: 'espeak-ng' },
  faketime: { shownBy: ['/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'], package: 'faketime' },
  firefox: { shownBy: ['/usr/bin/firefox-esr'], package: 'firefox-esr' },
  flite: { shownBy: ['flite'], package: 'flite' },
  gcc: { shownBy: ['cc', '/usr/include/stdio.h'], package: 'gcc libc6-dev' },
  jq: { shownBy: ['jq'], package: 'jq' },
  openssl: { shownBy: ['openssl'], package: 'openssl' },
  'opus-tools': { shownBy: ['opusdec'], package: 'opus-tools' },
  pocketsphinx: {
    shownBy: ['pocketsphinx_continuous', '/usr/share/pocketsphinx/model/en-us'],
    package: 'pocketsphinx pocketsphinx-en-us',
  },
  prometheus: { shownBy: ['prometheus'], package: 'prometheus' },
  prosody: { shownBy: ['prosody'], package: 'prosody' },
  python3: { shownBy: ['python3'], package: 'python3' },
  slixmpp: { shownBy: ['/usr/lib/python3/dist-packages/slixmpp'], package: 'python3-slixmpp' },
} as const satisfies Readonly<Record<string, { shownBy: readonly string[]; package: string }>>;

const folders = (process.env.PATH ?? '').split(delimiter);

function isThere(program: string): boolean {
  const places = program.startsWith('/') ? [program] : folders.map((folder) => join(folder, program));
  return places.some((place) => existsSync(place));
}

function whyNot(name: keyof typeof programs): string | undefined {
  const { shownBy, package: debian } = programs[name];
  return shownBy.every(isThere) ? undefined : `they need ${name} (Debian: apt-get install ${debian})`;
}

/**
 * A distribution's ffmpeg loads 200 libraries at each start: a sixth of a second of processor time,
 * which one that script/ffmpeg builds does not take. Who names one by FFMPEG_PATH wants it tested.
 */
function whyNoQuickFfmpeg(): string | undefined {
  const isMeant = process.env.FFMPEG_PATH !== undefined || existsSync(join(BUILT_FOLDER, 'ffmpeg'));
  return isMeant
    ? undefined
    : "they start ffmpeg hundreds of times, and the system's takes long to start (script/ffmpeg builds a quick one; FFMPEG_PATH=ffmpeg runs them on the system's)";
}

/** The administrator may, and in few containers. */
function whyNoMount(): string | undefined {
  const may = spawnSync('unshare', ['--mount', 'true']).status === 0;
  return may ? undefined : 'they mount file systems, which only root may';
}

/**
 * Options of a describe or a test that is left out for this reason, or runs where there is none.
 * Not by `skip`, which `runIf` sets as well: so a test that is of another run does not count.
 */
export function unless(reason: string | undefined): TestOptions {
  return reason === undefined ? {} : { todo: true, meta: { leftOut: reason } };
}

/** For vitest.config.ts. */
export function tags(): TestTagDefinition[] {
  const names = Object.keys(programs) as (keyof typeof programs)[];
  const reasons = [
    ...names.map((name) => [name, whyNot(name)] as const),
    [
      'helm',
      isThere('helm') || existsSync(FETCHED_HELM) ? undefined : 'they need Helm (script/bootstrap --all)',
    ],
    ['mount', whyNoMount()],
    ['quick-ffmpeg', whyNoQuickFfmpeg()],
  ] as const;
  return reasons.map(([name, reason]) => ({ name, ...(runsAll ? {} : unless(reason)) }));
}
