/** Prints what script/ffmpeg gives to ffmpeg's `configure`, one flag a line: all that packages/media/src/requirements.ts asks for, and nothing else. */
import { requirements } from 'soundpost-media/requirements';

/** Where `configure` has another name than the program. */
const CONFIGURE_NAMES: Readonly<Record<string, string>> = {
  g722: 'adpcm_g722',
  g726: 'adpcm_g726',
  g726le: 'adpcm_g726le',
  mpeg: 'mpegps',
  real_144: 'ra_144',
  real_288: 'ra_288',
  s16le: 'pcm_s16le',
  shn: 'shorten',
};

function enable(kind: string, names: readonly string[]): string {
  return `--enable-${kind}=${names.map((name) => CONFIGURE_NAMES[name] ?? name).join(',')}`;
}

const needs = requirements();
// Whatever a library decodes ffmpeg decodes too: libraries are for encoding.
const decoders = Object.values(needs.decoders)
  .flat()
  .filter((name) => !name.startsWith('lib'));
const libraries = needs.encoders.filter((name) => name.startsWith('lib'));

const flags = [
  ...[
    '--disable-everything',
    '--disable-autodetect',
    '--disable-network',
    '--disable-debug',
    '--disable-doc',
  ],
  ...['--disable-ffplay', '--disable-avdevice', '--disable-swscale', '--disable-postproc'],
  ...libraries.map((name) => `--enable-${name}`),
  // PNG covers, and headers that MP4 and Matroska may compress
  '--enable-zlib',
  enable('protocol', needs.protocols),
  enable('demuxer', needs.demuxers),
  enable('muxer', needs.muxers),
  enable('decoder', decoders),
  enable('encoder', needs.encoders),
  enable('parser', needs.parsers),
  enable('bsf', needs.bitstreamFilters),
  enable('filter', needs.filters),
  // One file each, hardened as Debian's own build is (`--toolchain=hardened` knows no static-pie).
  ...['--enable-pic', '--pkg-config-flags=--static'],
  '--extra-cflags=-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2',
  '--extra-ldflags=-Wl,-z,relro,-z,now',
  '--extra-ldexeflags=-static-pie',
];
process.stdout.write(flags.map((flag) => `${flag}\n`).join(''));
