/** How much processor time a process has used, its own and that of all children that have ended; Linux tells it, elsewhere it is unknown. */
import { readFileSync } from 'node:fs';

/** proc_pid_stat(5): ticks of 10 ms, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Of this process, in seconds. */
export function processorSeconds(): number | undefined {
  let stat: string;
  try {
    stat = readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return undefined;
  }
  // Fields 14 to 17: utime, stime, cutime, cstime. The second field, the program's name, may hold spaces and ends with the last parenthesis.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  return fields.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}
