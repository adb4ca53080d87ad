/** Where ffmpeg, ffprobe and the starter are on this machine. */
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dieWithParent, findProgram } from 'soundpost-base/launcher';
import type { FoundTools } from './run.ts';

/** Where script/ffmpeg puts what it builds for this checkout. */
const BUILT = fileURLToPath(new URL('../../../.ffmpeg/bin/', import.meta.url));

/**
 * The ffmpeg and ffprobe to use: those that are asked for, of script/ffmpeg, or the first on the PATH.
 * @param wantedPath FFMPEG_PATH: a path, or a name on the PATH
 */
export function findTools(wantedPath: string | undefined, searchPath: string): FoundTools {
  const built = wantedPath === undefined ? findProgram('ffmpeg', BUILT) : undefined;
  const ffmpegPath = built ?? findProgram(wantedPath ?? 'ffmpeg', searchPath);
  const beside = ffmpegPath === undefined ? [] : [dirname(ffmpegPath)];
  const ffprobePath = findProgram('ffprobe', [...beside, searchPath].join(delimiter));
  if (ffmpegPath !== undefined && ffprobePath !== undefined) {
    const launcher = dieWithParent('KILL', searchPath);
    return {
      tools: { ffmpegPath, ffprobePath, launcher, starterPath: findStarter(searchPath) },
      isBuiltHere: built !== undefined,
    };
  }
  if (wantedPath?.includes('/')) {
    return {
      tools: undefined,
      missing: `there is no ffmpeg with an ffprobe at FFMPEG_PATH (${wantedPath})`,
    };
  }
  const names = [
    ...(ffmpegPath === undefined ? ['ffmpeg'] : []),
    ...(ffprobePath === undefined ? ['ffprobe'] : []),
  ];
  const missing = `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} not on the PATH`;
  return { tools: undefined, missing };
}

/** The program that starts the tools (decision 35), where it is built. */
export function findStarter(searchPath: string): string | undefined {
  return findProgram('soundpost-start', [BUILT, searchPath].join(delimiter));
}
