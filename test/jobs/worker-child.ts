/** Worker processes (worker-process.ts) for a test to kill, freeze and wake. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestQueue } from './queue-fixture.ts';

interface WorkerChildOptions {
  readonly lockSeconds: number;
  /** Default: 1. */
  readonly concurrency?: number | undefined;
  /** The job that kills it; it finishes the others. Default: it finishes none, and none kills it. */
  readonly deadly?: string | undefined;
  /** As of a process of another machine. */
  readonly home?: string | undefined;
}

export function startWorkerProcess(
  queue: TestQueue,
  { lockSeconds, concurrency = 1, deadly, home }: WorkerChildOptions,
) {
  const program = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
  const more = deadly === undefined ? [] : [deadly];
  const args = [program, queue.server.url, String(lockSeconds), String(concurrency), ...more];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(home === undefined ? {} : { HOME_OF_WORKER: home }) },
  });
  const ended = once(child, 'exit');
  queue.onClose(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  /** The next job that it begins. */
  const begun = async (): Promise<string> => (await lines.next()).value ?? '';
  return {
    begun,
    /** Waits until it has begun so many jobs, and ends it. */
    async killWithJobs(count = 1): Promise<string[]> {
      const jobIds: string[] = [];
      while (jobIds.length < count) jobIds.push(await begun());
      child.kill('SIGKILL');
      await ended;
      return jobIds;
    },
    freeze: () => child.kill('SIGSTOP'),
    wake: () => child.kill('SIGCONT'),
    ended,
  };
}
