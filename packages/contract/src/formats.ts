/**
 * The output formats as a table: what a format is called, what stands in the file, and what its qualities mean
 * (decisions A2 and A3). Which bitrates an encoder takes for given channels and sample rate is in encoder-limits.ts.
 */
import { z } from 'zod';

export const qualities = ['low', 'medium', 'high', 'extreme'] as const;
type Quality = (typeof qualities)[number];

/** Codec names are ffmpeg's, so that a probed track compares with a row directly. */
export type AudioCodec = 'mp3' | 'aac' | 'flac' | 'pcm' | 'vorbis' | 'opus';

export interface Format {
  readonly codec: AudioCodec;
  /** ffmpeg's muxer. */
  readonly muxer: 'mp3' | 'adts' | 'ipod' | 'flac' | 'wav' | 'ogg' | 's16le';
  readonly extension: string;
  readonly mediaType: string;
  /** kbit/s of each quality, or 'lossless': then a quality chooses the bit depth (decisions A3). */
  readonly quality: Readonly<Record<Quality, number>> | 'lossless';
  /** kbit/s that an explicit output.bitrate may name; null where the codec has no bitrate to choose. */
  readonly bitrateRange: { readonly min: number; readonly max: number } | null;
  /** Sample rates that the format takes, Hz; null: any of 8000 … 192000. */
  readonly sampleRates: readonly number[] | null;
  /** The most channels an output may have unless output.channels says less; null: as many as the source. */
  readonly maxChannels: number | null;
  /** What the container can keep of the source besides the sound. */
  readonly keeps: { readonly tags: boolean; readonly chapters: boolean; readonly cover: boolean };
}

const MPEG_LAYER_3_RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;
const AAC_RATES = [...MPEG_LAYER_3_RATES, 64000, 88200, 96000] as const;
const COMMON_QUALITY = { low: 96, medium: 128, high: 192, extreme: 320 } as const;

export const formats = {
  mp3: {
    codec: 'mp3',
    muxer: 'mp3',
    extension: 'mp3',
    mediaType: 'audio/mpeg',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 320 },
    sampleRates: MPEG_LAYER_3_RATES,
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  aac: {
    codec: 'aac',
    muxer: 'adts',
    extension: 'aac',
    mediaType: 'audio/aac',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 512 },
    sampleRates: AAC_RATES,
    maxChannels: 2,
    keeps: { tags: false, chapters: false, cover: false },
  },
  m4a: {
    codec: 'aac',
    muxer: 'ipod',
    extension: 'm4a',
    mediaType: 'audio/mp4',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 512 },
    sampleRates: AAC_RATES,
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  flac: {
    codec: 'flac',
    muxer: 'flac',
    extension: 'flac',
    mediaType: 'audio/flac',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: null,
    keeps: { tags: true, chapters: true, cover: true },
  },
  wav: {
    codec: 'pcm',
    muxer: 'wav',
    extension: 'wav',
    mediaType: 'audio/wav',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: null,
    keeps: { tags: true, chapters: false, cover: false },
  },
  ogg: {
    codec: 'vorbis',
    muxer: 'ogg',
    extension: 'ogg',
    mediaType: 'audio/ogg',
    quality: COMMON_QUALITY,
    bitrateRange: { min: 32, max: 320 },
    // libvorbis has no bitrates above 50 kHz, only its own qualities.
    sampleRates: MPEG_LAYER_3_RATES,
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  opus: {
    codec: 'opus',
    muxer: 'ogg',
    extension: 'opus',
    mediaType: 'audio/ogg',
    quality: { low: 48, medium: 80, high: 128, extreme: 192 },
    bitrateRange: { min: 6, max: 510 },
    sampleRates: [48000],
    maxChannels: 2,
    keeps: { tags: true, chapters: true, cover: true },
  },
  voice: {
    codec: 'opus',
    muxer: 'ogg',
    extension: 'ogg',
    mediaType: 'audio/ogg; codecs=opus',
    quality: { low: 12, medium: 16, high: 24, extreme: 32 },
    // Within it libopus stays in the mode that all phones play: see packages/media/src/ogg/voice-form.ts.
    bitrateRange: { min: 10, max: 40 },
    sampleRates: [16000],
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;

export const FormatName = z.enum(Object.keys(formats) as [FormatName, ...FormatName[]]);

/** What a job makes of a source besides audio (decisions A8): what ffmpeg gives out for it, and what the file is. */
const derivedFormats = {
  /** Pairs of lowest and highest sample, made of PCM that comes through a pipe. */
  waveform: {
    codec: 'pcm',
    muxer: 's16le',
    extension: 'json',
    mediaType: 'application/json',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: null,
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
  /** WAV for the transcriber; extension and media type are those of WebVTT, the others are in transcripts.ts. */
  transcript: {
    codec: 'pcm',
    muxer: 'wav',
    extension: 'vtt',
    mediaType: 'text/vtt; charset=utf-8',
    quality: 'lossless',
    bitrateRange: null,
    sampleRates: [16000],
    maxChannels: 1,
    keeps: { tags: false, chapters: false, cover: false },
  },
} as const satisfies Record<string, Format>;

/** Everything that an output may be. */
export const outputFormats = { ...formats, ...derivedFormats };
export type OutputFormatName = keyof typeof outputFormats;

export function isAudioFormat(name: unknown): name is FormatName {
  return typeof name === 'string' && Object.hasOwn(formats, name);
}

/** The row of a format with its literal types widened, for code that treats all formats alike. */
export function formatOf(name: OutputFormatName): Format {
  return outputFormats[name];
}

/** `"192k"` → 192. The pattern is the contract's (audio-extraction.md, outputFile.bitrate). */
export function parseBitrate(bitrate: string): number {
  return Number.parseInt(bitrate, 10);
}
