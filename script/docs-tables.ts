/** The tables of the documentation that are made from the code. */

import { type CatalogueEntry, errorCatalogue } from 'soundpost-contract/errors';
import { type Format, formats } from 'soundpost-contract/formats';
import { type GatewayCatalogueEntry, gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { Environment } from 'soundpost-kit/settings/environment';
import { DECODED_CODECS } from 'soundpost-media/command';
import { LEFT_OUT } from 'soundpost-media/other-files';
import { containers } from 'soundpost-media/sniff';
import { z } from 'zod';
import { routes } from '../src/api/app.ts';
import { code, markdownTable } from './markdown-table.ts';

export function formatTable(): string {
  return markdownTable(
    ['`output.format`', 'What you get', 'Media type', 'low', 'medium', 'high', 'extreme', '`output.bitrate`'],
    Object.entries(formats).map(([name, format]) => [
      code(name),
      `${CODEC_NAMES[format.codec]}, \`.${format.extension}\`${format.maxChannels === 1 ? ', mono' : ''}`,
      code(format.mediaType),
      ...qualityCells(format),
      format.bitrateRange === null ? '–' : `${format.bitrateRange.min}k to ${format.bitrateRange.max}k`,
    ]),
  );
}

const CODEC_NAMES: Readonly<Record<Format['codec'], string>> = {
  mp3: 'MP3',
  aac: 'AAC',
  flac: 'FLAC',
  pcm: 'PCM',
  vorbis: 'Vorbis',
  opus: 'Opus',
};

/** What a source may come in, by what the service tells it by. */
export function containerTable(): string {
  const byDemuxer = [...new Set(containers.map(({ demuxer }) => demuxer))];
  return markdownTable(
    ['`inputFile.format`', 'What it is', 'Usual extensions'],
    byDemuxer.map((demuxer) => {
      const known = READABLE[demuxer];
      if (known === undefined) throw new Error(`say in script/docs-tables.ts what ${demuxer} is`);
      const names = containers.filter((container) => container.demuxer === demuxer).map(({ name }) => name);
      const [title, extensions, others = []] = known;
      return [
        [...new Set([...names, ...others])].map(code).join(', '),
        title,
        extensions.map((extension) => code(`.${extension}`)).join(', '),
      ];
    }),
  );
}

/** By ffmpeg's demuxer: what it is, extensions, further names that its kinds have. */
const READABLE: Readonly<
  Record<string, readonly [title: string, extensions: readonly string[], others?: readonly string[]]>
> = {
  ogg: ['Ogg', ['ogg', 'oga', 'opus', 'ogv']],
  flac: ['FLAC', ['flac']],
  wav: ['WAV, RF64, BW64', ['wav']],
  w64: ['Wave64', ['w64']],
  avi: ['AVI', ['avi']],
  aiff: ['AIFF, AIFF-C', ['aif', 'aiff', 'aifc']],
  caf: ['Core Audio Format', ['caf']],
  flv: ['Flash Video', ['flv']],
  asf: ['ASF: Windows Media', ['wmv', 'wma', 'asf']],
  mpeg: ['MPEG program stream', ['mpg', 'mpeg', 'vob']],
  amr: ['AMR, narrow and wide band', ['amr', 'awb']],
  au: ['AU', ['au', 'snd']],
  wv: ['WavPack', ['wv']],
  ape: ["Monkey's Audio", ['ape']],
  tta: ['True Audio', ['tta']],
  rm: ['RealMedia, RealAudio', ['rm', 'rmvb', 'ra']],
  wtv: ['Windows Recorded TV Show', ['wtv']],
  dsf: ['DSD Stream File', ['dsf']],
  iff: ['DSDIFF', ['dff']],
  mpc8: ['Musepack, stream version 8', ['mpc']],
  mpc: ['Musepack, stream version 7', ['mpc']],
  tak: ["Tom's lossless Audio Kompressor", ['tak']],
  shn: ['Shorten', ['shn']],
  voc: ['Creative Voice File', ['voc']],
  nut: ['NUT', ['nut']],
  qcp: ['QCP', ['qcp']],
  ac3: ['AC-3', ['ac3']],
  mov: [
    'MP4, QuickTime, 3GPP',
    ['mp4', 'mov', 'm4a', 'm4b', 'm4v', '3gp', '3g2'],
    ['mov', 'm4a', 'm4b', 'm4v', '3gp', '3g2'],
  ],
  mp3: ['MP3, also MPEG audio of layers I and II', ['mp3', 'mp2', 'mp1']],
  aac: ['AAC in ADTS', ['aac']],
  loas: ['AAC in LATM/LOAS', ['latm', 'loas']],
  mxf: ['MXF', ['mxf']],
  eac3: ['E-AC-3', ['eac3', 'ec3']],
  dts: ['DTS', ['dts']],
  truehd: ['Dolby TrueHD', ['thd']],
  mlp: ['MLP', ['mlp']],
  dv: ['DV', ['dv']],
  mpegts: ['MPEG transport stream, also of cameras (AVCHD) and Blu-ray', ['ts', 'mts', 'm2ts']],
  matroska: ['Matroska, WebM', ['mkv', 'mka', 'webm'], ['webm']],
};

/** The codecs that are decoded, by what they are. */
export function codecTable(): string {
  const codecs = [...DECODED_CODECS].filter((codec) => !codec.startsWith('lib') && !COVERS.has(codec));
  const rows = SOUND_CODECS.map(([title, pattern]) => ({
    title,
    names: codecs.filter((codec) => pattern.test(codec)).toSorted(),
  }));
  const told = rows.flatMap(({ names }) => names);
  const untold = codecs.filter((codec) => !told.includes(codec));
  if (untold.length > 0) throw new Error(`say in script/docs-tables.ts what ${untold.join(', ')} is`);
  return markdownTable(
    ['Codec', '`tracks[].codec`'],
    rows.map(({ title, names }) => [title, names.map(code).join(', ')]),
  );
}

const COVERS: ReadonlySet<string> = new Set(['mjpeg', 'png']);

/** What a codec is, and the names that ffmpeg has for it. */
const SOUND_CODECS: readonly (readonly [title: string, names: RegExp])[] = [
  ['AAC: LC, HE, LD, and xHE with ffmpeg 7.1', /^aac/],
  ['MP3, also in MPEG-4', /^mp3/],
  ['MPEG audio of layers I and II', /^mp[12]$/],
  ['MPEG-4 ALS', /^mp4als$/],
  ['Opus', /^opus$/],
  ['Vorbis', /^vorbis$/],
  ['Speex', /^speex$/],
  ['FLAC', /^flac$/],
  ['ALAC', /^alac$/],
  ['WavPack', /^wavpack$/],
  ['True Audio', /^tta$/],
  ["Monkey's Audio", /^ape$/],
  ["Tom's lossless Audio Kompressor", /^tak$/],
  ['Shorten', /^shorten$/],
  ['AC-3, E-AC-3', /^e?ac3$/],
  ['DTS', /^dts$/],
  ['Dolby TrueHD, MLP', /^(truehd|mlp)$/],
  ['SMPTE 302M', /^s302m$/],
  ['DSD, DST', /^ds[dt]/],
  ['Musepack', /^musepack/],
  ['RealAudio: 14.4, 28.8, Cook, Sipro, Lossless', /^(ra_|cook|sipr|ralf)/],
  ['ATRAC3', /^atrac3$/],
  ['Windows Media Audio: 1, 2, Pro, Voice, Lossless', /^wma/],
  ['AMR, narrow and wide band', /^amr/],
  ['GSM', /^gsm/],
  ['iLBC, QCELP, G.723.1, TrueSpeech', /^(ilbc|qcelp|g723_1|truespeech)$/],
  ['ADPCM, also G.722 and G.726', /^adpcm_/],
  ['QDesign Music 2', /^qdm2$/],
  ['MACE', /^mace/],
  ['Nellymoser', /^nellymoser$/],
  ['PCM', /^pcm_/],
];

/** Sound that is not read, and why. */
export function leftOutTable(): string {
  return markdownTable(
    ['Not supported', 'Usual extensions', 'Why'],
    LEFT_OUT.map(({ name, extensions, reason }) => [
      name,
      extensions.map((extension) => code(`.${extension}`)).join(', '),
      reason,
    ]),
  );
}

/** A quality of a lossless format chooses the bit depth (decisions A3). */
function qualityCells({ quality }: Format): string[] {
  return quality === 'lossless'
    ? ['16 bit', '16 bit', "the source's depth, at most 24 bit", 'as high']
    : [quality.low, quality.medium, quality.high, quality.extreme].map((kbps) => `${kbps}k`);
}

export function routeTable(): string {
  return markdownTable(
    ['Route', 'Key', 'What it does'],
    routes.map(({ method, path, access, docs }) => [
      code(`${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
      access.by === 'public'
        ? 'none'
        : `\`${access.scope}\`${access.by === 'signature' ? ', or a signed URL' : ''}`,
      docs.summary,
    ]),
  );
}

export function errorTable(): string {
  const entries: [string, CatalogueEntry][] = Object.entries(errorCatalogue);
  return markdownTable(
    ['Code', 'HTTP', 'Who must act', 'Retry', 'What it means', 'What to do'],
    entries.map(([name, { httpStatus, blame, retryable, meaning, remedy }]) => [
      anchored(name, name),
      String(httpStatus),
      `the ${blame}`,
      retryable ? 'yes, later' : 'no',
      meaning,
      remedy,
    ]),
  );
}

export function gatewayErrorTable(): string {
  const entries: [string, GatewayCatalogueEntry][] = Object.entries(gatewayErrorCatalogue);
  return markdownTable(
    ['Code', 'HTTP', 'Retry', 'What it means', 'What to do'],
    entries.map(([name, { httpStatus, retryable, meaning, remedy }]) => [
      anchored(`gateway-${name}`, name),
      String(httpStatus),
      retryable ? 'yes, later' : 'no',
      meaning,
      remedy,
    ]),
  );
}

function anchored(id: string, name: string): string {
  return `<a id="${id}"></a>${code(name)}`;
}

export function configurationTable(): string {
  const variables = z.toJSONSchema(Environment, { io: 'input', unrepresentable: 'any' }).properties ?? {};
  return markdownTable(
    ['Variable', 'Default', 'Value', 'What it is'],
    Object.entries(variables).map(([name, schema]) => {
      const rule = typeof schema === 'object' ? schema : {};
      const { meaning, fallback } = splitDescription(rule.description ?? '');
      return [
        `<a id="${name}"></a>${code(name)}`,
        fallback ?? defaultCell(name, effectiveDefault(name)),
        valueCell(name, rule),
        meaning,
      ];
    }),
  );
}

/** A description says itself what holds without the variable where that is no plain value. */
function splitDescription(description: string): { meaning: string; fallback: string | undefined } {
  const parts = description.split('; ');
  const fallback = parts.find((part) => /^(default|unset)\b/.test(part));
  return {
    meaning: parts
      .filter((part) => part !== fallback)
      .join('; ')
      .replace(/, (seconds|bytes)$/, ''),
    fallback: fallback?.replace(/^(default|unset):? /, ''),
  };
}

function effectiveDefault(name: string): unknown {
  const shape: Readonly<Record<string, z.ZodType>> = Environment.shape;
  return shape[name]?.safeParse(undefined).data;
}

function defaultCell(name: string, value: unknown): string {
  if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) {
    return 'unset';
  }
  // An absolute path would be that of the machine that wrote the page.
  if (name === 'DATA_DIR') {
    return code('./data');
  }
  const text = Array.isArray(value) ? value.join(',') : String(value);
  const spoken = typeof value === 'number' ? inWords(name, value) : undefined;
  return spoken === undefined ? code(text) : `${code(text)} (${spoken})`;
}

const UNITS: readonly (readonly [suffix: RegExp, size: number, unit: string])[] = [
  [/_SECONDS$/, 86_400, 'days'],
  [/_SECONDS$/, 3600, 'hours'],
  [/_BYTES$/, 1024 ** 3, 'GiB'],
];

/** Large numbers in a unit that can be read; undefined for what can be read as it is. */
function inWords(name: string, value: number): string | undefined {
  const row = UNITS.find(([suffix, size]) => suffix.test(name) && value >= size && value % size === 0);
  if (row === undefined) {
    return undefined;
  }
  const [, size, unit] = row;
  const count = value / size;
  return `${count} ${count === 1 ? unit.replace(/s$/, '') : unit}`;
}

function valueCell(name: string, rule: z.core.JSONSchema.BaseSchema): string {
  if (rule.enum !== undefined) {
    return rule.enum.map((word) => code(String(word))).join(', ');
  }
  const unit = /_SECONDS$/.test(name) ? ', seconds' : /_BYTES$/.test(name) ? ', bytes' : '';
  if (rule.type === 'integer') {
    const { minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER } = rule;
    const from = minimum ?? Number(exclusiveMinimum ?? 0) + 1;
    const range = maximum < Number.MAX_SAFE_INTEGER ? `${from} to ${maximum}` : `${from} or more`;
    return `integer, ${range}${unit}`;
  }
  if (rule.type === 'number') {
    return `number ${rule.minimum === undefined ? 'above 0' : `from ${rule.minimum}`}${unit}`;
  }
  if (Array.isArray(effectiveDefault(name))) {
    return `list, separated by commas${unit}`;
  }
  if (rule.format === 'uri') {
    return 'http(s) URL';
  }
  return rule.pattern !== undefined
    ? code(rule.pattern.replaceAll('\\/', '/'))
    : rule.minLength !== undefined && rule.minLength > 1
      ? `text, ${rule.minLength} characters or more`
      : 'text';
}
