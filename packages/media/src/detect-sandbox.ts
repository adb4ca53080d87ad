/** Which sandbox works on this machine: found out by running both tools in it, since an installed one may still be forbidden. */
import { release } from 'node:os';
import { versionsOf } from './abilities.ts';
import type { MediaTools } from './run.ts';
import type { Sandbox, SandboxLevel } from './sandbox.ts';

/** From here on Landlock also keeps a tool from signalling others (Documentation/userspace-api/landlock.rst, "Scope"). */
const SCOPED_SINCE = [6, 12] as const;

/** The first one that works is taken. Without user namespaces a run is one process instead of three, and begins 5 ms earlier. */
function candidates(hasStarter: boolean): readonly Sandbox[] {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const isScoped = major > SCOPED_SINCE[0] || (major === SCOPED_SINCE[0] && minor >= SCOPED_SINCE[1]);
  const levels: readonly SandboxLevel[] = isScoped ? ['landlock', 'bubblewrap'] : ['bubblewrap', 'landlock'];
  return levels
    .filter((level) => hasStarter || level !== 'landlock')
    .flatMap((level) => [false, true].map((showsSystem) => ({ level, hasLimits: true, showsSystem })));
}

const WALL_MS = 10_000;

/** Level `none` when nothing works, the tools included. @param wallLimitMs of each try */
export async function detectSandbox(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  for (const sandbox of candidates(tools.starterPath !== undefined)) {
    if (await works({ ...tools, sandbox }, wallLimitMs)) return sandbox;
  }
  return limitsAlone(tools, wallLimitMs);
}

/** Level `none`, with limits where something sets them. */
export async function limitsAlone(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  const sandbox = { level: 'none', hasLimits: true, showsSystem: true } as const;
  return (await works({ ...tools, sandbox }, wallLimitMs)) ? sandbox : { ...sandbox, hasLimits: false };
}

function works(tools: MediaTools, wallLimitMs: number): Promise<boolean> {
  return versionsOf(tools, { signal: new AbortController().signal, wallLimitMs }).then(
    () => true,
    () => false,
  );
}
