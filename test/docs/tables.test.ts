import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../house/command.ts';
import { projectFolder } from './markdown.ts';

const writer = join(projectFolder, 'script/docs.ts');

describe('the tables that are made from the code', () => {
  let copy: string;
  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), 'soundpost-docs-'));
    await cp(join(projectFolder, 'docs'), join(copy, 'docs'), { recursive: true });
    for (const page of ['README.md', 'SECURITY.md', 'ffmpeg.openvex.json']) {
      await cp(join(projectFolder, page), join(copy, page));
    }
  });
  afterAll(() => rm(copy, { recursive: true, force: true }));

  it('stand in the pages as node script/docs.ts writes them', async () => {
    expect(await run(projectFolder, process.execPath, [writer, '--check'])).toEqual({ code: 0, output: '' });
  });

  it('are told to differ when a row was changed by hand, and written again', async () => {
    await run(copy, process.execPath, [writer]);
    const page = join(copy, 'docs/reference/errors.md');
    const written = await readFile(page, 'utf8');
    await writeFile(page, written.replace('| 503 |', '| 500 |'));

    const checked = await run(copy, process.execPath, [writer, '--check']);
    expect(checked).toEqual({
      code: 1,
      output: 'docs/reference/errors.md is not what the code says: run node script/docs.ts\n',
    });
    await run(copy, process.execPath, [writer]);
    expect(await readFile(page, 'utf8')).toBe(written);
  });
});
