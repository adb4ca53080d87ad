/**
 * Composes argument lists for ffmpeg. fluent-ffmpeg only composes: it would spawn with fixed
 * options, without a launcher or a process group, so run.ts spawns the list.
 */
import { resolve } from 'node:path';
import fluent from 'fluent-ffmpeg';
import type { FileAccess } from './sandbox.ts';

/**
 * The ffmpeg decoders that a run may open, by family: the audio codecs of the containers in
 * sniff.ts. ffmpeg has a hundred more, for games and forgotten software. Nobody reviews their code.
 * It never prefers its fixed-point decoders.
 */
export const DECODER_FAMILIES: Readonly<Record<string, string>> = {
  // ISO/IEC 11172-3, 13818-3 and -7, 14496-3
  mpeg: 'mp1,mp2,mp3float,mp3on4float,aac,aac_latm,als',
  xiph: 'opus,libopus,vorbis,libvorbis,speex,libspeex,flac',
  // ATSC A/52, ETSI TS 102 114, SMPTE 302M
  cinema: 'ac3,eac3,dca,truehd,mlp,s302m',
  lossless: 'alac,wavpack,tta,ape,wmalossless,tak,shorten',
  dsd: 'dsd_msbf,dsd_lsbf_planar,dsd_msbf_planar,dst',
  musepack: 'mpc7,mpc8',
  real: 'real_144,real_288,cook,sipr,ralf,atrac3',
  windows:
    'wmav1,wmav2,wmapro,wmavoice,adpcm_ms,adpcm_ima_wav,adpcm_yamaha,truespeech,adpcm_sbpro_4,adpcm_sbpro_3,adpcm_sbpro_2',
  // 3GPP TS 26.071 and 26.171, ITU-T G.722, G.726 and G.723.1
  telephone:
    'amrnb,amrwb,libopencore_amrnb,libopencore_amrwb,gsm,gsm_ms,libgsm,libgsm_ms,ilbc,qcelp,g722,g726,g726le,g723_1',
  quicktime: 'adpcm_ima_qt,mace3,mace6,qdm2',
  flash: 'adpcm_swf,nellymoser',
  pcm:
    'pcm_alaw,pcm_mulaw,pcm_u8,pcm_s8,pcm_s8_planar,pcm_s16le,pcm_s16be,pcm_s16le_planar,pcm_s16be_planar,pcm_u16le,pcm_u16be,' +
    'pcm_s24le,pcm_s24be,pcm_s24le_planar,pcm_u24le,pcm_u24be,pcm_s32le,pcm_s32be,pcm_s32le_planar,pcm_u32le,pcm_u32be,' +
    'pcm_s64le,pcm_s64be,pcm_f16le,pcm_f24le,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_bluray,pcm_dvd',
  // A cover is copied, but its size is only known from the picture itself.
  covers: 'mjpeg,png',
};

/** Where a codec is not called as its decoder. */
const CODEC_NAMES: Readonly<Record<string, string>> = {
  als: 'mp4als',
  amrnb: 'amr_nb',
  amrwb: 'amr_wb',
  dca: 'dts',
  g722: 'adpcm_g722',
  g726: 'adpcm_g726',
  g726le: 'adpcm_g726le',
  mp3float: 'mp3',
  mp3on4float: 'mp3on4',
  mpc7: 'musepack7',
  mpc8: 'musepack8',
  real_144: 'ra_144',
  real_288: 'ra_288',
};

/** The codecs of {@link DECODER_FAMILIES}. */
export const DECODED_CODECS: ReadonlySet<string> = new Set(
  Object.values(DECODER_FAMILIES)
    .join(',')
    .split(',')
    .map((decoder) => CODEC_NAMES[decoder] ?? decoder),
);

/** For `-codec_whitelist`. */
const DECODERS = Object.values(DECODER_FAMILIES).join(',');

export interface CommandInput {
  /** A regular local file; the name is ours, never a caller's. */
  readonly file: string;
  readonly demuxer: string;
  /** Its timestamp 0 on the source's clock; default: ffmpeg's beginning is second 0. */
  readonly zeroSeconds?: number;
  /** The part that is read, counted from its first timestamp; default all. */
  readonly part?: { readonly startSeconds: number; readonly seconds: number };
  /** Whether its video is wanted, which permits decoders besides those of audio; default false. */
  readonly withVideo?: boolean;
  /** Whether its audio begins after the part that ffmpeg probes by default; default false. */
  readonly isLate?: boolean;
  /** When each of its streams begins on the source's clock, by its index; default second 0. */
  readonly beginnings?: ReadonlyMap<number, number>;
  /** Whether ffmpeg counts from the earliest stream in use, not of the file; default false. */
  readonly isCountedByUse?: boolean;
  /** The longest hole in its timestamps that its clock has too; default 0. */
  readonly longestGapSeconds?: number;
}

export interface CommandOutput {
  /** Omitted: decoded (or demuxed) and discarded. */
  readonly file?: string;
  readonly muxer: string;
  readonly options: readonly string[];
}

