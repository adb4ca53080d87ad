/** Which sandbox works on this machine: found out by running both tools in it, since an installed one may still be forbidden. */
import { versionsOf } from './abilities.ts';
import type { MediaTools } from './run.ts';
import type { Sandbox } from './sandbox.ts';

/** The first one that works is taken; one whose program is not there does not. */
const CANDIDATES: readonly Sandbox[] = (['bubblewrap', 'landlock'] as const).flatMap((level) =>
  [false, true].map((showsSystem) => ({ level, hasLimits: true, showsSystem })),
);

const WALL_MS = 10_000;

/** Level `none` when nothing works, the tools included. @param wallLimitMs of each try */
export async function detectSandbox(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  for (const sandbox of CANDIDATES) {
    if (await works({ ...tools, sandbox }, wallLimitMs)) return sandbox;
  }
  return limitsAlone(tools, wallLimitMs);
}

/** Level `none`, with limits where there is a prlimit. */
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
