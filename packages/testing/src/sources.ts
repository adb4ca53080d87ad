/** Short media made by ffmpeg for the tests, each once on this machine. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { cachedMedia } from './media-cache.ts';

const SECONDS = 4;

const SPEECH =
  'flite=text=The sound post is a small piece of wood inside a violin that carries the sound from the top to the back';

/**
 * Chords with noise, wide in stereo and in the spectrum, so that encoders use the bitrate that they
 * are given.
 */
const MUSIC =
  "aevalsrc='0.2*sin(880*PI*t)+0.15*sin(1108.7*PI*t)+0.1*sin(1318.5*PI*t)*sin(3*t)+0.05*(random(0)*2-1)|" +
  "0.2*sin(660*PI*t)+0.15*sin(830.6*PI*t)+0.1*sin(988*PI*t)*cos(5*t)+0.05*(random(1)*2-1)':s=48000";

/** Louder than full scale: what a recording with the gain too high looks like. */
const CLIPPING = `${MUSIC},volume=14dB,aformat=sample_fmts=s16`;

const PICTURE = ['-f', 'lavfi', '-i', `testsrc2=s=96x64:r=25:d=${SECONDS}`];

function sound(graph: string, seconds = SECONDS): string[] {
  return ['-f', 'lavfi', '-t', String(seconds), '-i', graph];
}

/** A video with one track of sound. */
function video(graph: string, ...codecs: string[]): string[] {
  return [...PICTURE, ...sound(graph), '-map', '0:v', '-map', '1:a', '-shortest', ...codecs];
}

const STEREO_48K = ['-ac', '2', '-ar', '48000'];

/** ffmpeg's arguments for each source, by the name of its file. */
const recipes = {
  'aac.mp4': video(MUSIC, '-c:v', 'mpeg4', '-c:a', 'aac', '-b:a', '128k'),
  'opus.webm': video(
    MUSIC,
    '-c:v',
    'libvpx',
    '-deadline',
    'realtime',
    '-cpu-used',
    '8',
    '-c:a',
    'libopus',
    '-b:a',
    '96k',
  ),
  'flac.mkv': video(MUSIC, '-c:v', 'mpeg4', '-c:a', 'flac', '-sample_fmt', 's16'),
  'flac24.mkv': video(MUSIC, '-c:v', 'mpeg4', '-c:a', 'flac', '-sample_fmt', 's32'),
  'pcm.mov': video(MUSIC, '-c:v', 'mpeg4', '-c:a', 'pcm_s16le'),
  'ac3.ts': video(MUSIC, '-c:v', 'mpeg2video', '-c:a', 'ac3', '-b:a', '192k'),
  'mp3.avi': video(MUSIC, '-c:v', 'mpeg4', '-c:a', 'libmp3lame', '-b:a', '128k'),
  'vorbis.webm': video(
    MUSIC,
    '-c:v',
    'libvpx',
    '-deadline',
    'realtime',
    '-cpu-used',
    '8',
    '-c:a',
    'libvorbis',
    '-b:a',
    '96k',
  ),
  'mp3.mp3': [...sound(MUSIC), '-c:a', 'libmp3lame', '-b:a', '128k'],
  'adts.aac': [...sound(MUSIC), '-c:a', 'aac', '-b:a', '128k'],
  'speech.wav': [...sound(SPEECH), '-ar', '22050'],
  'speech.mp4': video(SPEECH, '-c:v', 'mpeg4', '-c:a', 'aac', '-b:a', '128k', ...STEREO_48K),
  'music.wav': sound(MUSIC),
  'clipping.wav': sound(CLIPPING),
  'silence.wav': sound('anullsrc=r=48000:cl=stereo', 2),
  'note.ogg': [...sound(SPEECH), '-c:a', 'libopus', '-ac', '1', '-b:a', '24k', '-application', 'voip'],
  'stereo.opus': [...sound(MUSIC), '-c:a', 'libopus', '-b:a', '96k'],
  'surround.mkv': [
    ...sound('anoisesrc=a=0.3:r=48000'),
    '-af',
    'pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0',
    '-c:a',
    'aac',
  ],
  'silent-video.mp4': [...PICTURE, '-c:v', 'mpeg4'],
  'phone.wav': sound('anoisesrc=a=0.3:r=8000', 2),
} as const;

export type SourceName = keyof typeof recipes;

export interface MediaFolder {
  readonly path: string;
  /** Absolute path of a file in the folder. */
  at(name: string): string;
  /** Path of a source, to be read only. */
  source(name: SourceName): Promise<string>;
  /** Copies sources into the folder. */
  place(...names: readonly SourceName[]): Promise<void>;
}

/** A temporary folder for the tests of a file, removed after them. */
export function mediaFolder(): MediaFolder {
  let path = '';
  beforeAll(async () => {
    path = await mkdtemp(join(tmpdir(), 'soundpost-media-'));
  });
  afterAll(async () => {
    await rm(path, { recursive: true, force: true });
  });
  const at = (name: string) => join(path, name);
  const source = (name: SourceName) => cachedMedia(name, recipes[name]);
  return {
    get path() {
      return path;
    },
    at,
    source,
    async place(...names) {
      for (const name of names) await copyFile(await source(name), at(name));
    },
  };
}
