/** Nothing is left of what has ended: processes, temporary files, locks, memory. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, processesOver } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { heldBytes } from './memory.ts';
import type { Stand } from './stand.ts';

/** What a process may hold more than after its warm-up, bytes: caches, compiled code, connections kept for later. */
const MEMORY_TOLERANCE = 32 * 1024 * 1024;
/** How long the last steps of an end may take: a folder that is removed, a lock that is given back. Patience: a machine may stand still for seconds. */
const SETTLE_MS = 15_000;

/** Waits a moment for what is just ending. */
export async function leftovers(stand: Stand): Promise<string[]> {
  // What died may have left a folder, which goes when another process is there in its place.
  await Promise.all(stand.processes.filter(({ isKept }) => isKept).map((process) => process.ready()));
  let found: string[] = [];
  await until(
    'nothing is left',
    async () => {
      found = [
        ...toolsOf(stand.folder),
        ...(await temporaryFiles(stand)),
        ...(await unfinishedInQueues(stand)),
        ...(await grownProcesses(stand)),
      ];
      return found.length === 0;
    },
    SETTLE_MS,
  ).catch(() => undefined);
  return found;
}

/**
 * A tool that runs, wherever it hangs in the tree: a killed worker's children have another parent. Not counted is a bwrap in
 * which no tool runs: when its first half dies in the millisecond before it lets the second half go, that one waits for ever.
 */
function toolsOf(folder: string): string[] {
  return processesOver(folder)
    .filter(({ words: [program = ''] }) => /(^|\/)(ffmpeg|ffprobe)$/.test(program))
    .map(({ pid, words }) => `process ${pid} is left: ${words.slice(0, 3).join(' ')} …`);
}

/**
 * Folders of processes that are no more are removed when the next one starts. A process has `<host>.<pid>.<start>`, with a
 * folder in it for each job or send.
 */
async function temporaryFiles(stand: Stand): Promise<string[]> {
  const root = join(stand.data, 'workspaces');
  const living = new Set(stand.processes.map(({ pid }) => String(pid)));
  const owners = await readdir(root).catch(() => []);
  const left = await Promise.all(
    owners.map(async (owner) => {
      const pid = /\.(\d+)\.\d+$/.exec(owner)?.[1] ?? '';
      if (!living.has(pid)) return [`workspaces/${owner} is of a dead process`];
      const work = await readdir(join(root, owner)).catch(() => []);
      return work.map((name) => `workspaces/${owner}/${name}`);
    }),
  );
  return left.flat().map((path) => `temporary files are left: ${path}`);
}

async function unfinishedInQueues(stand: Stand): Promise<string[]> {
  const redis = stand.redis.connect();
  try {
    const faults = (await redis.keys('{soundpost}:*:lock')).map((key) => `the lock ${key} is left`);
    for (const queue of ['extract', 'completion', 'webhook', 'voice']) {
      for (const list of ['active', 'wait', 'paused']) {
        const ids = await redis.lrange(`{soundpost}:${queue}:${list}`, 0, -1);
        if (ids.length > 0) faults.push(`${queue} still has ${list}: ${ids.join(', ')}`);
      }
      for (const set of ['prioritized', 'delayed', 'waiting-children']) {
        const ids = await redis.zrange(`{soundpost}:${queue}:${set}`, '0', '-1');
        if (ids.length > 0) faults.push(`${queue} still has ${set}: ${ids.join(', ')}`);
      }
    }
    return faults;
  } finally {
    redis.disconnect();
  }
}

/** Of those that run: a scenario may have let one go. */
async function grownProcesses(stand: Stand): Promise<string[]> {
  const running = stand.processes.filter(({ pid }) => isAlive(pid));
  const grown = await Promise.all(
    running.map(async (process) => {
      const level = stand.memoryLevels.get(process.name);
      if (level === undefined) return [];
      const now = await heldBytes(stand, process);
      return now > level + MEMORY_TOLERANCE
        ? [`${process.name} holds ${mib(now)} MiB, after its warm-up it held ${mib(level)} MiB`]
        : [];
    }),
  );
  return grown.flat();
}

function mib(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
