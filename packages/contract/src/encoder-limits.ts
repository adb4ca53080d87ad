/**
 * Which bitrates the encoders take, by channels and sample rate. Measured with ffmpeg 5.1 (libmp3lame 3.100, libvorbis
 * 1.3.7, libopus 1.3.1, ffmpeg's own AAC encoder); packages/media/test/encoder-limits.core-all.test.ts asks the encoders again.
 */
import type { AudioCodec } from './formats.ts';

/** Bitrates in kbit/s: any whole number of a range, or only those of a list (ascending). */
type TakenBitrates = { readonly min: number; readonly max: number } | { readonly only: readonly number[] };

/** ISO/IEC 11172-3 layer III bitrate table, from the 32k on that the service offers. */
const MPEG_1 = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320] as const;
/** ISO/IEC 13818-3 low sampling frequencies. */
const MPEG_2 = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160] as const;
/** The MPEG-2.5 extension; LAME goes no higher there. */
const MPEG_2_5 = [8, 16, 24, 32, 40, 48, 56, 64] as const;

interface VorbisRow {
  /** The row holds from this sample rate on, Hz. */
  readonly fromHz: number;
  /** kbit/s in all for one channel, and for two. */
  readonly mono: readonly [min: number, max: number];
  readonly stereo: readonly [min: number, max: number];
}

/** libvorbis has one mode set a range of sample rates; bitrates outside of it fail at the start. */
const VORBIS: readonly VorbisRow[] = [
  { fromHz: 40_000, mono: [32, 240], stereo: [45, 500] },
  { fromHz: 26_000, mono: [30, 190], stereo: [36, 380] },
  { fromHz: 19_000, mono: [16, 90], stereo: [30, 180] },
  { fromHz: 15_000, mono: [16, 100], stereo: [24, 200] },
  { fromHz: 9_000, mono: [12, 50], stereo: [16, 100] },
  { fromHz: 0, mono: [8, 42], stereo: [12, 84] },
];

/** @param channels 1 or 2: the codecs that have a bitrate are never given more. */
export function takenBitrates(codec: AudioCodec, channels: number, sampleRate: number): TakenBitrates | null {
  switch (codec) {
    case 'mp3':
      return { only: sampleRate >= 32_000 ? MPEG_1 : sampleRate >= 16_000 ? MPEG_2 : MPEG_2_5 };
    case 'aac':
      // ISO/IEC 14496-3: at most 6144 bits a channel in a frame of 1024 samples; above it the encoder clamps.
      return { min: 8, max: Math.floor((6144 * channels * sampleRate) / 1024 / 1000) };
    case 'vorbis': {
      const row = VORBIS.find(({ fromHz }) => sampleRate >= fromHz);
      const [min, max] = (channels === 1 ? row?.mono : row?.stereo) ?? [32, 240];
      return { min, max };
    }
    case 'opus':
      // libopus: 256 kbit/s a channel; RFC 6716 section 2.1.1 ends at 510.
      return { min: 6, max: channels === 1 ? 256 : 510 };
    case 'flac':
    case 'pcm':
      return null;
  }
}

/** The bitrate nearest to the one wanted that is taken, the higher of two equally near ones. */
export function nearestBitrate(taken: TakenBitrates, wantedKbps: number): number {
  if (!('only' in taken)) return Math.min(taken.max, Math.max(taken.min, wantedKbps));
  return taken.only.reduce((best, kbps) =>
    Math.abs(kbps - wantedKbps) <= Math.abs(best - wantedKbps) ? kbps : best,
  );
}

export function bitrateRangeOf(taken: TakenBitrates): { readonly min: number; readonly max: number } {
  if (!('only' in taken)) return taken;
  return { min: Math.min(...taken.only), max: Math.max(...taken.only) };
}
