/**
 * What a media file is, asked of ffmpeg and ffprobe directly: nothing of src/ is used here, so that the code under test
 * cannot agree with itself.
 */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MAX_BUFFER = 256 * 1024 * 1024;

export async function ffmpeg(...args: string[]): Promise<{ stdout: Buffer; stderr: string }> {
  const { stdout, stderr } = await run('ffmpeg', ['-nostdin', '-hide_banner', '-y', ...args], {
    encoding: 'buffer',
    maxBuffer: MAX_BUFFER,
  });
  return { stdout, stderr: stderr.toString() };
}

interface FfprobeStream {
  index: number;
  codec_type: string;
  codec_name: string;
  channels?: number;
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
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-of', 'json', '-show_format', '-show_streams', '-show_chapters'],
    file,
  ]);
  const answer = JSON.parse(stdout) as Omit<Inspection, 'audio' | 'cover' | 'tags'>;
  const audio = answer.streams.find(({ codec_type }) => codec_type === 'audio');
  if (audio === undefined) throw new Error('no audio stream');
  const tags = Object.entries({ ...answer.format.tags, ...audio.tags });
  return {
    ...answer,
    audio,
    cover: answer.streams.find(({ disposition }) => disposition.attached_pic === 1),
    tags: Object.fromEntries(tags.map(([key, value]) => [key.toLowerCase(), value])),
  };
}

const decoded = new Map<string, Promise<number>>();

/** Seconds of audio in a track, counted: decoded to PCM at its own rate, bytes divided by the size of a second. Of a file that did not change, once. */
export async function decodedSeconds(file: string, track = 0): Promise<number> {
  const { size, mtimeMs } = await stat(file);
  const name = `${file} ${track} ${size} ${mtimeMs}`;
  const known = decoded.get(name) ?? decodeSeconds(file, track);
  decoded.set(name, known);
  return known;
}

/** An AU file says in its header where its samples begin, and how many there are in a second. */
async function decodeSeconds(file: string, track: number): Promise<number> {
  const to = ['-ac', '1', '-c:a', 'pcm_s16be', '-f', 'au', '-'];
  const { stdout } = await ffmpeg('-v', 'error', '-i', file, '-map', `0:a:${track}`, ...to);
  return (stdout.length - stdout.readUInt32BE(4)) / 2 / stdout.readUInt32BE(16);
}

/** Mono PCM of the first audio track, one number a sample, −1 … 1. */
export async function decodedSamples(file: string, sampleRate: number): Promise<Float32Array> {
  const { stdout } = await ffmpeg(
    ...[
      '-v',
      'error',
      '-i',
      file,
      '-map',
      '0:a:0',
      '-ac',
      '1',
      '-ar',
      String(sampleRate),
      '-f',
      'f32le',
      '-',
    ],
  );
  return new Float32Array(stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + stdout.length));
}

/** MD5 of a track's packets, which a copy does not change. */
export async function packetHash(file: string, track = 0): Promise<string> {
  const { stdout } = await ffmpeg(
    '-v',
    'error',
    '-i',
    file,
    '-map',
    `0:a:${track}`,
    '-c',
    'copy',
    '-f',
    'md5',
    '-',
  );
  return stdout.toString().trim();
}

export async function measureLoudness(file: string): Promise<{ lufs: number; truePeakDbtp: number }> {
  const { stderr } = await ffmpeg('-i', file, '-map', '0:a:0', '-af', 'ebur128=peak=true', '-f', 'null', '-');
  const summary = stderr.slice(stderr.lastIndexOf('Summary:'));
  return {
    lufs: Number(/I:\s+(\S+) LUFS/.exec(summary)?.[1]),
    truePeakDbtp: Number(/Peak:\s+(\S+) dBFS/.exec(summary)?.[1]),
  };
}

/** kbit/s of the audio packets alone, from ffprobe's packet sizes. */
export async function packetKbps(file: string): Promise<number> {
  const { stdout } = await run(
    'ffprobe',
    ['-v', 'error', '-select_streams', 'a:0', '-show_entries', 'packet=size', '-of', 'csv=p=0', file],
    { maxBuffer: MAX_BUFFER },
  );
  const bytes = stdout.split('\n').reduce((sum, line) => sum + (Number.parseInt(line, 10) || 0), 0);
  return (bytes * 8) / 1000 / (await decodedSeconds(file));
}

/** Where the packets of the first audio track lie, by ffprobe's word. */
export async function packetsOf(file: string): Promise<{ at: number; bytes: number }[]> {
  const entries = ['-select_streams', 'a:0', '-show_entries', 'packet=pos,size', '-of', 'json'];
  const { stdout } = await run('ffprobe', ['-v', 'error', ...entries, file], { maxBuffer: MAX_BUFFER });
  const { packets } = JSON.parse(stdout) as { packets: { pos: string; size: string }[] };
  return packets.map(({ pos, size }) => ({ at: Number(pos), bytes: Number(size) }));
}

/** When the packets of the first audio track are presented, and how long each is, by ffprobe's word. */
export async function packetTimes(file: string): Promise<{ at: number; seconds: number }[]> {
  const entries = ['-select_streams', 'a:0', '-show_entries', 'packet=pts_time,duration_time', '-of', 'json'];
  const { stdout } = await run('ffprobe', ['-v', 'error', ...entries, file], { maxBuffer: MAX_BUFFER });
  const { packets } = JSON.parse(stdout) as { packets: { pts_time: string; duration_time: string }[] };
  return packets.map(({ pts_time, duration_time }) => ({
    at: Number(pts_time),
    seconds: Number(duration_time),
  }));
}
