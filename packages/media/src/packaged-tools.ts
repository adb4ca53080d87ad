/**
 * Our own ffmpeg, ffprobe and starter as an optional npm package, one for each machine (decision
 * 49).
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { findTools, versionsOf } from './abilities.ts';

/** A package for each kind of machine. */
export const TOOLS_PACKAGES = ['soundpost-tools-linux-x64', 'soundpost-tools-linux-arm64'] as const;

/** Of this machine; undefined where there is none. */
export const TOOLS_PACKAGE = TOOLS_PACKAGES.find((name) =>
  name.endsWith(`-${process.platform}-${process.arch}`),
);

interface PackagedTools {
  /** Where they are; undefined if they are not installed, do not fit or do not run. */
  readonly folder?: string;
  /** Why the installed ones are not used, as a sentence. */
  readonly fault?: string;
}

const Manifest = z.object({ version: z.string(), ffmpeg: z.string() });

/** Long enough for a busy machine. */
const WALL_MS = 10_000;

/**
 * The installed package is used if it has our version and both tools run and say the version that
 * it records. @param version that it has to have @param from the module that npm installed it for
 */
export async function packagedTools(
  version: string,
  searchPath: string,
  from: string = import.meta.url,
): Promise<PackagedTools> {
  if (TOOLS_PACKAGE === undefined) return {};
  let path: string;
  try {
    path = createRequire(from).resolve(`${TOOLS_PACKAGE}/package.json`);
  } catch {
    return {};
  }
  try {
    const manifest = Manifest.parse(JSON.parse(await readFile(path, 'utf8')));
    if (manifest.version !== version) throw new Error(`it is ${manifest.version}, not ${version}`);
    const folder = join(dirname(path), 'bin');
    const { tools } = findTools(join(folder, 'ffmpeg'), searchPath, folder);
    if (tools === undefined || dirname(tools.ffprobePath) !== folder) throw new Error('files are missing');
    const said = await versionsOf(tools, { signal: new AbortController().signal, wallLimitMs: WALL_MS });
    if (said.ffmpeg !== manifest.ffmpeg || said.ffprobe !== manifest.ffmpeg)
      throw new Error(`its tools say ${said.ffmpeg} and ${said.ffprobe}, not ${manifest.ffmpeg}`);
    return { folder };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { fault: `${TOOLS_PACKAGE} is installed, but not used: ${why}` };
  }
}
