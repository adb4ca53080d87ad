/** Which sandbox works on this machine: found out by running ffprobe in it, since an installed one may still be forbidden. */
import { type MediaTools, runFfprobe } from './run.ts';
import type { Sandbox } from './sandbox.ts';

/** The first one that works is taken. */
const CANDIDATES: readonly Sandbox[] = [
  { level: 'bubblewrap', hasLimits: true },
  { level: 'bubblewrap', hasLimits: false },
  { level: 'namespaces', hasLimits: true },
  { level: 'namespaces', hasLimits: false },
  { level: 'none', hasLimits: true },
];

const WALL_MS = 10_000;
const STDOUT_BYTES = 64 * 1024;

/** Level `none` without limits when nothing works, ffprobe included. */
export async function detectSandbox(tools: Omit<MediaTools, 'sandbox'>): Promise<Sandbox> {
  for (const sandbox of CANDIDATES) {
    if (await works({ ...tools, sandbox })) return sandbox;
  }
  return { level: 'none', hasLimits: false };
}

async function works(tools: MediaTools): Promise<boolean> {
  try {
    await runFfprobe(tools, ['-version'], {
      signal: new AbortController().signal,
      wallLimitMs: WALL_MS,
      maxStdoutBytes: STDOUT_BYTES,
    });
    return true;
  } catch {
    return false;
  }
}
