/**
 * Published flaws of ffmpeg in parts that jobs use; script/ffmpeg-vex.ts has those in other parts.
 * No list is complete. These were found on 27 November 2026 in
 * - the changelogs of ffmpeg 5.1.9 and 7.1.5, and that of Debian's package 7:7.1.5-0+deb13u1;
 * - https://ffmpeg.org/security.html and https://ffmpeg.org/download.html, as of June 2026;
 * - the records of https://www.cve.org;
 * - summaries of https://depthfirst.com/research/21-zero-days-in-ffmpeg (DFVULN, CVE-2026-3921x),
 *   whose fixes the changelogs name by file.
 *
 * After a new release: change RELEASES, `fixed`, and run `node script/docs.ts`.
 */
import { numbersOf } from './check.ts';

/** The patch release of each branch that fixes all below that is fixed at all, all of June 2026. */
const RELEASES: Readonly<Record<string, number>> = { '5.1': 10, '6.1': 6, '7.1': 5, '8.0': 3, '8.1': 2 };

export interface Flaw {
  /** A CVE, or its finder's number; undefined: a fix in a changelog, without a number. */
  readonly id?: string;
  /** Kind and name of what has it, as in requirements.ts. */
  readonly part: string;
  /** What a crafted file does. */
  readonly does: string;
  /** Patch releases that fixed it before RELEASES; `never`: no release of these branches does. */
  readonly fixed?: Readonly<Record<string, number>> | 'never';
  /** Why no file reaches it although the part is used. */
  readonly unreachable?: string;
}

/** `-max_alloc` of each run (packages/media/src/run.ts). */
export const NO_LARGE_BUFFER = 'no run may allocate more than 256 MiB at once';

const MAY_2026 = { '5.1': 9, '7.1': 4 };

export const FLAWS: readonly Flaw[] = [
  {
    id: 'CVE-2025-0518',
    part: 'filter pan',
    does: 'reads out of bounds',
    fixed: { '5.1': 7, '7.1': 1, '8.0': 0, '8.1': 0 },
    unreachable: 'its options are written by the service',
  },
  {
    id: 'CVE-2025-1594',
    part: 'encoder aac',
    does: 'writes past a buffer on the stack',
    fixed: { '5.1': 8, '7.1': 2, '8.0': 0, '8.1': 0 },
  },
  { id: 'CVE-2026-39210', part: 'demuxer mpegts', does: 'overflows the heap', fixed: MAY_2026 },
  { id: 'DFVULN-120', part: 'demuxer avi', does: 'underflows a size', fixed: MAY_2026 },
  { id: 'DFVULN-121', part: 'demuxer caf', does: 'uses a negative index', fixed: MAY_2026 },
  { id: 'DFVULN-124', part: 'demuxer mov', does: 'overflows the heap', fixed: { '5.1': 0, '7.1': 4 } },
  {
    id: 'CVE-2026-40962',
    part: 'demuxer mov',
    does: 'writes out of bounds',
    fixed: { ...MAY_2026, '8.1': 0 },
  },
  { part: 'demuxer matroska', does: 'makes tracks without a limit' },
  { part: 'demuxer ogg', does: 'overflows a sum of lengths, or loops' },
  { part: 'decoder truespeech', does: 'overflows a count of samples' },
  { part: 'decoder adpcm_ms', does: 'overflows a count of samples' },
  {
    id: 'CVE-2026-66037',
    part: 'demuxer mov',
    does: 'asks for gigabytes of memory (IAMF)',
    fixed: 'never',
    unreachable: NO_LARGE_BUFFER,
  },
  {
    id: 'CVE-2026-66039',
    part: 'decoder mace6',
    does: 'overflows the heap, by a packet of 358 MB',
    fixed: 'never',
    unreachable: NO_LARGE_BUFFER,
  },
  {
    id: 'CVE-2026-75141',
    part: 'muxer ipod',
    does: 'overflows the heap',
    fixed: 'never',
    unreachable: 'no HEVC is written',
  },
  {
    id: 'CVE-2026-125102',
    part: 'decoder tak',
    does: "puts the run's own memory into the sound",
    fixed: 'never',
  },
  {
    id: 'CVE-2026-125103',
    part: 'decoder als',
    does: "puts the run's own memory into the sound",
    fixed: 'never',
  },
  { id: 'CVE-2026-125171', part: 'decoder mpc7', does: 'reads past the sound', fixed: 'never' },
  {
    id: 'CVE-2026-125182',
    part: 'decoder cook',
    does: "puts the run's own memory into the sound",
    fixed: 'never',
  },
  {
    id: 'CVE-2026-125214',
    part: 'decoder pcm_bluray',
    does: 'overflows the heap',
    fixed: 'never',
    unreachable: 'big-endian machines alone have it',
  },
  {
    id: 'CVE-2026-125225',
    part: 'muxer ipod',
    does: 'crashes, by a packet of 268 MB',
    fixed: 'never',
    unreachable: NO_LARGE_BUFFER,
  },
];

/** The flaws that a newer release of ffmpeg fixes. @param version such as `5.1.9-0+deb12u1` */
export function flawsFixedSince(version: string): Flaw[] {
  const [major, minor] = numbersOf(version) ?? [];
  const branch = `${major}.${minor}`;
  if (major === undefined || isAfterReleases(major, minor ?? 0)) return [];
  const patch = Number(/^\D?\d+\.\d+\.(\d+)/.exec(version)?.[1] ?? 0);
  return FLAWS.filter(({ fixed, unreachable }) => {
    if (fixed === 'never' || unreachable !== undefined) return false;
    return patch < (fixed?.[branch] ?? RELEASES[branch] ?? Number.POSITIVE_INFINITY);
  });
}

/** The release of its own branch that has the fixes; undefined where the branch has ended. */
export function fixedRelease(version: string): string | undefined {
  const branch = numbersOf(version)?.join('.') ?? '';
  return RELEASES[branch] === undefined ? undefined : `${branch}.${RELEASES[branch]}`;
}

/** Nothing is known of newer branches. */
function isAfterReleases(major: number, minor: number): boolean {
  return Object.keys(RELEASES).every((branch) => {
    const [newestMajor = 0, newestMinor = 0] = numbersOf(branch) ?? [];
    return major > newestMajor || (major === newestMajor && minor > newestMinor);
  });
}
