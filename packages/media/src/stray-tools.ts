/**
 * Tools that outlived their process. A parent-death signal ends them, but bubblewrap's inner half
 * has none until the outer half releases it: if that is killed before, the inner half waits for
 * ever.
 */
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

const TOOLS = new Set(['bwrap', 'ffmpeg', 'ffprobe']);

/**
 * Ends the tools of a dead owner, by its folder: no other process has it in its arguments.
 * Does nothing on systems without /proc.
 */
export async function endStrayTools(folder: string): Promise<void> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (TOOLS.has(basename(words[0] ?? '')) && words.some((word) => isIn(folder, word))) {
      end(Number(pid));
    }
  }
}

/** An argument of ffmpeg's may be `file:/path`. */
function isIn(folder: string, word: string): boolean {
  const path = word.slice(Math.max(0, word.indexOf('/')));
  return path === folder || path.startsWith(`${folder}/`);
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended, or belongs to another user.
  }
}
