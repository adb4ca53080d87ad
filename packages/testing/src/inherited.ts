/** What every process of the service that a test starts has in its environment. */
import { join } from 'node:path';

const { FFMPEG_PATH } = process.env;

export const inherited = {
  // Where Node keeps what it compiled: it halves what a start costs, as script/env.sh has it, and
  // tests start hundreds of processes.
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../../node_modules', '.cache', 'compiled'),
  // `FFMPEG_PATH=ffmpeg script/test` runs the tests on the system's ffmpeg instead of
  // script/ffmpeg's.
  ...(FFMPEG_PATH === undefined ? {} : { FFMPEG_PATH }),
};
