/** What `serve` prints, and whether it is true: each address answers, and the line for a shell makes an MP3 as it is. */
import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetch } from 'soundpost-testing/http';
import { ServiceHome } from 'soundpost-testing/service';
import { afterAll, beforeAll, expect, it } from 'vitest';

const execute = promisify(execFile);

let home: ServiceHome;
beforeAll(async () => {
  // Without a key that the operator has chosen, so that the first start makes one.
  home = await ServiceHome.make({ BOOTSTRAP_API_KEY: '' });
});
afterAll(() => home.remove());

/** Pastes a line into a POSIX shell in an empty folder, and answers what lies there then. */
async function paste(line: string, folder: string, environment = {}): Promise<string[]> {
  const cwd = join(home.folder, folder);
  await mkdir(cwd);
  const env = { PATH: process.env.PATH, ...environment };
  await execute('sh', ['-c', line], { cwd, env }).catch((error: Error & { stdout: string }) => {
    throw new Error(`${error.stdout}${error.message}`, { cause: error });
  });
  return readdir(cwd);
}

async function codecOf(file: string): Promise<string> {
  const entries = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0'];
  return (await execute('ffprobe', [...entries, join(home.folder, file)])).stdout.trim();
}

it('the first start shows addresses, a key, and a line that makes an MP3; later ones take the key from a variable', {
  tags: 'curl',
}, async () => {
  const first = await home.serve();
  const key = await first.process.says(/^API key {2}(sp_\S+) \(shown only once\)$/m);
  const line = await first.process.says(
    /^To extract an MP3 from a sample, paste this in another terminal:\n(.+)$/m,
  );
  expect(line).toContain(`KEY=${key};`);
  expect(line).toContain('curl ');
  const lines = [...first.process.output().matchAll(/^(Console|API|Docs|Gateway|Inbox) +(http\S+)/gm)];
  expect(lines.map(([, name]) => name)).toEqual(['Console', 'API', 'Docs', 'Gateway', 'Inbox']);
  const addresses = lines.map(([, , url = '']) => url);
  expect(addresses.slice(0, 3)).toEqual([`${first.api}/`, first.api, `${first.api}/docs`]);
  for (const address of addresses) expect((await fetch(address)).status, address).toBe(200);
  expect(first.process.output()).toMatch(/^ffmpeg {3}\/.*\/ffmpeg/m);
  expect(await paste(line, 'first')).toEqual(['sample.mp3']);
  expect(await codecOf('first/sample.mp3')).toBe('mp3');

  first.process.signal('SIGTERM');
  expect(await first.process.exited).toBe(0);
  const { process: second } = await home.serve();
  const other = await second.says(
    /^To extract an MP3 .*, set SOUNDPOST_API_KEY in another terminal and paste:\n(.+)$/m,
  );
  expect(second.output()).toMatch(
    /^API key {2}was shown on the first start; create another with script\/soundpost keys create --name mine$/m,
  );
  expect(second.output()).not.toContain(key);
  expect(await paste(other, 'second', { SOUNDPOST_API_KEY: key })).toEqual(['sample.mp3']);
  await expect(paste(other, 'third', { SOUNDPOST_API_KEY: 'wrong' })).rejects.toThrow(
    /"code":"UNAUTHORIZED".*JOB: was not made/s,
  );
  expect(await readdir(join(home.folder, 'third'))).toEqual([]);
});
