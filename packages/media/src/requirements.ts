/** What ffmpeg must be built with, derived from plans and commands: nothing is listed twice. */
import { FormatName, qualities } from 'soundpost-contract/formats';
import { OutputRequest, TranscriptRequest } from 'soundpost-contract/output-request';
import { DECODER_FAMILIES } from './command.ts';
import { filterGraphs, mixGraph, stretchFilters, uniformGraphs } from './graph.ts';
import { UNIFORM_ENCODER, UNIFORM_MUXER } from './input-run.ts';
import { ebur128 } from './loudness/measure.ts';
import { type OutputPlan, planAny, planOutput } from './plan.ts';
import type { Probe } from './probe.ts';
import { containers } from './sniff.ts';

/** The first version with `alimiter=latency`, which removes the look-ahead of a levelled output. */
export const OLDEST_FFMPEG = '5.1';

interface Requirements {
  readonly encoders: readonly string[];
  readonly muxers: readonly string[];
  readonly demuxers: readonly string[];
  readonly filters: readonly string[];
  readonly protocols: readonly string[];
  /** By family: at least one decoder of each. */
  readonly decoders: Readonly<Record<string, readonly string[]>>;
  /** ffmpeg lists none of them, so only our own build can be checked (script/ffmpeg-flags.ts). */
  readonly parsers: readonly string[];
  readonly bitstreamFilters: readonly string[];
}

/** Besides the formats': for measuring, waveforms, covers, and audio that changes its format. */
const OTHER_MUXERS = ['null', 's16le', 'data', UNIFORM_MUXER];
/** Besides those of sources: tags and chapters are passed in one. */
const OTHER_DEMUXERS = ['ffmetadata'];
/**
 * They open no file. libavformat identifies unnamed streams by them (WAV, program and transport
 * streams: set_codec_from_probe_data in libavformat/demux.c), and takes DV's audio from its
 * pictures.
 */
const INNER_DEMUXERS = ['dvbsub', 'dvbtxt', 'h264', 'hevc', 'm4v', 'mpegvideo', 'spdif'];
const AUDIO_PARSERS = [
  ...['aac', 'aac_latm', 'ac3', 'amr', 'cook', 'dca', 'flac', 'g723_1', 'gsm', 'mlp', 'mpegaudio'],
  ...['opus', 'sipr', 'tak', 'vorbis'],
];
/** A file's clock starts with its earliest stream, often a picture. The last two are for covers. */
const VIDEO_PARSERS = [
  ...['av1', 'h263', 'h264', 'hevc', 'mpeg4video', 'mpegvideo', 'vc1', 'vp3', 'vp8', 'vp9', 'mjpeg', 'png'],
];
/** Ends the search for a stream's type after its header, instead of after ten megabytes. */
const BITSTREAM_FILTERS = ['extract_extradata'];
/** Inputs and outputs are files; progress and measurements come through pipes. */
const PROTOCOLS = ['file', 'pipe'];

/** A source that needs all of a filter graph: mixed down, resampled, cut and levelled. */
const SOURCE: Probe = {
  container: { name: 'wav', demuxer: 'wav', declares: 'header' },
  sizeBytes: 1,
  zeroSeconds: 0,
  beginnings: new Map(),
  isCountedByUse: false,
  durationSeconds: 10,
  tracks: [
    {
      index: 0,
      streamIndex: 0,
      codec: 'pcm_s24le',
      profile: null,
      language: null,
      channels: 6,
      layout: '5.1',
      sampleRate: 192_000,
      bitrateKbps: null,
      bitDepth: 24,
      isFloat: false,
      isDefault: true,
      isEncrypted: false,
      isDecodable: true,
      startSeconds: 0,
      declaredSeconds: 10,
      tags: {},
    },
  ],
  tags: {},
  chapters: [],
  cover: null,
  isAudioOnly: true,
};

const UNNAMED: Probe = { ...SOURCE, tracks: [{ ...SOURCE.tracks[0], channels: 2, layout: null }] };

/** The second one is mono. */
const TWO_TRACKS: Probe = {
  ...SOURCE,
  tracks: [...SOURCE.tracks, { ...SOURCE.tracks[0], index: 1, streamIndex: 1, channels: 1, layout: 'mono' }],
};

export function requirements(): Requirements {
  const sounds = FormatName.options.flatMap((format) =>
    qualities.map((quality) =>
      planOutput(OutputRequest.parse({ format, quality, start: 1, end: 2, normalize: true }), SOURCE),
    ),
  );
  const plans = [
    ...sounds,
    // A mean of two channels, which have no names.
    planOutput(OutputRequest.parse({ format: 'voice' }), UNNAMED),
    planAny(TranscriptRequest.parse({ format: 'transcript', name: 'words' }), UNNAMED),
  ];
  const mix = planOutput(OutputRequest.parse({ format: 'mp3', track: 'mix' }), TWO_TRACKS);
  return {
    encoders: distinct([...plans.map(({ encode }) => encode.encoder), UNIFORM_ENCODER]),
    muxers: distinct([...plans.map(({ format }) => format.muxer), ...OTHER_MUXERS]),
    demuxers: distinct([...containers.map(({ demuxer }) => demuxer), ...OTHER_DEMUXERS, ...INNER_DEMUXERS]),
    filters: distinct([
      ...plans.flatMap(filtersOf),
      ...filtersIn(mixGraph({}, mix.track, [mix], 1)),
      ...uniformGraphs([mix], 1).flatMap(filtersIn),
    ]),
    protocols: PROTOCOLS,
    decoders: Object.fromEntries(
      Object.entries(DECODER_FAMILIES).map(([family, names]) => [family, names.split(',')]),
    ),
    parsers: [...AUDIO_PARSERS, ...VIDEO_PARSERS].sort(),
    bitstreamFilters: BITSTREAM_FILTERS,
  };
}

/** All between a track's decoder and two encoders, one of which encodes a stretch of it. */
function filtersOf(plan: OutputPlan): string[] {
  const stretched = stretchFilters({ startSample: 1, endSample: null });
  const wanted = { ...plan, timeline: 'source' } as const;
  const gain = { gainDb: 1, ceilingDbtp: -1 };
  const graphs = filterGraphs(
    {},
    [[ebur128('true')], [stretched]].map((last) => ({ plan: wanted, gain, last })),
    [wanted],
  );
  return graphs.flatMap(filtersIn);
}

function filtersIn(graph: string): string[] {
  const filters = graph.replaceAll(/\[[^\]]*\]|'[^']*'/g, '').split(/[,;]/);
  return filters.map((filter) => filter.split(/[=@]/)[0] ?? '');
}

function distinct(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