export interface Command {
  readonly inputs: readonly CommandInput[];
  /** Filter graphs whose output pads the outputs map. */
  readonly graphs?: readonly string[];
  readonly outputs: readonly CommandOutput[];
}

/** A cover of 36 megapixels takes 0.1 GB to decode; without a limit small files could take any. */
export const MAX_COVER_PIXELS = 36_000_000;

/** Of all kinds, as ffmpeg has it by default; a file of more does not open. */
export const MAX_STREAMS = 1000;

/**
 * For every opening of an untrusted file, by ffmpeg and ffprobe. Only the sniffed demuxer is
 * allowed: the protocol list alone does not keep a playlist from reading local files.
 */
export function inputGuards(demuxer: string, isLate = false): string[] {
  return [
    ...['-protocol_whitelist', 'file'],
    ...['-format_whitelist', demuxer],
    ...['-max_pixels', String(MAX_COVER_PIXELS)],
    ...['-max_streams', String(MAX_STREAMS)],
    // Bytes, and microseconds.
    ...['-probesize', isLate ? '64Mi' : '10M'],
    ...['-analyzeduration', isLate ? '100G' : '10M'],
    // With the default, 64 KiB, ffmpeg sleeps 10 ms at each without packets: 14 minutes for 5 GiB.
    ...(demuxer === 'mpegts' ? ['-resync_size', '2147483647'] : []),
    ...['-f', demuxer],
  ];
}

/**
 * By default ffmpeg counts from where it finds the file's beginning. Without video decoders it
 * misses H.264 in Matroska, and counts from the audio. `-seek_timestamp` counts from timestamp 0,
 * except in transport and program streams and Ogg. There, ffmpeg before 6.0 counts from the
 * beginning if the offset equals it, hence the microsecond. Since 6.0 it always counts from the
 * earliest stream in use.
 */
function clock(
  { zeroSeconds, beginnings, isCountedByUse, longestGapSeconds = 0 }: CommandInput,
  used: readonly number[],
): string[] {
  if (zeroSeconds === undefined) return [];
  const begin = used.flatMap((stream) => beginnings?.get(stream) ?? []);
  const last = Math.max(longestGapSeconds, 0, ...begin);
  return [
    ...(isCountedByUse && begin.length > 0
      ? ['-itsoffset', Math.min(...begin).toFixed(6)]
      : ['-seek_timestamp', '1', '-itsoffset', (zeroSeconds + 1e-6).toFixed(6)]),
    // In the same containers a stream that begins 10 s later than another, or has such a hole, is
    // taken for a jump.
    ...(last < 10 ? [] : ['-dts_delta_threshold', String(Math.ceil(last) + 1)]),
  ];
}

/** The streams of an input that are mapped or filtered, by their index. */
function usedStreams({ graphs = [], outputs }: Command, nth: number): number[] {
  const text = [...graphs, ...outputs.flatMap(({ options }) => options)].join(' ');
  const named = text.matchAll(new RegExp(`(?<=^|[\\s[])${nth}:(\\d+)(?=[\\s\\]]|$)`, 'g'));
  return Array.from(named, ([, stream]) => Number(stream));
}

function partOf({ part }: CommandInput): string[] {
  return part === undefined ? [] : ['-ss', part.startSeconds.toFixed(3), '-t', String(part.seconds)];
}

/** Absolute, since a sandbox has its own folder; after the prefix a colon names no protocol. */
export function fileArgument(file: string): string {
  return `file:${resolve(file)}`;
}

/** The files that a command reads and writes. */
export function accessOf({ inputs, outputs }: Command): FileAccess {
  return {
    reads: inputs.map(({ file }) => file),
    writes: outputs.flatMap(({ file }) => file ?? []),
  };
}

/** A list that is not in the published types, made by the same code that `run()` uses. */
interface ArgumentComposer {
  _getArguments(): string[];
}

export function composeArguments(command: Command): string[] {
  const composer = fluent();
  for (const [nth, input] of command.inputs.entries()) {
    // Options are spread: an array's elements would be split at a space.
    const decoders = input.withVideo ? [] : ['-codec_whitelist', DECODERS];
    // With a second input ffmpeg would read each in a thread, which doubles the cost of a copy.
    const threads = ['-thread_queue_size', '0', '-threads', '1'];
    composer
      .input(fileArgument(input.file))
      .inputOptions(
        ...inputGuards(input.demuxer, input.isLate),
        ...decoders,
        ...threads,
        ...clock(input, usedStreams(command, nth)),
        ...partOf(input),
      );
  }
  const [graph, ...others] = command.graphs ?? [];
  if (graph !== undefined) composer.complexFilter(graph);
  // fluent-ffmpeg knows one graph; the option may stand with any output's.
  const beside = others.flatMap((other) => ['-filter_complex', other]);
  for (const [nth, output] of command.outputs.entries()) {
    composer.output(output.file === undefined ? '-' : fileArgument(output.file));
    if (nth === 0 && beside.length > 0) composer.outputOptions(...beside);
    composer.outputOptions(...output.options, '-threads', '1', '-f', output.muxer);
  }
  return (composer as unknown as ArgumentComposer)._getArguments();
}
