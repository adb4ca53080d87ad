/**
 * Where a process is, so that one on the same machine can tell that it is no more: then nobody has to wait for its lease.
 * Process numbers mean something within one boot of one kernel, and one namespace of pids.
 */
import { readFile, readlink } from 'node:fs/promises';
import { isOfDeadProcess, nameOfThisProcess } from '../../storage/workspaces.ts';

/** Neither changes while a process lives. */
let machine: Promise<string | undefined> | undefined;

/** `<boot> <pid namespace> <process>`; empty where the system does not tell. */
export async function homeOfThisProcess(): Promise<string> {
  const here = await thisMachine();
  return here === undefined ? '' : `${here} ${await nameOfThisProcess()}`;
}

/** Whether the process lived on this machine and is no more; false when nobody here can know. */
export async function isDeadNeighbour(home: string): Promise<boolean> {
  const here = await thisMachine();
  return (
    here !== undefined && home.startsWith(`${here} `) && (await isOfDeadProcess(home.slice(here.length + 1)))
  );
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
