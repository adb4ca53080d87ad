/**
 * Composes argument lists for ffmpeg. fluent-ffmpeg does the composing and nothing else: it spawns with fixed options,
 * so that neither a launcher nor a process group would be possible; run.ts spawns the list that is made here.
 */
import { resolve } from 'node:path';
import fluent from 'fluent-ffmpeg';
import type { FileAccess } from './sandbox.ts';

/**
 * ffmpeg's decoders that a run may open, by family: the sound of the containers that sniff.ts knows. ffmpeg has a hundred
 * more, of games and of forgotten software, whose code nobody looks at.
 */
export const DECODER_FAMILIES: Readonly<Record<string, string>> = {
  // ISO/IEC 11172-3, 13818-3 and -7, 14496-3
  mpeg: 'mp1,mp1float,mp2,mp2float,mp3,mp3float,mp3adu,mp3adufloat,mp3on4,mp3on4float,aac,aac_fixed,aac_latm,als',
  xiph: 'opus,libopus,vorbis,libvorbis,speex,libspeex,flac',
  // ATSC A/52, ETSI TS 102 114, SMPTE 302M
  cinema: 'ac3,ac3_fixed,eac3,dca,truehd,mlp,s302m',
  lossless: 'alac,wavpack,tta,ape,wmalossless',
  windows: 'wmav1,wmav2,wmapro,wmavoice,adpcm_ms,adpcm_ima_wav,adpcm_yamaha,truespeech',
  // 3GPP TS 26.071 and 26.171, ITU-T G.722, G.726 and G.723.1
  telephone:
    'amrnb,amrwb,libopencore_amrnb,libopencore_amrwb,gsm,gsm_ms,libgsm,libgsm_ms,ilbc,qcelp,g722,g726,g726le,g723_1',
  quicktime: 'adpcm_ima_qt,mace3,mace6,qdm2,qdmc',
  flash: 'adpcm_swf,nellymoser',
  pcm:
    'pcm_alaw,pcm_mulaw,pcm_u8,pcm_s8,pcm_s8_planar,pcm_s16le,pcm_s16be,pcm_s16le_planar,pcm_s16be_planar,pcm_u16le,pcm_u16be,' +
    'pcm_s24le,pcm_s24be,pcm_s24le_planar,pcm_u24le,pcm_u24be,pcm_s32le,pcm_s32be,pcm_s32le_planar,pcm_u32le,pcm_u32be,' +
    'pcm_s64le,pcm_s64be,pcm_f16le,pcm_f24le,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_bluray,pcm_dvd',
  // A cover is copied, but its size is only known from the picture itself.
  covers: 'mjpeg,png',
};

/** For `-codec_whitelist`. */
const DECODERS = Object.values(DECODER_FAMILIES).join(',');

export interface CommandInput {
  /** A regular local file; the name is ours, never a caller's. */
  readonly file: string;
  readonly demuxer: string;
  /** Where its timestamp 0 lies on the source's clock; default where second 0 is the beginning that ffmpeg finds. */
  readonly zeroSeconds?: number;
  /** Whether its video is wanted, so that other decoders than those for sound may find out about it; default not. */
  readonly withVideo?: boolean;
}

export interface CommandOutput {
  /** Left out: decoded (or demuxed) and thrown away. */
  readonly file?: string;
  readonly muxer: string;
  readonly options: readonly string[];
}

export interface Command {
  readonly inputs: readonly CommandInput[];
  /** A filter graph whose output pads the outputs map. */
  readonly graph?: string;
  readonly outputs: readonly CommandOutput[];
}

/** A cover of 36 megapixels takes 0.1 GB to decode; without the limit a small file could ask for any amount. */
export const MAX_COVER_PIXELS = 36_000_000;

/**
 * What every opening of an untrusted file carries, for ffmpeg and ffprobe alike. The demuxer is the sniffed one and the
 * only one allowed: the protocol list alone does not keep a playlist from reading local files.
 */
export function inputGuards(demuxer: string): string[] {
  return [
    ...['-protocol_whitelist', 'file'],
    ...['-format_whitelist', demuxer],
    ...['-max_pixels', String(MAX_COVER_PIXELS)],
    ...['-max_streams', '64'],
    ...['-probesize', '10M'],
    ...['-analyzeduration', '10M'],
    // The default of 64 KiB makes ffmpeg sleep 10 ms at each of them in a stretch without packets: 14 minutes for 5 GiB.
    ...(demuxer === 'mpegts' ? ['-resync_size', '2147483647'] : []),
    ...['-f', demuxer],
  ];
}

/**
 * Left alone, ffmpeg counts from where it finds that the file begins. Without decoders of video it does not find the pictures of H.264 in Matroska, and
 * counts from the sound. `-seek_timestamp` has it count from timestamp 0. Of transport and program streams it still takes the earliest of the streams that
 * it uses where the offset is that of the beginning: hence the microsecond.
 */
function clockZero({ zeroSeconds }: CommandInput): string[] {
  if (zeroSeconds === undefined) return [];
  return ['-seek_timestamp', '1', '-itsoffset', (zeroSeconds + 1e-6).toFixed(6)];
}

/** Absolute, for a sandbox has a folder of its own; the prefix keeps a name that holds a colon from being read as a protocol. */
export function fileArgument(file: string): string {
  return `file:${resolve(file)}`;
}

/** What a command has to reach. */
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
  for (const input of command.inputs) {
    // Options are spread: an array's elements would be split at a space.
    const decoders = input.withVideo ? [] : ['-codec_whitelist', DECODERS];
    // A second input, such as the metadata, would have each read in a thread, and handing packets over doubles what a copy costs.
    const threads = ['-thread_queue_size', '0', '-threads', '1'];
    composer
      .input(fileArgument(input.file))
      .inputOptions(...inputGuards(input.demuxer), ...decoders, ...threads, ...clockZero(input));
  }
  if (command.graph !== undefined) composer.complexFilter(command.graph);
  for (const output of command.outputs) {
    composer.output(output.file === undefined ? '-' : fileArgument(output.file));
    composer.outputOptions(...output.options, '-threads', '1', '-f', output.muxer);
  }
  return (composer as unknown as ArgumentComposer)._getArguments();
}
