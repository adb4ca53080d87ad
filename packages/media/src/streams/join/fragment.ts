/** A fragment's box (`moof`, ISO/IEC 14496-12 section 8.8), read and changed in place. */
import {
  type Box,
  boxHeader,
  childrenOf,
  Fields,
  onlyBox,
  requiredBox,
  UnsupportedLayout,
  viewOf,
} from '../../sparse/mp4/boxes.ts';
import { readMovie } from './movie.ts';

const TFHD = { base: 0x1, description: 0x2, duration: 0x8 };
const TRUN = { offset: 0x1, firstFlags: 0x4, duration: 0x100, size: 0x200, flags: 0x400, composition: 0x800 };

const MAX_32 = 0xffff_ffff;

/** A fragment's samples of one track. Places are positions in the box's payload. */
export interface TrackRun {
  readonly track: number;
  /** When its first sample plays, in ticks of the track; undefined if not given. */
  readonly startTicks: number | undefined;
  /** How long after that it is shown, ticks: pictures are not decoded in order. */
  readonly offsetTicks: number;
  /** Length of the samples whose length is given, and how many others there are. */
  readonly knownTicks: number;
  readonly otherSamples: number;
  /** The base of sample offsets, if the fragment has one. */
  readonly base: number | undefined;
  readonly tfhdAt: number;
  readonly tfdtAt: number;
  /** Whether its time has 64 bits. */
  readonly isLong: boolean;
}

/** @param moof the payload of the box. @throws UnsupportedLayout */
export function runsOf(moof: Uint8Array): TrackRun[] {
  return childrenOf(moof)
    .filter(({ type }) => type === 'traf')
    .map(({ payload }) => runOf(childrenOf(payload), moof.byteOffset));
}

function runOf(traf: readonly Box[], moofAt: number): TrackRun {
  const tfhd = requiredBox(traf, 'tfhd');
  const fields = new Fields(tfhd);
  const flags = fields.unsigned32();
  const track = fields.unsigned32();
  const base = flags & TFHD.base ? fields.unsigned64() : undefined;
  if (flags & TFHD.description) fields.unsigned32();
  const ownTicks = flags & TFHD.duration ? fields.unsigned32() : undefined;
  const tfdt = onlyBox(traf, 'tfdt');
  const isLong = tfdt?.payload[0] === 1;
  const truns = traf.filter(({ type }) => type === 'trun');
  const lengths = truns.map((trun) => lengthOf(trun, ownTicks));
  return {
    track,
    startTicks: tfdt && startOf(tfdt, isLong),
    offsetTicks: offsetOf(truns[0]),
    knownTicks: lengths.reduce((sum, { knownTicks }) => sum + knownTicks, 0),
    otherSamples: lengths.reduce((sum, { otherSamples }) => sum + otherSamples, 0),
    base,
    tfhdAt: tfhd.payload.byteOffset - moofAt,
    tfdtAt: (tfdt?.payload.byteOffset ?? 0) - moofAt,
    isLong,
  };
}

/** @param defaultTicks of a sample, by the movie's header */
export function lengthTicks(
  { knownTicks, otherSamples }: Pick<TrackRun, 'knownTicks' | 'otherSamples'>,
  defaultTicks: number,
): number {
  return knownTicks + otherSamples * defaultTicks;
}

/** @param moof the payload of the box that the run is in. @throws UnsupportedLayout */
export function setStart(moof: Uint8Array, run: TrackRun, ticks: number): void {
  if (run.startTicks === undefined) return;
  if (run.isLong) viewOf(moof).setBigUint64(run.tfdtAt + 4, BigInt(ticks));
  else if (ticks > MAX_32) throw new UnsupportedLayout('a time beyond what its box can hold');
  else viewOf(moof).setUint32(run.tfdtAt + 4, ticks);
}

export function setTrack(moof: Uint8Array, { tfhdAt }: TrackRun, number: number): void {
  viewOf(moof).setUint32(tfhdAt + 4, number);
}

/** Moves the base of sample offsets, if the fragment has one. */
export function moveBase(moof: Uint8Array, { base, tfhdAt }: TrackRun, bytes: number): void {
  if (base !== undefined) viewOf(moof).setBigUint64(tfhdAt + 8, BigInt(Math.max(0, base + bytes)));
}

function startOf(tfdt: Box, isLong: boolean): number {
  const fields = new Fields(tfdt);
  fields.unsigned32();
  return isLong ? fields.unsigned64() : fields.unsigned32();
}

/** The composition time offset of the first sample, which is signed in version 1. */
function offsetOf(trun: Box | undefined): number {
  if (trun === undefined) return 0;
  const fields = new Fields(trun);
  const flags = fields.unsigned32();
  const samples = fields.unsigned32();
  if ((flags & TRUN.composition) === 0 || samples === 0) return 0;
  const before = [TRUN.offset, TRUN.firstFlags, TRUN.duration, TRUN.size, TRUN.flags];
  for (const flag of before) if (flags & flag) fields.unsigned32();
  return trun.payload[0] === 0 ? fields.unsigned32() : fields.signed32();
}

/** @param ownTicks of a sample, by the fragment's own header */
function lengthOf(trun: Box, ownTicks: number | undefined): Pick<TrackRun, 'knownTicks' | 'otherSamples'> {
  const fields = new Fields(trun);
  const flags = fields.unsigned32();
  const samples = fields.unsigned32();
  if ((flags & TRUN.duration) === 0) {
    return ownTicks === undefined
      ? { knownTicks: 0, otherSamples: samples }
      : { knownTicks: samples * ownTicks, otherSamples: 0 };
  }
  if (flags & TRUN.offset) fields.unsigned32();
  if (flags & TRUN.firstFlags) fields.unsigned32();
  const others = [TRUN.size, TRUN.flags, TRUN.composition].filter((flag) => flags & flag).length;
  let knownTicks = 0;
  // A box that is too short throws: the number of samples is not trusted.
  for (let sample = 0; sample < samples; sample += 1) {
    knownTicks += fields.unsigned32();
    for (let other = 0; other < others; other += 1) fields.unsigned32();
  }
  return { knownTicks, otherSamples: 0 };
}

/** Of a fragment's box, most of which may be missing. */
const MAX_FIRST_BOX_BYTES = 1024 * 1024;

/**
 * @param init the header of the stream
 * @param head the fragment's beginning with its times, which precede the list of samples
 * @returns seconds on the stream's clock; undefined if not given. @throws UnsupportedLayout
 */
export function fragmentStartSeconds(init: Uint8Array, head: Buffer): number | undefined {
  const { tracks } = readMovie(init);
  for (let at = 0; at < head.length; ) {
    const { type, headerBytes, sizeBytes } = boxHeader(head.subarray(at));
    if (sizeBytes === null || sizeBytes > MAX_FIRST_BOX_BYTES) return undefined;
    if (type === 'moof') {
      // Missing bytes read as 0.
      const box = Buffer.alloc(sizeBytes);
      head.copy(box, 0, at, Math.min(head.length, at + sizeBytes));
      const starts = runsOf(box.subarray(headerBytes)).flatMap(({ track, startTicks, offsetTicks }) => {
        const known = tracks.find(({ id }) => id === track);
        if (known === undefined || startTicks === undefined) return [];
        return [(startTicks + offsetTicks) / known.timescale + known.editSeconds];
      });
      return starts.length === 0 ? undefined : Math.min(...starts);
    }
    at += sizeBytes;
  }
  return undefined;
}
