/** Which ffmpeg and ffprobe are used. */
import { findTools } from 'soundpost-media/abilities';
import { BUILT_FOLDER } from './needs.ts';

function toolsOf(FFMPEG_PATH: string | undefined) {
  const found = findTools(FFMPEG_PATH, process.env.PATH ?? '', BUILT_FOLDER);
  if (found.tools === undefined) throw new Error(found.missing);
  return found.tools;
}

/** By the service under test, without a sandbox. */
export const mediaTools = toolsOf(process.env.FFMPEG_PATH);

/** Those with a line of shell before each run of ffmpeg. */
function withBefore(line: string): typeof mediaTools {
  const script = `case $1 in */ffmpeg) ${line};; esac; exec "$@"`;
  const launcher = [...mediaTools.launcher, '/bin/sh', '-c', script, 'sh'];
  return { ...mediaTools, starterPath: undefined, launcher };
}

/**
 * A run of ffmpeg stops itself before it begins, until SIGCONT: whoever looks finds it, however
 * late.
 */
export const stoppingTools = withBefore('kill -STOP $$');

/**
 * ffmpeg reads no faster than so many times real time: a run lasts as long. It writes 256 KiB at a
 * time.
 */
export function pacedTools(readRate: number): typeof mediaTools {
  return withBefore(`tool=$1; shift; set -- "$tool" -readrate ${readRate} "$@"`);
}

/** ffmpeg reads no faster than the sound plays: a run is there for as long as the sound is. */
export const realTimeTools = pacedTools(1);

/** By tests that make sources: it has what makes sounds and pictures out of nothing. */
export const systemTools = toolsOf('ffmpeg');
