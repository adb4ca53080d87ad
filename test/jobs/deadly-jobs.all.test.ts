/** Jobs whose workers die: they are begun again, three times at most, and no other job pays for a deadly one (decisions A7). */
import { describe, expect, it } from 'vitest';
import { resultOf } from './job-result.ts';
import { useQueue } from './queue-fixture.ts';
import { startWorkerProcess } from './worker-child.ts';

const queue = useQueue();

const SHORT_LOCK = { lockSeconds: 2 };
/** No worker loses one of these because its machine is busy for a while: others take its jobs up once it has died. */
const LONG_LOCK = { lockSeconds: 60 };

describe('a job whose worker is killed', () => {
  const startWorker = (concurrency?: number, deadly?: string) =>
    startWorkerProcess(queue(), {
      ...(concurrency === undefined ? SHORT_LOCK : LONG_LOCK),
      concurrency,
      deadly,
    });

  const endings = async (jobIds: string[]) =>
    Promise.all(jobIds.map(async (jobId) => (await queue().reaches(jobId, 'completed', 'failed')).status));

  it('is done by another one', async () => {
    const jobId = await queue().submit();
    const worker = startWorker();
    expect(await worker.killWithJobs()).toEqual([jobId]);
    queue().consume(async (job) => resultOf(job.jobId), SHORT_LOCK);
    expect(await endings([jobId])).toEqual(['completed']);
  });

  it('three times has failed, and no worker is given it any more', async () => {
    const jobId = await queue().submit();
    for (let kills = 0; kills < 3; kills += 1) {
      const worker = startWorker();
      expect(await worker.killWithJobs()).toEqual([jobId]);
    }
    let runs = 0;
    queue().consume(async (job) => {
      runs += 1;
      return resultOf(job.jobId);
    }, SHORT_LOCK);
    expect(await queue().reaches(jobId, 'completed', 'failed')).toMatchObject({
      status: 'failed',
      error: {
        code: 'INTERNAL_ERROR',
        message: expect.stringContaining('every worker that started it'),
      },
    });
    expect(runs).toBe(0);
  });

  // Without the room of its own that a job gets after two lost starts, all three of these fail.
  it('by the job beside it loses nothing: the deadly one is found out', async () => {
    const jobIds = await queue().submitMany(3);
    const [bystander = '', deadly = '', another = ''] = jobIds;
    for (let kills = 0; kills < 2; kills += 1) {
      const worker = startWorker(3);
      expect((await worker.killWithJobs(3)).toSorted()).toEqual(jobIds.toSorted());
    }
    const third = startWorker(3, deadly);
    await third.ended;
    const runs: string[] = [];
    queue().consume(
      async (job) => {
        runs.push(job.jobId);
        return resultOf(job.jobId);
      },
      { ...LONG_LOCK, concurrency: 3 },
    );
    expect(await endings([bystander, deadly, another])).toEqual(['completed', 'failed', 'completed']);
    expect(runs).not.toContain(deadly);
  });
});
