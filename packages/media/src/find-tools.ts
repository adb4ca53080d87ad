/** Where ffmpeg, ffprobe and the starter are on this machine. */
import { delimiter, dirname } from 'node:path';
import { dieWithParent, findProgram } from 'soundpost-base/launcher';
import type { FoundTools } from './run.ts';

/**
 * The ffmpeg and ffprobe to use: the requested ones, those in `builtFolder`, or the first on PATH.
 * @param wantedPath a path, or a name on the PATH
 * @param builtFolder where script/ffmpeg has put what it builds; default: nowhere
 */
export function findTools(
  wantedPath: string | undefined,
  searchPath: string,
  builtFolder?: string,
): FoundTools {
  const isBuiltMeant = wantedPath === undefined && builtFolder !== undefined;
  const built = isBuiltMeant ? findProgram('ffmpeg', builtFolder) : undefined;
  const ffmpegPath = built ?? findProgram(wantedPath ?? 'ffmpeg', searchPath);
  const beside = ffmpegPath === undefined ? [] : [dirname(ffmpegPath)];
  const ffprobePath = findProgram('ffprobe', [...beside, searchPath].join(delimiter));
  if (ffmpegPath !== undefined && ffprobePath !== undefined) {
    const launcher = dieWithParent('KILL', searchPath);
    return {
      tools: { ffmpegPath, ffprobePath, launcher, starterPath: findStarter(searchPath, builtFolder) },
      isBuiltHere: built !== undefined,
    };
  }
  if (wantedPath?.includes('/')) {
    return {
      tools: undefined,
      missing: `there is no ffmpeg with an ffprobe at ${wantedPath}`,
    };
  }
  const names = [
    ...(ffmpegPath === undefined ? ['ffmpeg'] : []),
    ...(ffprobePath === undefined ? ['ffprobe'] : []),
  ];
  const missing = `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} not on the PATH`;
  return { tools: undefined, missing };
}

/** The built program that starts tools (decision 35). @param builtFolder see {@link findTools} */
export function findStarter(searchPath: string, builtFolder?: string): string | undefined {
  const folders = builtFolder === undefined ? [searchPath] : [builtFolder, searchPath];
  return findProgram('soundpost-start', folders.join(delimiter));
}
