/** A file for each container and each decoder of the build (docs/inputs.md). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder, cachedMedia } from 'soundpost-testing/media-cache';
import * as rare from './rare-files.ts';

export interface Way {
  readonly name: string;
  readonly demuxer: string;
  readonly codec: string;
  /** Its path. */
  readonly file: (name: string) => Promise<string>;
}

/** ffmpeg's arguments. */
export const SOUND = ['-f', 'lavfi', '-i', 'anoisesrc=d=1:r=48000:a=0.3:seed=7'];
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=s=720x576:r=25:d=1', '-pix_fmt', 'yuv420p'];

/** By ffmpeg. */
const encoded = (name: string, demuxer: string, codec: string, options = ''): Way => ({
  ...{ name, demuxer, codec },
  file: () => cachedMedia(name, [...SOUND, ...options.split(' ').filter(Boolean), '-strict', '-2']),
});

/** By rare-files.ts. */
const made = (name: string, demuxer: string, codec: string, make: () => Buffer): Way => ({
  ...{ name, demuxer, codec },
  async file() {
    const bytes = make();
    const fill = (folder: string): Promise<void> => writeFile(join(folder, name), bytes);
    return join(await cachedFolder([name, bytes.toString('base64')], fill), name);
  },
});

const PCM = [
  ...[
    'alaw',
    'mulaw',
    'u8',
    's8',
    's8_planar',
    's16le',
    's16be',
    's16le_planar',
    's16be_planar',
    'u16le',
    'u16be',
  ],
  ...['s24le', 's24be', 's24le_planar', 'u24le', 'u24be', 's32le', 's32be', 's32le_planar', 'u32le', 'u32be'],
  ...['s64le', 's64be', 'f32le', 'f32be', 'f64le', 'f64be'],
];

