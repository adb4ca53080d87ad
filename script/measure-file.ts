/** Runs before each test file, in its process: notes how much processor time the file takes, which script/tally-reporter.ts prints. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

/** proc_pid_stat(5): ticks of 10 ms, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

const before = processorSeconds();

// Registered first, and so run last: what a file started has ended by then.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads there which fixtures are asked for
afterAll(({}, suite) => {
  const after = processorSeconds();
  if (before !== undefined && after !== undefined) suite.file.meta.processorSeconds = after - before;
});

/** Of this process and of what it has started, in seconds; elsewhere than on Linux it is unknown. */
function processorSeconds(): number | undefined {
  return secondsOf('self');
}

/** The children that live count as well: the starter of the tools, which stays, keeps the time of all tools that it ran. */
function secondsOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Fields 14 to 17: utime, stime, cutime, cstime. The second field, the program's name, may hold spaces and ends with the last parenthesis.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15);
    const own = fields.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
    const living = readdirSync(`/proc/${pid}/task`)
      .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').trim().split(' '))
      .filter((child) => child !== '');
    return living.reduce((sum, child) => sum + (secondsOf(child) ?? 0), own);
  } catch {
    // Elsewhere than on Linux, or of a process that has just ended.
    return undefined;
  }
}
