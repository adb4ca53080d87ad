/**
 * Composes argument lists for ffmpeg. fluent-ffmpeg does the composing and nothing else: it spawns with fixed options,
 * so that neither a launcher nor a process group would be possible; run.ts spawns the list that is made here.
 */
import { resolve } from 'node:path';
import fluent from 'fluent-ffmpeg';
import { DECODERS } from './decoders.ts';
import type { FileAccess } from './sandbox.ts';

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