/** To each container and each decoder of the build. */
export const ways: readonly Way[] = [
  encoded('a.mp4', 'mov', 'aac'),
  encoded('alac.mov', 'mov', 'alac', '-c:a alac'),
  encoded('gsm.mov', 'mov', 'gsm', '-c:a libgsm -ar 8000'),
  made('als.mp4', 'mov', 'mp4als', rare.als),
  made('mp3on4.mp4', 'mov', 'mp3on4', rare.mp3on4),
  encoded('a.mka', 'matroska', 'opus', '-c:a libopus'),
  encoded('a.flv', 'flv', 'nellymoser', '-c:a nellymoser -ar 22050'),
  encoded('adpcm.flv', 'flv', 'adpcm_swf', '-c:a adpcm_swf -ar 22050'),
  encoded('a.ogg', 'ogg', 'vorbis', '-c:a libvorbis'),
  encoded('a.spx', 'ogg', 'speex', '-c:a libspeex -ar 16000'),
  encoded('a.flac', 'flac', 'flac'),
  encoded('a.mxf', 'mxf', 'pcm_s16le', '-f mxf_opatom'),
  encoded('a.mpg', 'mpeg', 'mp2'),
  encoded('dvd.vob', 'mpeg', 'pcm_dvd', '-c:a pcm_dvd -ac 2'),
  encoded('a.mp3', 'mp3', 'mp3'),
  encoded('a.mp2', 'mp3', 'mp2'),
  made('a.mp1', 'mp3', 'mp1', rare.layer1),
  encoded('a.aac', 'aac', 'aac'),
  encoded('a.latm', 'loas', 'aac_latm'),
  encoded('a.ac3', 'ac3', 'ac3'),
  encoded('a.eac3', 'eac3', 'eac3'),
  encoded('a.dts', 'dts', 'dts', '-c:a dca -ac 2'),
  encoded('a.thd', 'truehd', 'truehd', '-ac 2'),
  encoded('a.mlp', 'mlp', 'mlp', '-ac 2 -c:a mlp -f mlp'),
  {
    ...{ name: 'a.dv', demuxer: 'dv', codec: 'pcm_s16le' },
    file: (name) => cachedMedia(name, [...SOUND, ...PICTURE, '-ac', '2', '-f', 'dv']),
  },
  encoded('a.ts', 'mpegts', 'mp2'),
  encoded('s302m.ts', 'mpegts', 's302m', '-c:a s302m -ac 2'),
  encoded('disc.m2ts', 'mpegts', 'pcm_bluray', '-c:a pcm_bluray -mpegts_m2ts_mode 1 -ac 2'),
  ...['adpcm_ms', 'adpcm_ima_wav', 'adpcm_yamaha'].map((codec) =>
    encoded(`${codec}.wav`, 'wav', codec, `-c:a ${codec}`),
  ),
  encoded('g722.wav', 'wav', 'adpcm_g722', '-c:a g722 -ar 16000'),
  encoded('g726.wav', 'wav', 'adpcm_g726', '-c:a g726 -ar 8000'),
  encoded('g723.wav', 'wav', 'g723_1', '-c:a g723_1 -ar 8000 -b:a 6300'),
  encoded('gsm.wav', 'wav', 'gsm_ms', '-c:a libgsm_ms -ar 8000'),
  made('half.wav', 'wav', 'pcm_f16le', () => rare.coolEdit(16)),
  made('float24.wav', 'wav', 'pcm_f24le', () => rare.coolEdit(24)),
  made('atrac3.wav', 'wav', 'atrac3', rare.atrac3),
  made('truespeech.wav', 'wav', 'truespeech', rare.truespeech),
  made('pro.wav', 'wav', 'wmapro', rare.wmaPro),
  made('voice.wav', 'wav', 'wmavoice', rare.wmaVoice),
  made('lossless.wav', 'wav', 'wmalossless', rare.wmaLossless),
  encoded('a.w64', 'w64', 'pcm_s16le'),
  encoded('a.avi', 'avi', 'mp3', '-c:a libmp3lame'),
  encoded('a.aiff', 'aiff', 'pcm_s16be'),
  encoded('qt.aiff', 'aiff', 'adpcm_ima_qt', '-c:a adpcm_ima_qt -f aiff'),
  encoded('a.caf', 'caf', 'pcm_s16le', '-c:a pcm_s16le'),
  made('ilbc.caf', 'caf', 'ilbc', rare.ilbc),
  made('mace3.caf', 'caf', 'mace3', () => rare.mace(3)),
  made('mace6.caf', 'caf', 'mace6', () => rare.mace(6)),
  made('qdm2.caf', 'caf', 'qdm2', rare.qdm2),
  encoded('a.wma', 'asf', 'wmav2', '-c:a wmav2'),
  encoded('one.wma', 'asf', 'wmav1', '-c:a wmav1'),
  encoded('a.au', 'au', 'pcm_s16be'),
  encoded('g726.au', 'au', 'adpcm_g726le', '-c:a g726le -ar 8000'),
  encoded('a.wv', 'wv', 'wavpack'),
  encoded('a.tta', 'tta', 'tta'),
  made('a.amr', 'amr', 'amr_nb', () => rare.amr(false)),
  made('a.awb', 'amr', 'amr_wb', () => rare.amr(true)),
  made('a.ape', 'ape', 'ape', rare.ape),
  encoded('a.rm', 'rm', 'ac3', '-c:a ac3'),
  encoded('ra144.rm', 'rm', 'ra_144', '-c:a real_144 -ar 8000'),
  made('ra288.rm', 'rm', 'ra_288', rare.ra288),
  made('sipr.rm', 'rm', 'sipr', rare.sipr),
  made('cook.rm', 'rm', 'cook', rare.cook),
  made('ralf.rmvb', 'rm', 'ralf', rare.ralf),
  encoded('a.wtv', 'wtv', 'mp2', '-c:a mp2'),
  made('a.dsf', 'dsf', 'dsd_lsbf_planar', () => rare.dsf(1)),
  made('b.dsf', 'dsf', 'dsd_msbf_planar', () => rare.dsf(8)),
  made('a.dff', 'iff', 'dsd_msbf', () => rare.dsdiff(false)),
  made('dst.dff', 'iff', 'dst', () => rare.dsdiff(true)),
  made('eight.mpc', 'mpc8', 'musepack8', rare.mpc8),
  made('seven.mpc', 'mpc', 'musepack7', rare.mpc7),
  made('a.tak', 'tak', 'tak', rare.tak),
  made('a.shn', 'shn', 'shorten', rare.shorten),
  encoded('a.voc', 'voc', 'pcm_u8', '-c:a pcm_u8'),
  ...[4, 3, 2].map((bits) => made(`${bits}.voc`, 'voc', `adpcm_sbpro_${bits}`, () => rare.voc(5 - bits))),
  made('a.qcp', 'qcp', 'qcelp', rare.qcp),
  ...PCM.map((name) => encoded(`${name}.nut`, 'nut', `pcm_${name}`, `-c:a pcm_${name}`)),
];
