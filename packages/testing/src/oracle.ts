/**
 * What a media file is, asked of ffmpeg and ffprobe directly: nothing of src/ is used here, so that
 * the code under test cannot agree with itself. What is asked about a cached source is asked once;
 * 16-bit WAV is read without ffmpeg.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cachedFolder, namesCached } from './media-cache.ts';

const run = promisify(execFile);
const MAX_BUFFER = 256 * 1024 * 1024;

interface Said {
  readonly stdout: Buffer;
  readonly stderr: string;
}

export async function ffmpeg(...args: string[]): Promise<Said> {
  return runTool('ffmpeg', ['-nostdin', '-hide_banner', '-y', ...args]);
}

async function runTool(tool: 'ffmpeg' | 'ffprobe', args: readonly string[]): Promise<Said> {
  const { stdout, stderr } = await run(tool, args, { encoding: 'buffer', maxBuffer: MAX_BUFFER });
  return { stdout, stderr: stderr.toString() };
}

/** What a tool says of a file, without writing one. */
async function ask(tool: 'ffmpeg' | 'ffprobe', ...args: readonly string[]): Promise<Said> {
  const all = tool === 'ffmpeg' ? ['-nostdin', '-hide_banner', ...args] : args;
  if (!namesCached(all)) return runTool(tool, all);
  const folder = await cachedFolder(['answer', tool, all], async (path) => {
    const { stdout, stderr } = await runTool(tool, all);
    await writeFile(join(path, 'stdout'), stdout);
    await writeFile(join(path, 'stderr'), stderr);
  });
  const [stdout, stderr] = await Promise.all(
    ['stdout', 'stderr'].map((name) => readFile(join(folder, name))),
  );
  return { stdout: stdout ?? Buffer.alloc(0), stderr: String(stderr) };
}

/** What lies in a WAV of 16-bit samples. null: it is none. */
async function pcmOf(file: string) {
  const isFile = await stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
  if (!isFile) return null;
  const bytes = await readFile(file);
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE') return null;
  let format = { tag: 0, channels: 0, sampleRate: 0, bits: 0 };
  for (let at = 12; at + 8 <= bytes.length; ) {
    const [name, size] = [bytes.toString('latin1', at, at + 4), bytes.readUInt32LE(at + 4)];
    const body = at + 8;
    if (name === 'fmt ') {
      format = {
        ...{ tag: bytes.readUInt16LE(body), channels: bytes.readUInt16LE(body + 2) },
        ...{ sampleRate: bytes.readUInt32LE(body + 4), bits: bytes.readUInt16LE(body + 14) },
      };
    }
    if (name === 'data') {
      const isPlain = format.tag === 1 && format.bits === 16 && body + size <= bytes.length;
      return isPlain ? { ...format, data: bytes.subarray(body, body + size) } : null;
    }
    at = body + size + (size % 2);
  }
  return null;
}

interface FfprobeStream {
  index: number;
  codec_type: string;
  codec_name: string;
  channels?: number;
  channel_layout?: string;
  sample_rate?: string;
  start_time?: string;
  bits_per_raw_sample?: string;
  sample_fmt?: string;
  width?: number;
  height?: number;
  disposition: { attached_pic: number };
  tags?: Record<string, string>;
}

export interface Inspection {
  format: { format_name: string; duration?: string; tags?: Record<string, string> };
  streams: FfprobeStream[];
  chapters: { start_time: string; end_time: string; tags?: { title?: string } }[];
  audio: FfprobeStream;
  cover: FfprobeStream | undefined;
  /** Tags of the file and of its audio, names in lower case. */
  tags: Record<string, string>;
}

export async function inspect(file: string): Promise<Inspection> {
  return (await shown(file)).inspection;
}

export interface Examination extends Inspection {
  /** Of the first audio track, decoded and counted. */
  readonly seconds: number;
  /** Of its packets alone. */
  readonly kbps: number;
  /** Of what is in its packets, which a copy does not change. */
  readonly packetHash: string;
}

/** As `inspect`, with what decoding tells: all of it from one run of ffprobe. */
export async function examine(file: string): Promise<Examination> {
  const entries = 'packet=stream_index,size,data_hash:frame=stream_index,nb_samples';
  const { inspection, packets } = await shown(
    ...['-show_packets', '-show_frames', '-show_entries', entries, '-show_data_hash', 'md5', file],
  );
  const own = packets.filter((one) => one.stream_index === inspection.audio.index);
  const sum = (of: (one: PacketOrFrame) => unknown) =>
    own.reduce((all, one) => all + Number(of(one) ?? 0), 0);
  const seconds = sum((one) => one.nb_samples) / Number(inspection.audio.sample_rate);
  const hashes = own.flatMap((one) => one.data_hash ?? []);
  return {
    ...inspection,
    seconds,
    kbps: (sum((one) => one.size) * 8) / 1000 / seconds,
    packetHash: createHash('md5').update(hashes.join()).digest('hex'),
  };
}

interface PacketOrFrame {
  readonly stream_index: number;
  readonly size?: string;
  readonly data_hash?: string;
  readonly nb_samples?: number;
}

