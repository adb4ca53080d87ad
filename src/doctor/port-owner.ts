/** Who listens on a port, as /proc tells it (proc(5)): of processes of other users only to the administrator. */
import { readdir, readFile, readlink } from 'node:fs/promises';

export interface Owner {
  readonly pid: number;
  /** The first words of its command, without options: one may be a password. */
  readonly command: string;
}

/** The state TCP_LISTEN in /proc/net/tcp. */
const LISTENING = '0A';
const SHOWN_WORDS = 3;

/** undefined where there is no /proc, or where it does not tell. */
export async function ownerOf(port: number): Promise<Owner | undefined> {
  const sockets = new Set((await inodesOf(port)).map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return undefined;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const targets = await Promise.all(
      descriptors.map((descriptor) => readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')),
    );
    if (targets.some((target) => sockets.has(target))) {
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
      const end = words.slice(0, SHOWN_WORDS).findIndex((word) => word === '' || word.startsWith('-'));
      return { pid: Number(pid), command: words.slice(0, end === -1 ? SHOWN_WORDS : end).join(' ') };
    }
  }
  return undefined;
}

async function inodesOf(port: number): Promise<string[]> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  return tables
    .flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)))
    .flatMap(([, local = '', , state, , , , , , inode]) =>
      local.endsWith(`:${hex}`) && state === LISTENING && inode !== undefined ? [inode] : [],
    );
}
