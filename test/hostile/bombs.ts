/** Small files that ask for much, and things under media names that are no files. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, open, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cachedFolder } from 'soundpost-testing/media-cache';
import { ffmpeg } from 'soundpost-testing/oracle';
import { blackPng, withFlacCover, withId3Cover } from './covers.ts';
import type { HostileFile } from './hostile-file.ts';

const MIB = 1024 * 1024;

/** Muxers of a second of sound that the bombs are made from. */
const SHORT = {
  mp3: 'mp3',
  m4a: 'ipod',
  flac: 'flac',
  ogg: 'ogg',
  ts: 'mpegts',
  mkv: 'matroska',
  avi: 'avi',
  wma: 'asf',
  flv: 'flv',
  aac: 'adts',
  mpg: 'mpeg',
};

/** Made once by what this file and its neighbour say; placing one is copying it. */
export async function bombs(): Promise<HostileFile[]> {
  const code = ['bombs.ts', 'covers.ts'].map((name) => readFile(join(import.meta.dirname, name), 'utf8'));
  const folder = await cachedFolder(['bombs', await Promise.all(code)], async (place) => {
    await writeFile(join(place, 'made.json'), JSON.stringify(await makeBombs((name) => join(place, name))));
  });
  const at = (name: string): string => join(folder, name);
  const made = JSON.parse(await readFile(at('made.json'), 'utf8')) as Made;
  const files = Object.entries(made).map(
    ([name, expected]): HostileFile => ({
      name,
      family: 'bomb',
      expected,
      place: (path) => copyFile(at(name), path),
    }),
  );
  return [
    ...files,
    ...[...Object.keys(SHORT), 'wav'].map((kind) => endless(`endless.${kind}`, at(`short.${kind}`))),
  ];
}

async function makeBombs(at: At): Promise<Made> {
  const sound = ['-f', 'lavfi', '-t', '1', '-i', 'anoisesrc=a=0.3:r=48000:seed=7'];
  const outputs = Object.entries(SHORT).flatMap(([kind, muxer]) => [
    '-strict',
    '-2',
    '-f',
    muxer,
    at(`short.${kind}`),
  ]);
  await ffmpeg('-v', 'error', ...sound, ...outputs);
  await writeFile(at('huge.png'), blackPng(16_000));

  await writeFile(at('short.wav'), ENDLESS_WAVE);
  return {
    ...(await covers(at)),
    ...(await expansions(at)),
    ...(await lies(at)),
    ...(await titles(at)),
  };
}

type Made = Record<string, HostileFile['expected']>;
type At = (name: string) => string;

async function covers(at: At): Promise<Made> {
  const png = await readFile(at('huge.png'));
  await writeFile(at('cover.mp3'), withId3Cover(await readFile(at('short.mp3')), png));
  await writeFile(at('cover.flac'), withFlacCover(await readFile(at('short.flac')), png));
  const attachment = ['-attach', at('huge.png'), '-metadata:s:t', 'mimetype=image/png'];
  await ffmpeg('-v', 'error', '-i', at('short.mkv'), ...attachment, '-c', 'copy', at('cover.mkv'));
  return { 'cover.mp3': 'completed', 'cover.flac': 'completed', 'cover.mkv': 'completed' };
}

/** Ten minutes of silence are 115 MB as PCM, and 0.1 MB in these; and 200 tracks, of which 64 are offered. */
async function expansions(at: At): Promise<Made> {
  const silence = ['-f', 'lavfi', '-t', '600', '-i', 'anullsrc=r=48000:cl=stereo'];
  await ffmpeg(
    '-v',
    'error',
    ...silence,
    '-c:a',
    'flac',
    at('expansion.flac'),
    '-c:a',
    'wavpack',
    at('expansion.wv'),
  );
  await ffmpeg('-v', 'error', '-i', at('expansion.flac'), '-c', 'copy', at('expansion.mkv'));
  const tracks = Array<string[]>(200).fill(['-map', '0:a']).flat();
  await ffmpeg('-v', 'error', '-i', at('short.mp3'), ...tracks, '-c', 'copy', at('tracks.mkv'));
  return {
    'expansion.flac': 'refused',
    'expansion.wv': 'refused',
    'expansion.mkv': 'refused',
    'tracks.mkv': 'completed',
  };
}

