/** Our own ffmpeg as npm has put it beside us: used if it fits and runs, and else told. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packagedTools, TOOLS_PACKAGE } from '../src/packaged-tools.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-packaged-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const bin = (): string => join(folder, 'node_modules', TOOLS_PACKAGE ?? '', 'bin');
const found = () =>
  packagedTools('1.2.3', process.env.PATH ?? '', pathToFileURL(join(folder, 'main.js')).href);

async function install(version: string, tools: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(bin(), { recursive: true });
  await writeFile(join(bin(), '../package.json'), JSON.stringify({ version, ffmpeg: '7.1.5-x' }));
  for (const [tool, script] of Object.entries(tools))
    await writeFile(join(bin(), tool), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

const says = (tool: string, version = '7.1.5-x'): string =>
  `echo '${tool} version ${version} Copyright (c) the FFmpeg developers'`;
const good = { ffmpeg: says('ffmpeg'), ffprobe: says('ffprobe') };

describe.runIf(TOOLS_PACKAGE !== undefined)('the installed package', () => {
  it('is used if it has our version and its tools run', async () => {
    await install('1.2.3', good);
    expect(await found()).toEqual({ folder: bin() });
  });

  it.each([
    ['of another version', '1.2.4', good, /it is 1\.2\.4, not 1\.2\.3$/],
    ['without ffprobe', '1.2.3', { ffmpeg: good.ffmpeg }, /files are missing$/],
    ['that does not run', '1.2.3', { ...good, ffprobe: 'exit 126' }, /ffprobe ended badly/],
    [
      'with other tools than it records',
      '1.2.3',
      { ...good, ffprobe: says('ffprobe', '6.0') },
      /its tools say 7\.1\.5-x and 6\.0, not 7\.1\.5-x$/,
    ],
  ])('%s is not, and that is told', async (_, version, tools, why) => {
    await install(version, tools);
    const { fault, ...rest } = await found();
    expect(rest).toEqual({});
    expect(fault).toMatch(why);
    expect(fault).toContain(`${TOOLS_PACKAGE} is installed, but not used: `);
  });
});

it('nothing is told where none is installed', async () => {
  expect(await found()).toEqual({});
});
