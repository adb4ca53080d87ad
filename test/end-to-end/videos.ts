/** Short videos for whole runs, made once for a test file. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { afterAll, beforeAll } from 'vitest';

const SPEECH = "flite=text='The sound post carries the sound from the top of a violin to its back'";

export interface Videos {
  readonly folder: string;
  /** Some seconds of speech, with a picture. */
  readonly talk: string;
  /** So much sound that ffmpeg is busy with it for a while. */
  readonly long: string;
}

/** @param options.long whether a test needs the long one */
export function useVideos({ long = false }: { long?: boolean } = {}): Videos {
  let folder = '';
  const make = async (name: string, args: readonly string[]) =>
    copyFile(await cachedMedia(name, args), join(folder, name));
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'soundpost-videos-'));
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=96x64:r=25'];
    const encode = ['-shortest', '-c:v', 'mpeg4', '-c:a', 'aac', '-b:a', '96k', '-ar', '48000'];
    await make('talk.mp4', [...picture, '-f', 'lavfi', '-i', SPEECH, ...encode]);
    if (long) {
      await make('long.wav', ['-f', 'lavfi', '-i', 'anoisesrc=a=0.2:r=8000:d=600', '-c:a', 'pcm_s16le']);
    }
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    get talk() {
      return join(folder, 'talk.mp4');
    },
    get long() {
      return join(folder, 'long.wav');
    },
  };
}
