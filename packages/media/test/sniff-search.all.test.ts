/** Where ffmpeg with the right demuxer decodes a head that was changed, that demuxer is found. */
import { readFile, writeFile } from 'node:fs/promises';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { ffmpeg } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { bytesSource, sniffContainer } from '../src/sniff.ts';

const HEADS = 2_000;
const AT_A_TIME = 4;

const folder = mediaFolder();

interface Sample {
  readonly demuxer: string;
  readonly bytes: Buffer;
  /** How far apart its sync bytes are, about. */
  readonly step: number;
}

async function made(file: string, demuxer: string, step: number, ...options: string[]): Promise<Sample> {
  const sound = ['-f', 'lavfi', '-i', 'anoisesrc=d=0.5:r=48000:a=0.2:seed=1'];
  const bytes = await readFile(await cachedMedia(file, [...sound, '-ac', '1', ...options]));
  return { demuxer, bytes, step };
}

async function samples(): Promise<Sample[]> {
  const raw = ['-ac', '2', '-strict', '-2'];
  const picture = ['-f', 'lavfi', '-i', 'testsrc=s=720x576:r=25:d=0.5', '-pix_fmt', 'yuv420p'];
  const fragments = ['-movflags', 'frag_keyframe+empty_moov+default_base_moof'];
  const packets = await made('a.ts', 'mpegts', 188);
  // ffmpeg encodes no layer I: 48 kHz, 384 kbit/s, silence
  const frame = Buffer.concat([Buffer.from('ffffc404', 'hex'), Buffer.alloc(380)]);
  return [
    await made('a.mp3', 'mp3', 384, '-b:a', '128k', '-id3v2_version', '0'),
    await made('a.mp2', 'mp3', 384, '-b:a', '128k'),
    { demuxer: 'mp3', bytes: Buffer.alloc(60 * frame.length, frame), step: frame.length },
    await made('a.aac', 'aac', 180),
    await made('a.latm', 'loas', 180),
    await made('a.ac3', 'ac3', 384, '-b:a', '96k'),
    await made('a.eac3', 'eac3', 384, '-b:a', '96k'),
    await made('a.dts', 'dts', 1024, '-c:a', 'dca', '-b:a', '768k', ...raw),
    await made('a.thd', 'truehd', 200, ...raw),
    await made('a.mlp', 'mlp', 200, ...raw, '-c:a', 'mlp', '-f', 'mlp'),
    await made('a.dv', 'dv', 12_000, ...picture, '-ac', '2', '-f', 'dv'),
    await made('a.flac', 'flac', 6_000),
    packets,
    await made('a.m2ts', 'mpegts', 192, '-mpegts_m2ts_mode', '1'),
    { ...packets, bytes: withErrorCorrection(packets.bytes), step: 204 },
    await made('a.mpg', 'mpeg', 2048),
    await made('a.ogg', 'ogg', 4_000),
    await made('a.mxf', 'mxf', 512, '-f', 'mxf_opatom'),
    await made('a.flv', 'flv', 180, '-ar', '44100'),
    await made('a.mp4', 'mov', 8),
    await made('fragments.mp4', 'mov', 8, ...fragments),
    await made('a.mkv', 'matroska', 8),
    await made('a.wav', 'wav', 8),
    await made('a.caf', 'caf', 8),
  ];
}

function withErrorCorrection(packets: Buffer): Buffer {
  const count = Math.floor(packets.length / 188);
  const all = Array.from({ length: count }, (_, nth) => packets.subarray(nth * 188, (nth + 1) * 188));
  return Buffer.concat(all.flatMap((packet) => [packet, Buffer.alloc(16)]));
}

type Random = (below: number) => number;

function seeded(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const noise = (random: Random, length: number) => Buffer.from(Array.from({ length }, () => random(256)));

function id3(size: number): Buffer {
  const digits = [21, 14, 7, 0].map((shift) => (size >> shift) & 0x7f);
  return Buffer.concat([Buffer.from('ID3\x03\0\0', 'latin1'), Buffer.from(digits), Buffer.alloc(size)]);
}

function apeTag(size: number): Buffer {
  const tag = Buffer.alloc(32 + size, 1);
  tag.write('APETAGEX');
  [2000, size, 0, 0xa0000000].forEach((value, nth) => {
    tag.writeUInt32LE(value, 8 + 4 * nth);
  });
  return tag;
}

function box(random: Random): Buffer {
  const bytes = noise(random, 8 + random(3000));
  bytes.writeUInt32BE(bytes.length);
  bytes.write(['styp', 'sidx', 'uuid', 'emsg', 'udta', 'junk'][random(6)] ?? '', 4, 'latin1');
  return bytes;
}

const MUTATIONS: Readonly<Record<string, (sample: Sample, random: Random) => Buffer>> = {
  cut: ({ bytes }, random) => bytes.subarray(1 + random(bytes.length / 2)),
  junk: ({ bytes }, random) => Buffer.concat([noise(random, 1 + random(6000)), bytes]),
  zeros: ({ bytes }, random) => Buffer.concat([Buffer.alloc(1 + random(6000)), bytes]),
  id3: ({ bytes }, random) => Buffer.concat([id3(random(300_000)), id3(random(2000)), bytes]),
  ape: ({ bytes }, random) => Buffer.concat([apeTag(random(9000)), bytes]),
  icy: ({ bytes }, random) =>
    Buffer.concat([Buffer.from(`ICY 200 OK\r\nicy-name:${random(1e9)}\r\n\r\n`), bytes]),
  box: ({ bytes }, random) => Buffer.concat([box(random), bytes]),
  damage: ({ bytes, step }, random) => {
    const damaged = Buffer.from(bytes);
    const at = Math.min(step * random(4) + random(4), bytes.length - 1);
    damaged[at] = (damaged[at] ?? 0) ^ (1 + random(255));
    return damaged;
  },
};

it('where ffmpeg decodes, so does the service', { timeout: 1_200_000 }, async () => {
  const all = await samples();
  const random = seeded(7);
  const kinds = Object.entries(MUTATIONS);
  const differing: { name: string; demuxer: string; bytes: Buffer }[] = [];
  for (let nth = 0; nth < HEADS; nth += 1) {
    const sample = all[nth % all.length];
    const kind = kinds[Math.floor(nth / all.length) % kinds.length];
    if (sample === undefined || kind === undefined) throw new Error('a row that is none');
    const bytes = kind[1](sample, random);
    const found = (await sniffContainer(bytesSource(bytes)))?.demuxer;
    if (found !== sample.demuxer)
      differing.push({
        name: `${nth}: ${sample.demuxer}, ${kind[0]}: ${found}`,
        demuxer: sample.demuxer,
        bytes,
      });
  }
  const missed: string[] = [];
  const ask = async (): Promise<void> => {
    for (let next = differing.pop(); next !== undefined; next = differing.pop()) {
      if (await decodes(next)) missed.push(next.name);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, ask));
  expect(missed).toEqual([]);
});

async function decodes({ name, demuxer, bytes }: { name: string; demuxer: string; bytes: Buffer }) {
  const file = folder.at(`${Number.parseInt(name, 10)}.head`);
  await writeFile(file, bytes);
  const to = ['-map', '0:a', '-c:a', 'pcm_s16le', '-f', 's16le', '-'];
  const samplesOf = ffmpeg('-v', 'quiet', '-f', demuxer, '-i', file, ...to);
  return (await samplesOf.catch(() => ({ stdout: Buffer.alloc(0) }))).stdout.length > 0;
}