async function shown(...args: readonly string[]) {
  const all = ['-show_format', '-show_streams', '-show_chapters'];
  const { stdout } = await ask('ffprobe', '-v', 'error', '-of', 'json', ...all, ...args);
  const { packets_and_frames: packets = [], ...answer } = JSON.parse(stdout.toString()) as Omit<
    Inspection,
    'audio' | 'cover' | 'tags'
  > & { packets_and_frames?: PacketOrFrame[] };
  const audio = answer.streams.find(({ codec_type }) => codec_type === 'audio');
  if (audio === undefined) throw new Error('no audio stream');
  const tags = Object.entries({ ...answer.format.tags, ...audio.tags });
  const inspection: Inspection = {
    ...answer,
    audio,
    cover: answer.streams.find(({ disposition }) => disposition.attached_pic === 1),
    tags: Object.fromEntries(tags.map(([key, value]) => [key.toLowerCase(), value])),
  };
  return { inspection, packets };
}

const decoded = new Map<string, Promise<number>>();

/**
 * Seconds of audio in a track, counted: decoded to PCM at its own rate, bytes divided by the size
 * of a second. Of a file that did not change, once.
 */
export async function decodedSeconds(file: string, track = 0): Promise<number> {
  const { size, mtimeMs } = await stat(file);
  const name = `${file} ${track} ${size} ${mtimeMs}`;
  const known = decoded.get(name) ?? decodeSeconds(file, track);
  decoded.set(name, known);
  return known;
}

/** An AU file says in its header where its samples begin, and how many there are in a second. */
async function decodeSeconds(file: string, track: number): Promise<number> {
  const pcm = await pcmOf(file);
  if (pcm !== null) return pcm.data.length / 2 / pcm.channels / pcm.sampleRate;
  const to = ['-ac', '1', '-c:a', 'pcm_s16be', '-f', 'au', '-'];
  const { stdout } = await ask('ffmpeg', '-v', 'error', '-i', file, '-map', `0:a:${track}`, ...to);
  return (stdout.length - stdout.readUInt32BE(4)) / 2 / stdout.readUInt32BE(16);
}

/** Mono PCM of the first audio track, one number a sample, −1 … 1. */
export async function decodedSamples(file: string, sampleRate: number): Promise<Float32Array> {
  const pcm = await pcmOf(file);
  if (pcm !== null && pcm.channels === 1 && pcm.sampleRate === sampleRate) {
    return Float32Array.from(
      { length: pcm.data.length / 2 },
      (_, at) => pcm.data.readInt16LE(at * 2) / 32_768,
    );
  }
  const to = ['-map', '0:a:0', '-ac', '1', '-ar', String(sampleRate), '-f', 'f32le', '-'];
  const { stdout } = await ask('ffmpeg', '-v', 'error', '-i', file, ...to);
  return new Float32Array(stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + stdout.length));
}

/** A track's samples as 16-bit PCM, of a file or of a stream at a URL. */
export async function trackSamples(input: string, map = '0:a:0'): Promise<Buffer> {
  const pcm = await pcmOf(input);
  if (pcm !== null) return pcm.data;
  const to = ['-map', map, '-c:a', 'pcm_s16le', '-f', 's16le', '-'];
  return (await ask('ffmpeg', '-v', 'error', '-i', input, ...to)).stdout;
}

/** As far apart as two versions of a lossy decoder may be, dB below full scale. */
export const SAME_DB = -90;

/** How far apart the samples of two tracks are; Infinity if one is longer. */
export function apartDb(one: Buffer, other: Buffer): number {
  if (one.length !== other.length) return Number.POSITIVE_INFINITY;
  let sum = 0;
  for (let at = 0; at + 1 < one.length; at += 2) {
    sum += ((one.readInt16LE(at) - other.readInt16LE(at)) / 32_768) ** 2;
  }
  return 10 * Math.log10(sum / (one.length / 2));
}

export async function measureLoudness(file: string): Promise<{ lufs: number; truePeakDbtp: number }> {
  const to = ['-map', '0:a:0', '-af', 'ebur128=peak=true', '-f', 'null', '-'];
  const { stderr } = await ask('ffmpeg', '-i', file, ...to);
  const summary = stderr.slice(stderr.lastIndexOf('Summary:'));
  return {
    lufs: Number(/I:\s+(\S+) LUFS/.exec(summary)?.[1]),
    truePeakDbtp: Number(/Peak:\s+(\S+) dBFS/.exec(summary)?.[1]),
  };
}

/** Where the packets of the first audio track lie, by ffprobe's word. */
export async function packetsOf(file: string): Promise<{ at: number; bytes: number }[]> {
  const entries = ['-select_streams', 'a:0', '-show_entries', 'packet=pos,size', '-of', 'json'];
  const { stdout } = await ask('ffprobe', '-v', 'error', ...entries, file);
  const { packets } = JSON.parse(stdout.toString()) as { packets: { pos: string; size: string }[] };
  return packets.map(({ pos, size }) => ({ at: Number(pos), bytes: Number(size) }));
}

/**
 * When the packets of the first audio track are presented, and how long each is, by ffprobe's word.
 */
export async function packetTimes(file: string): Promise<{ at: number; seconds: number }[]> {
  const entries = ['-select_streams', 'a:0', '-show_entries', 'packet=pts_time,duration_time', '-of', 'json'];
  const { stdout } = await ask('ffprobe', '-v', 'error', ...entries, file);
  const { packets } = JSON.parse(stdout.toString()) as {
    packets: { pts_time: string; duration_time: string }[];
  };
  return packets.map(({ pts_time, duration_time }) => ({
    at: Number(pts_time),
    seconds: Number(duration_time),
  }));
}
