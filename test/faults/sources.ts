/** The videos that jobs of a stand take their sound from. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedMedia } from 'soundpost-testing/media-cache';

/** Seconds of sound in each: what a result of it must have too. */
export const sourceSeconds = {
  /** A small video with a picture: done in half a second. */
  'talk.mp4': 3,
  /** So much sound that ffmpeg is busy with it for some seconds. */
  'long.wav': 600,
} as const;
export type SourceName = keyof typeof sourceSeconds;

export async function makeSources(folder: string): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=96x64:r=25'];
  const tone = ['-f', 'lavfi', '-i', `sine=440:r=48000:d=${sourceSeconds['talk.mp4']}`];
  // With a tag that only ffprobe reads: faults are placed before its run, and in it.
  const encode = ['-shortest', '-c:v', 'mpeg4', '-c:a', 'aac', '-b:a', '96k', '-metadata', 'track=1'];
  const noise = ['-f', 'lavfi', '-i', `anoisesrc=a=0.2:r=8000:d=${sourceSeconds['long.wav']}`];
  const make = async (name: SourceName, args: readonly string[]) =>
    copyFile(await cachedMedia(name, args), join(folder, name));
  await Promise.all([
    make('talk.mp4', [...picture, ...tone, ...encode]),
    make('long.wav', [...noise, '-c:a', 'pcm_s16le']),
  ]);
}
