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

/** Level `none` without limits when nothing works, ffprobe included. @param wallLimitMs of each try */
export async function detectSandbox(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  for (const sandbox of CANDIDATES) {
    if (await works({ ...tools, sandbox }, wallLimitMs)) return sandbox;
  }
  return { level: 'none', hasLimits: false };
}

async function works(tools: MediaTools, wallLimitMs: number): Promise<boolean> {
  try {
    await runFfprobe(tools, ['-version'], {
      signal: new AbortController().signal,
      wallLimitMs,
      maxStdoutBytes: STDOUT_BYTES,
    });
    return true;
  } catch {
    return false;
  }
}
