/** What ffmpeg has to have been built with, derived from what plans and commands are made of: nothing is listed twice. */
import { FormatName, qualities } from '../contract/formats.ts';
import { OutputRequest } from '../contract/job-request.ts';
import { DECODER_FAMILIES } from './decoders.ts';
import { branchFilters, filterGraph, stretchFilters } from './graph.ts';
import { ebur128 } from './loudness/measure.ts';
import { type OutputPlan, planOutput } from './plan.ts';
import type { Probe } from './probe.ts';
import { containers } from './sniff.ts';

/** A version from which on the limiter can take its look-ahead out again (`alimiter=latency`), which a levelled output needs. */
export const OLDEST_FFMPEG = '5.1';

export interface Requirements {
  readonly encoders: readonly string[];
  readonly muxers: readonly string[];
  readonly demuxers: readonly string[];
  readonly filters: readonly string[];
  readonly protocols: readonly string[];
  /** By family: of each at least one decoder. */
  readonly decoders: Readonly<Record<string, readonly string[]>>;
}

/** Besides those of the formats: to measure, for waveforms, and to read a cover. */
const OTHER_MUXERS = ['null', 's16le', 'data'];
/** Besides those of sources: tags and chapters are handed over in one. */
const OTHER_DEMUXERS = ['ffmetadata'];
/** Inputs and outputs are files, progress and what is measured come through pipes. */
const PROTOCOLS = ['file', 'pipe'];

/** A source for which every part of a filter graph is needed: it is mixed down, resampled, cut and levelled. */
const SOURCE: Probe = {
  container: { name: 'wav', demuxer: 'wav', declares: 'header' },
  sizeBytes: 1,
  durationSeconds: 10,
  tracks: [
    {
      index: 0,
      streamIndex: 0,
      codec: 'pcm_s24le',
      profile: null,
      language: null,
      channels: 6,
      sampleRate: 192_000,
      bitrateKbps: null,
      bitDepth: 24,
      isFloat: false,
      isDefault: true,
      startSeconds: 0,
      declaredSeconds: 10,
      declaredForFile: true,
      tags: {},
    },
  ],
  tags: {},
  chapters: [],
  cover: null,
  isAudioOnly: true,
};

export function requirements(): Requirements {
  const plans = FormatName.options.flatMap((format) =>
    qualities.map((quality) =>
      planOutput(OutputRequest.parse({ format, quality, start: 1, end: 2, normalize: true }), SOURCE),
    ),
  );
  return {
    encoders: distinct(plans.map(({ encode }) => encode.encoder)),
    muxers: distinct([...plans.map(({ format }) => format.muxer), ...OTHER_MUXERS]),
    demuxers: distinct([...containers.map(({ demuxer }) => demuxer), ...OTHER_DEMUXERS]),
    filters: distinct(plans.flatMap(filtersOf)),
    protocols: PROTOCOLS,
    decoders: Object.fromEntries(
      Object.entries(DECODER_FAMILIES).map(([family, names]) => [family, names.split(',')]),
    ),
  };
}

/** All that is done to a track between its decoder and two encoders, one of which works on a stretch of it. */
function filtersOf(plan: OutputPlan): string[] {
  const levelled = `${branchFilters(plan, { gainDb: 1, ceilingDbtp: -1 })},${ebur128('true')}`;
  const graph = filterGraph(plan.track, plan.trim, [
    levelled,
    stretchFilters({ startSample: 1, endSample: null }),
  ]);
  const filters = graph.replaceAll(/\[[^\]]*\]/g, '').split(/[,;]/);
  return filters.map((filter) => filter.split('=')[0] ?? '');
}

function distinct(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