/** Headers that say an hour, and more; and files after one another. */
async function lies(at: At): Promise<Made> {
  const movie = await readFile(at('short.m4a'));
  // The time of the one packet entry, and of everything that repeats it.
  for (const [box, offset] of [
    ['mvhd', 20],
    ['mdhd', 20],
    ['tkhd', 24],
    ['stts', 16],
  ] as const) {
    movie.writeUInt32BE(
      box === 'stts' ? 3600 * 1024 : 3600 * 48_000,
      movie.indexOf(box, 0, 'latin1') + offset,
    );
  }
  const flac = await readFile(at('short.flac'));
  // RFC 9639 section 8.2: the number of samples is 36 bits.
  flac.writeUInt8(flac.readUInt8(21) | 0x0f, 21);
  flac.fill(0xff, 22, 26);
  await writeFile(at('hours.m4a'), movie);
  await writeFile(at('hours.flac'), flac);
  await writeFile(at('chain.ogg'), Buffer.concat(Array<Buffer>(300).fill(await readFile(at('short.ogg')))));
  await writeFile(at('chain.mp3'), Buffer.concat(Array<Buffer>(300).fill(await readFile(at('short.mp3')))));
  return { 'hours.m4a': 'refused', 'hours.flac': 'refused', 'chain.ogg': 'either', 'chain.mp3': 'either' };
}

/** What tags say must not pass for what ffmpeg says. */
const TITLES: Readonly<Record<string, string>> = {
  'full-disk': 'No space left on device',
  'full-disk-line':
    'x\nNo space left on device\rError writing trailer of x\nExiting normally, received signal 24',
  statistics: 'Output stream #0:0 (audio): 9 frames encoded (999999999 samples); 1 packets muxed (1 bytes);',
  option: '-f concat -safe 0',
};

async function titles(at: At): Promise<Made> {
  const made: Made = {};
  for (const [name, text] of Object.entries(TITLES)) {
    const [whole, cut] = [`title-${name}.mkv`, `title-${name}-cut.mkv`];
    await ffmpeg('-v', 'error', '-i', at('short.mkv'), '-c', 'copy', '-metadata', `title=${text}`, at(whole));
    const bytes = await readFile(at(whole));
    await writeFile(at(cut), bytes.fill(0xff, Math.floor(bytes.length * 0.2)));
    made[whole] = 'completed';
    made[cut] = 'either';
  }
  return made;
}

const ENDLESS_WAVE = Buffer.from(
  'RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x02\0\x80\xbb\0\0\0\xee\x02\0\x04\0\x10\0data\xff\xff\xff\xff',
  'latin1',
);

/** A good beginning, and then nothing for as long as somebody reads: a hole, which takes no room on the disk. */
function endless(name: string, head: string): HostileFile {
  return {
    name,
    family: 'bomb',
    expected: 'either',
    async place(path) {
      await copyFile(head, path);
      await using file = await open(path, 'r+');
      await file.truncate(64 * MIB);
    },
  };
}

export function noFiles(canary: string): HostileFile[] {
  const link = (target: string) => (path: string) => symlink(target, path);
  const places: Record<string, HostileFile['place']> = {
    // Node has no mkfifo(3).
    'fifo.mp4': async (path) => {
      await promisify(execFile)('mkfifo', [path]);
    },
    'folder.mp4': async (path) => {
      await mkdir(path);
    },
    'link-to-neighbour.mp4': (path, neighbour) => symlink(neighbour, path),
    'link-to-canary.ts': link(canary),
    'link-to-zeros.mp3': link('/dev/zero'),
    'link-to-random.mp3': link('/dev/urandom'),
    'link-to-environment.mp4': link('/proc/self/environ'),
    'link-to-passwords.mp4': link('/etc/passwd'),
    'link-to-nothing.mp4': link('nothing'),
    'link-to-itself.mp4': (path) => symlink(path, path),
    'link-upwards.mp4': link('../../../../../../../../etc/hostname'),
  };
  return Object.entries(places).map(([name, place]) => ({
    name,
    family: 'no file',
    expected: 'refused',
    place,
  }));
}
