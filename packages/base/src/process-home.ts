/**
 * Names a process and its machine, so that others there can tell whether it is dead and need not
 * wait for its leases, jobs or files. A pid means something only within one boot and one namespace
 * of pids.
 */
import { readFile, readlink } from 'node:fs/promises';
import { hostname } from 'node:os';

/** `<host>.<pid>.<start>`: pids are reused, so the name holds the time of the start too. */
const NAME_FORM = /^(.+)\.(\d+)\.(\d+)$/;

/** In the name of a process that could not read its own start time. */
const UNKNOWN_START = '0';

/** Neither changes while a process lives. */
let machine: Promise<string | undefined> | undefined;

/** `<boot> <pid namespace> <process>`; empty where the system does not report it. */
export async function homeOfThisProcess(): Promise<string> {
  const here = await thisMachine();
  return here === undefined ? '' : `${here} ${await nameOfThisProcess()}`;
}

/** `unknown`: it ran on another machine, or in another namespace of pids. */
export async function fateOf(home: string): Promise<'alive' | 'dead' | 'unknown'> {
  const here = await thisMachine();
  if (here === undefined || !home.startsWith(`${here} `)) return 'unknown';
  return (await isOfDeadProcess(home.slice(here.length + 1))) ? 'dead' : 'alive';
}

function thisMachine(): Promise<string | undefined> {
  machine ??= readMachine();
  return machine;
}

async function readMachine(): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    return `${boot.trim()} ${await readlink('/proc/self/ns/pid')}`;
  } catch {
    return undefined;
  }
}

/** A name that no other process has, now or later. */
export async function nameOfThisProcess(): Promise<string> {
  return `${hostname()}.${process.pid}.${(await statOf(process.pid))?.start ?? UNKNOWN_START}`;
}

/** The host in the name of a process; undefined if it is no such name. */
export function hostOf(name: string): string | undefined {
  return NAME_FORM.exec(name)?.[1];
}

/**
 * Whether this names a process that is dead. False if unknown: one of another host that shares the
 * disk, or one that this process may not inspect.
 */
export async function isOfDeadProcess(name: string): Promise<boolean> {
  const [, owner, pid = '', started = ''] = NAME_FORM.exec(name) ?? [];
  if (owner !== hostname()) return false;
  const found = await statOf(Number(pid));
  if (found === undefined) return isGone(Number(pid));
  // A zombie no longer runs: it keeps its number until its parent collects it.
  return found.state === 'Z' || (started !== UNKNOWN_START && found.start !== started);
}

/**
 * A process's state and start time, in its system's own unit. Undefined if there is no such
 * process, /proc hides it (hidepid, proc(5)), or no file can be opened now.
 */
async function statOf(pid: number): Promise<{ state: string; start: string } | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // proc(5): fields 3 and 22; the second one may hold spaces and ends with the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? UNKNOWN_START };
  } catch {
    return undefined;
  }
}

/** kill(2): only ESRCH means that there is no such process; EPERM means that it lives. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}
