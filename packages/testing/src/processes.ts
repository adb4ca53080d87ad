/** What runs on this machine, read from /proc: whether a process lives, and what it has started. */
import { readdirSync, readFileSync } from 'node:fs';

/** A zombie does not count: it has ended, only its parent has not looked yet. */
export function isAlive(pid: number): boolean {
  const state = /^State:\s+(\w)/m.exec(read(`/proc/${pid}/status`))?.[1];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** By SIGSTOP. */
export function isStopped(pid: number): boolean {
  return /^State:\s+T/m.test(read(`/proc/${pid}/status`));
}

/** Sends a signal to a process that may have ended by itself. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The process's children, their children and so on. */
export function descendants(pid: number): number[] {
  const children = tasks(pid)
    .flatMap((task) => read(`/proc/${pid}/task/${task}/children`).trim().split(' '))
    .filter((text) => text !== '')
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/**
 * Those that this process starts from now on and that live, without the starter of the tools, which
 * stays for the next run. Many files of tests run in one process: what earlier ones have left is
 * not theirs.
 */
export function startedFromNow(): () => number[] {
  const before = new Set(descendants(process.pid));
  return () => descendants(process.pid).filter((pid) => !before.has(pid) && isAlive(pid) && !isKept(pid));
}

/** The starter and the reader of descriptions end with their parent. */
function isKept(pid: number): boolean {
  return (
    programOf(pid) === 'soundpost-start' ||
    /(reader|starter)-process\.[jt]s/.test(read(`/proc/${pid}/cmdline`))
  );
}

/** The name of the program, such as `ffmpeg`; empty when the process is gone. */
export function programOf(pid: number): string {
  return read(`/proc/${pid}/comm`).trim();
}

function tasks(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Processes of this machine in whose command a folder is named. */
export function processesOver(folder: string): { readonly pid: number; readonly words: readonly string[] }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), words: read(`/proc/${name}/cmdline`).split('\0') }))
    .filter(({ pid, words }) => words.some((word) => word.includes(folder)) && isAlive(pid));
}
