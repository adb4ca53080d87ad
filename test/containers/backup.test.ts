/** Backup, wipe and restore by the commands of docs/how-to/backup.md, with each Compose that this machine has. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'soundpost-testing/client';
import { describe, expect, it } from 'vitest';
import { codeBlocks } from '../docs/markdown.ts';
import { useVideos } from '../end-to-end/videos.ts';
import { composes, healthIs } from './engine.ts';
import { Stack } from './stack.ts';

const videos = useVideos({});

const [backUp = '', restore = ''] = codeBlocks('docs/how-to/backup.md')
  .filter(({ mark }) => mark.includes('test/containers/backup.test.ts'))
  .map(({ text }) => text);

describe.each(await composes())('$name', ({ command }) => {
  it('a stack is backed up, wiped, and restored into empty volumes', async () => {
    // Of the volume, and so of the backup.
    const stack = await Stack.make(command, [], { SECRET_KEY: '' });
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-backup-'));
    try {
      await stack.compose('up', '-d');
      await healthIs(await stack.container('api'), 'healthy');
      const key = await stack.compose(
        'exec',
        '-T',
        'api',
        'node',
        'src/main.ts',
        'keys',
        'create',
        '--name',
        'a',
      );
      const client = new Client(stack.api, key);
      const { body } = await client.upload(videos.talk, { output: { format: 'mp3' } });
      const { outputFile } = await client.completed(body.data.jobId);
      const { bytes } = await client.bytes(outputFile.url);
      await stack.follow(backUp, folder);
      await stack.compose('down', '--volumes');
      expect((await stack.remains()).volumes).toEqual([]);
      await stack.follow(restore, folder);
      for (const id of await stack.containers()) await healthIs(id, 'healthy');
      expect((await client.bytes(outputFile.url)).bytes).toEqual(bytes);
      const { body: again } = await client.upload(videos.talk, { output: { format: 'mp3' } });
      await client.completed(again.data.jobId);
    } finally {
      await stack.remove();
      await rm(folder, { recursive: true });
    }
  });
});
