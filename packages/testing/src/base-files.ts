/** What the corpus is made from: 12 containers × 8 codecs, each half a second long. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { cachedFolder } from './media-cache.ts';
import { ffmpeg } from './oracle.ts';

/** Extension and muxer. */
const CONTAINERS = {
  mp4: 'mp4',
  mov: 'mov',
  mkv: 'matroska',
  webm: 'webm',
  ogg: 'ogg',
  wav: 'wav',
  avi: 'avi',
  flv: 'flv',
  ts: 'mpegts',
  wma: 'asf',
  caf: 'caf',
  aiff: 'aiff',
} as const;

/** ffmpeg's encoders. */
const CODECS = {
  aac: 'aac',
  mp3: 'libmp3lame',
  opus: 'libopus',
  vorbis: 'libvorbis',
  flac: 'flac',
  ac3: 'ac3',
  pcm: 'pcm_s16le',
  alac: 'alac',
} as const;

/**
 * What ffmpeg writes and cannot read: a transport stream has no numbers for these, and AVI and CAF
 * lose FLAC's headers.
 */
const UNREADABLE = new Set(['vorbis.ts', 'flac.ts', 'pcm.ts', 'alac.ts', 'flac.avi', 'flac.caf']);

export interface BaseFile {
  readonly name: string;
  readonly bytes: Buffer;
  /**
   * Whether it is a good file; otherwise a container's head with the bytes of a codec after it that
   * it does not take.
   */
  readonly isGood: boolean;
}

const SPLICED_HEAD_BYTES = 600;

export type Codec = keyof typeof CODECS;

export const allCodecs = Object.keys(CODECS) as readonly Codec[];

/** Together they fit into every container. */
export const fewCodecs: readonly Codec[] = ['aac', 'opus', 'pcm'];

export async function baseFiles(codecs = allCodecs): Promise<BaseFile[]> {
  const made = await Promise.all(
    codecs.map(async (codec) => {
      const files = new Map<string, Buffer>();
      const recipe = ['base files', CODECS[codec], CONTAINERS];
      const folder = await cachedFolder(recipe, async (place) => {
        for (const [extension, muxer] of Object.entries(CONTAINERS)) {
          await encode(CODECS[codec], muxer, join(place, `${codec}.${extension}`));
        }
      });
      for (const name of await readdir(folder)) {
        files.set(extname(name).slice(1), await readFile(join(folder, name)));
      }
      return { codec, files };
    }),
  );
  return made.flatMap(({ codec, files }) =>
    Object.keys(CONTAINERS).map((extension): BaseFile => {
      const name = `${codec}.${extension}`;
      const bytes = files.get(extension);
      if (bytes !== undefined) return { name, bytes, isGood: !UNREADABLE.has(name) };
      const head = made.map((other) => other.files.get(extension)).find((other) => other !== undefined);
      const body = files.get('mkv');
      if (head === undefined || body === undefined) throw new Error(`ffmpeg makes no ${extension} at all`);
      return {
        name: `spliced-${name}`,
        bytes: Buffer.concat([head.subarray(0, SPLICED_HEAD_BYTES), body.subarray(SPLICED_HEAD_BYTES)]),
        isGood: false,
      };
    }),
  );
}

/** Nothing where the container does not take the codec. */
async function encode(encoder: string, muxer: string, path: string): Promise<void> {
  const sound = ['-f', 'lavfi', '-t', '0.5', '-i', 'anoisesrc=a=0.3:r=48000:seed=7'];
  try {
    await ffmpeg('-v', 'error', ...sound, '-c:a', encoder, '-strict', '-2', '-f', muxer, path);
  } catch {
    await rm(path, { force: true });
  }
}
