/** Which ffmpeg and ffprobe are used. */
import { findTools } from '../src/processes/tools.ts';

function toolsOf(FFMPEG_PATH: string | undefined) {
  const found = findTools({ FFMPEG_PATH });
  if (found.tools === undefined) throw new Error(found.missing);
  return found.tools;
}

/** By the service under test, without a sandbox. */
export const mediaTools = toolsOf(process.env.FFMPEG_PATH);

/** By tests that make sources: it has what makes sounds and pictures out of nothing. */
export const systemTools = toolsOf('ffmpeg');
