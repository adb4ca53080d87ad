/**
 * Which published flaws of ffmpeg are in what script/ffmpeg builds: ffmpeg.openvex.json, for scanners
 * (OpenVEX 0.2.0), and the tables of SECURITY.md. Sources: src/cli/doctor/ffmpeg-flaws.ts.
 */
import { requirements } from 'soundpost-media/requirements';
import {
  FLAWS,
  type Flaw,
  fixedRelease,
  flawsFixedSince,
  NO_LARGE_BUFFER,
} from '../src/cli/doctor/ffmpeg-flaws.ts';
import { code, markdownTable } from './markdown-table.ts';

/** Debian's version whose changelog was read. script/ffmpeg builds it, or a newer one. */
const SOURCE_VERSION = '7.1.5-0+deb13u1';
/** When the sources were read last. */
const READ_ON = '2026-11-27';

/** By part, as far as records or changelogs name it: none of these is built. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'decoder adpcm_adx': ['CVE-2026-64835'],
  'decoder apac': ['CVE-2026-125267'],
  'decoder av1': ['CVE-2026-30997'],
  'decoder bitpacked': ['CVE-2026-125193'],
  'decoder cdxl': ['CVE-2026-120246'],
  'decoder flashsv2': ['CVE-2026-125176'],
  'decoder flic': ['CVE-2026-125241'],
  'decoder g2m': ['CVE-2026-120243'],
  'decoder hevc': ['CVE-2026-125185', 'CVE-2026-125262'],
  'decoder imc': ['CVE-2026-125073'],
  'decoder libaribcaption': ['CVE-2026-125210'],
  'decoder magicyuv': ['CVE-2026-8461'],
  'decoder mp3adu': ['CVE-2026-125072'],
  'decoder mscc': ['CVE-2026-125177'],
  'decoder mvc2': ['CVE-2026-125190'],
  'decoder vble': ['CVE-2026-125067'],
  'decoder vmnc': ['CVE-2026-125101'],
  'decoder vp9': ['CVE-2026-39217'],
  'decoder vvc': ['CVE-2026-125244', 'CVE-2026-125251', 'CVE-2026-125254'],
  'demuxer dash': ['CVE-2026-39218', 'CVE-2026-75146', 'CVE-2026-107677'],
  'demuxer dvdvideo': ['CVE-2026-133519'],
  'demuxer hls': ['CVE-2026-107695', 'CVE-2026-107697'],
  'demuxer rtsp': [
    ...['CVE-2026-64834', 'CVE-2026-107696', 'CVE-2026-107698'],
    ...['DFVULN-116', 'DFVULN-118', 'DFVULN-122', 'DFVULN-123', 'DFVULN-125', 'DFVULN-127'],
  ],
  'demuxer ty': ['CVE-2026-65704'],
  'demuxer vobsub': ['CVE-2026-64830'],
  'encoder dvbsub': ['CVE-2026-125233'],
  'encoder dvdsub': ['CVE-2026-125209'],
  'encoder exr': ['CVE-2026-125260'],
  'encoder h263': ['CVE-2026-39215'],
  'encoder huffyuv': ['CVE-2026-125256'],
  'encoder liboapv': ['CVE-2026-125196'],
  'encoder libwebp': ['CVE-2026-125204'],
  'encoder mpeg4': ['CVE-2026-125232'],
  'encoder nellymoser': ['CVE-2026-125257'],
  'encoder pcm_dvd': ['CVE-2026-125194'],
  'encoder prores_ks': ['CVE-2026-125259'],
  'encoder roq_dpcm': ['CVE-2026-125217'],
  'encoder vorbis': ['CVE-2026-125228'],
  'encoder wavpack': ['CVE-2026-125234'],
  'bsf dovi_rpu': ['CVE-2026-125215', 'CVE-2026-125258'],
  'hwaccel dxva2': ['CVE-2026-125239'],
  'hwaccel nvdec': ['CVE-2026-125265'],
  'hwaccel vaapi': ['CVE-2026-125202'],
  'hwaccel vulkan': ['CVE-2026-125201', 'CVE-2026-125248'],
  'library swscale': ['CVE-2026-39211', 'DFVULN-126'],
  'muxer image2': ['CVE-2026-39216'],
  'muxer mpeg': ['CVE-2026-75142'],
  'muxer mpegts': ['CVE-2026-39214'],
  'muxer rtp': ['CVE-2026-75144', 'CVE-2026-75147'],
  'muxer spdif': ['CVE-2026-64833'],
  'muxer yuv4mpegpipe': ['CVE-2026-39213'],
  'parser dvdsub': ['CVE-2026-6385'],
  'protocol librist': ['CVE-2026-75143'],
  'protocol rtmp': ['DFVULN-117'],
};

/** Of each kind, the names of what is built (script/ffmpeg-flags.ts). */
export function builtParts(): Readonly<Record<string, readonly string[]>> {
  const needs = requirements();
  return {
    bsf: needs.bitstreamFilters,
    decoder: Object.values(needs.decoders).flat(),
    demuxer: needs.demuxers,
    encoder: needs.encoders,
    filter: needs.filters,
    hwaccel: [],
    library: ['avcodec', 'avfilter', 'avformat', 'avutil', 'swresample'],
    muxer: needs.muxers,
    parser: needs.parsers,
    protocol: needs.protocols,
  };
}

