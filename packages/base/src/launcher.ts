/**
 * A command prefix that ends a child when this process ends, however it ends: SIGKILL leaves no time to clean up.
 * Linux has a signal for it (prctl(2), PR_SET_PDEATHSIG), which util-linux's setpriv sets. Elsewhere a shell holds
 * the child and the read end of a pipe whose write end is ours: when we die the pipe closes and the shell kills.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

type ParentDeathSignal = 'TERM' | 'KILL';

// $0 is the signal; stdin is the lifeline, which the child must not read. A background command's stdin would be
// /dev/null (POSIX 2.9.3), hence descriptor 3.
const LIFELINE = [
  'exec 3<&0',
  '"$@" </dev/null 3<&- & child=$!',
  '(cat <&3 >/dev/null; kill -"$0" $child 2>/dev/null) & watch=$!',
  'wait $child; code=$?',
  'kill $watch; exit $code',
].join('\n');

export function dieWithParent(signal: ParentDeathSignal, searchPath: string): readonly string[] {
  return process.platform === 'linux' && findProgram('setpriv', searchPath) !== undefined
    ? ['setpriv', '--pdeathsig', signal, '--']
    : ['/bin/sh', '-c', LIFELINE, signal];
}

/** The whole path of the first program of that name on the search path; undefined when there is none. */
export function findProgram(program: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .map((folder) => resolve(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    });
}
