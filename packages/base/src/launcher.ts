/**
 * A command prefix that ends a child when this process ends: SIGKILL leaves no time to clean up.
 * Linux has a signal for it (prctl(2), PR_SET_PDEATHSIG), set by util-linux's setpriv. Elsewhere a
 * shell holds the child and the read end of a pipe to this process: when it closes, the shell
 * kills.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

type ParentDeathSignal = 'TERM' | 'KILL';

// $0 is the signal. stdin is the lifeline, which the child must not read: hence descriptor 3, since
// a background command's stdin is /dev/null (POSIX 2.9.3).
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

/** The full path of the first program of that name on the search path, or undefined. */
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

/** A POSIX shell word, quoted if necessary. */
export function shellWord(text: string): string {
  return /^[\w@=./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