/** OpenVEX 0.2.0: https://github.com/openvex/spec */
export function vexDocument(): string {
  const unbuilt = Object.entries(ELSEWHERE).flatMap(([part, ids]) =>
    ids.map((id) =>
      statement(id, {
        status: 'not_affected',
        justification: 'vulnerable_code_not_present',
        status_notes: `In ${part}, which is not built`,
      }),
    ),
  );
  const statements = [
    ...FLAWS.flatMap((flaw) => (flaw.id === undefined ? [] : [statement(flaw.id, verdictOf(flaw))])),
    ...unbuilt,
  ];
  const document = {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `urn:soundpost:ffmpeg-vex:${READ_ON}`,
    author: 'Soundpost',
    timestamp: `${READ_ON}T00:00:00Z`,
    version: 1,
    tooling: 'node script/docs.ts',
    statements,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function statement(id: string, verdict: Readonly<Record<string, string>>) {
  const product = `pkg:deb/debian/ffmpeg@7:${SOURCE_VERSION.replace('+', '%2B')}?arch=source&distro=trixie`;
  return { vulnerability: { name: id }, products: [{ '@id': product }], ...verdict };
}

function verdictOf(flaw: Flaw): Readonly<Record<string, string>> {
  const { part, does, unreachable } = flaw;
  const notes = { status_notes: `In ${part}: a crafted file ${does}` };
  if (isFixed(flaw)) return { status: 'fixed', ...notes };
  if (unreachable !== undefined) {
    return {
      status: 'not_affected',
      justification:
        unreachable === NO_LARGE_BUFFER
          ? 'inline_mitigations_already_exist'
          : 'vulnerable_code_not_in_execute_path',
      impact_statement: unreachable,
      ...notes,
    };
  }
  return {
    status: 'affected',
    ...notes,
    action_statement: `No release of this branch fixes it. Leave SANDBOX at "required", which confines the run and limits its memory.`,
  };
}

const isFixed = ({ fixed }: Flaw): boolean => fixed !== 'never';

/** What is or was in the parts that are built. */
export function flawTable(): string {
  if (flawsFixedSince(SOURCE_VERSION).length > 0) {
    throw new Error(`${SOURCE_VERSION} is older than ${fixedRelease(SOURCE_VERSION)}, which has more fixes`);
  }
  const rows = [...FLAWS].sort((one, other) => Number(isFixed(one)) - Number(isFixed(other)));
  return markdownTable(
    ['Flaw', 'In', 'A crafted file', `Debian's ${SOURCE_VERSION}`],
    rows.map((flaw) => [
      flaw.id ?? '(without a number)',
      code(flaw.part),
      flaw.does,
      isFixed(flaw) ? 'fixed' : (flaw.unreachable ?? '**not fixed**'),
    ]),
  );
}

/** What is not built, by kind. */
export function unbuiltTable(): string {
  const kinds = [...new Set(Object.keys(ELSEWHERE).map(kindOf))].sort();
  return markdownTable(
    ['Not built', 'Flaws in them', 'Names'],
    kinds.map((kind) => {
      const parts = Object.entries(ELSEWHERE).filter(([part]) => kindOf(part) === kind);
      const names = parts.map(([part]) => code(part.slice(kind.length + 1)));
      return [kind, String(parts.flatMap(([, ids]) => ids).length), names.join(', ')];
    }),
  );
}

const kindOf = (part: string): string => part.slice(0, part.indexOf(' '));
