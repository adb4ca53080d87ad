/** The rig itself: a stand without a fault has nothing to complain of, and each kind of damage is noticed. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { type AcceptedJob, LONG_LOCKS, Stand } from './stand.ts';

let stand: Stand;
let ids: string[] = [];
beforeAll(async () => {
  stand = await Stand.start({ environment: LONG_LOCKS });
  await stand.warmUp();
});
afterAll(() => stand.close());

it('without a fault everything holds', async () => {
  const jobs = ['mp3', 'flac', 'voice'].map((format) =>
    stand.submit({ output: { format }, webhook: true, voice: true }),
  );
  await stand.submit({ source: stand.web.url('missing.mp4'), webhook: true, voice: true });
  ids = await Promise.all(jobs);
  expect(await violations(stand)).toEqual([]);
  // The end of each of five jobs, and the voice messages of the four that were completed.
  expect(stand.hooks.calls).toHaveLength(9);
});

it('every kind of damage is noticed', async () => {
  const [first = '', second = '', third = ''] = ids;
  const { files, workspaces } = await damageFiles(first, second);
  damageWhatWasTold(second, third);
  await fetch(stand.hooks.url, {
    method: 'POST',
    headers: { 'webhook-id': 'unsigned', 'webhook-timestamp': '1', 'webhook-signature': 'v1,none' },
    body: JSON.stringify({ jobId: first, event: 'job.completed' }),
  });
  const redis = stand.redis.connect();
  const [chat = ''] = await redis.keys('{soundpost}:gateway:chat:*');
  await redis.zadd(chat, Date.now(), 'another');
  await redis.set(`{soundpost}:extract:${first}:lock`, 'somebody');
  redis.disconnect();
  const link = join(stand.folder, 'ffmpeg');
  await symlink(process.execPath, link);
  const left = execFile(link, ['-e', 'setInterval(() => {}, 1000)']);
  try {
    const found = (await violations(stand, { restMs: 500 })).join('\n');
    for (const sentence of [
      `${LOST}: an accepted job was not known any more`,
      `${LOST}: has no end`,
      `${first}: its file is not the one that its sha256 says`,
      `${second}: has files of several attempts: ${files}`,
      `${second}: was told to have ended in 2 ways`,
      `${third}: the progress went back`,
      'but its source 2 s',
      `job.completed of ${first}: its signature does not hold`,
      `job.completed of ${first}: was told under 2 ids`,
      '1 messages lie in chats that no job tells of',
      `the lock {soundpost}:extract:${first}:lock is left`,
      `temporary files are left: workspaces/${workspaces}/left`,
      'workspaces/here.999999.1 is of a dead process',
      `process ${left.pid} is left`,
      'api holds',
    ]) {
      expect(found).toContain(sentence);
    }
  } finally {
    left.kill('SIGKILL');
    await once(left, 'exit');
  }
});

const LOST = 'job_0123456789abcdef';

/** A result that is changed, another one beside it, and temporary files of the living and of the dead. */
async function damageFiles(changed: string, doubled: string): Promise<{ files: string; workspaces: string }> {
  const folderOf = (jobId: string): string => join(stand.data, 'files', jobId);
  const [result = ''] = (await readdir(folderOf(changed))).filter((name) => name.endsWith('.mp3'));
  // As long as before: another length is noticed by whoever downloads it.
  await using file = await open(join(folderOf(changed), result), 'r+');
  await file.write('more', 0);
  await writeFile(join(folderOf(doubled), '0123456789abcdef.flac'), '');
  const root = join(stand.data, 'workspaces');
  const owners = await readdir(root);
  const workspaces = owners.find((owner) => owner.includes(`.${stand.workers[0]?.pid}.`)) ?? '';
  await writeFile(join(root, workspaces, 'left'), '');
  await mkdir(join(root, 'here.999999.1'));
  return { files: (await readdir(folderOf(doubled))).join(', '), workspaces };
}

/** A job that nobody knows, one that ends twice, one that goes back, one that lost a second; a process that grew. */
function damageWhatWasTold(twice: string, back: string): void {
  stand.accept(LOST);
  stand.observer.of(twice).ends.add('failed INTERNAL_ERROR');
  const watched = stand.observer.of(back);
  watched.last = { ...watched.last, progress: 101 };
  const index = stand.accepted.findIndex(({ jobId }) => jobId === back);
  const { submission, acceptedAtMs } = stand.accepted[index] as AcceptedJob;
  stand.accepted[index] = { jobId: back, submission, acceptedAtMs, seconds: 2 };
  stand.memoryLevels.set(stand.api.name, -1e9);
}
