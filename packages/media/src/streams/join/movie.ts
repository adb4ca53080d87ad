/** The tracks in an fMP4 header (ISO/IEC 14496-12): what fragments of several files must share. */
import { encrypted } from '../../failure.ts';
import { type Box, childrenOf, Fields, latin1, onlyBox, requiredBox } from '../../sparse/mp4/boxes.ts';
import { DESCRIBED_TRACKS, unsupported, unusable } from '../presentation.ts';

interface MovieTrack {
  readonly id: number;
  readonly isAudio: boolean;
  /** Ticks a second. */
  readonly timescale: number;
  /** Of a sample, in ticks, if a fragment has none (`trex`). */
  readonly sampleTicks: number;
  /** Start of its media by the edit list, seconds (section 8.6.6); below 0 if some is hidden. */
  readonly editSeconds: number;
  /** The payload of `stsd`: the codec and its configuration. */
  readonly description: Buffer;
}

export interface Movie {
  /** The boxes that a file begins with. */
  readonly bytes: Buffer;
  readonly tracks: readonly MovieTrack[];
}

/** Sample entries of Common Encryption (ISO/IEC 23001-7). */
const ENCRYPTED = new Set(['enca', 'encv', 'drms']);

/**
 * @param header the bytes of an initialisation section, or those in front of the first fragment
 * @throws {MediaFailure} INVALID_VIDEO `encrypted`; UnsupportedLayout
 */
export function readMovie(header: Uint8Array): Movie {
  const boxes = childrenOf(header);
  const moov = childrenOf(requiredBox(boxes, 'moov').payload);
  const mvex = moov.find(({ type }) => type === 'mvex');
  if (mvex === undefined) throw unusable('the MP4 of the stream is not fragmented');
  const traks = moov.filter(({ type }) => type === 'trak');
  if (traks.length > DESCRIBED_TRACKS)
    throw unusable(`the stream describes ${traks.length} tracks, which is more than ${DESCRIBED_TRACKS}`);
  const sampleTicks = sampleTicksOf(mvex);
  const ticksPerSecond = timescaleOf(requiredBox(moov, 'mvhd'));
  const tracks = traks.map(({ payload }) => readTrack(childrenOf(payload), sampleTicks, ticksPerSecond));
  return { bytes: Buffer.concat(['ftyp', 'moov'].map((type) => withHeader(boxes, type))), tracks };
}

/** By track, the length of a sample whose fragment does not say it; the first of two counts. */
function sampleTicksOf(mvex: Box): Map<number, number> {
  const trex = childrenOf(mvex.payload).filter(({ type }) => type === 'trex');
  return new Map(trex.toReversed().map((box) => [field32(box, 4), field32(box, 12)]));
}

function readTrack(
  trak: readonly Box[],
  sampleTicks: ReadonlyMap<number, number>,
  movieTimescale: number,
): MovieTrack {
  const mdia = childrenOf(requiredBox(trak, 'mdia').payload);
  const minf = childrenOf(requiredBox(mdia, 'minf').payload);
  const description = requiredBox(childrenOf(requiredBox(minf, 'stbl').payload), 'stsd').payload;
  if (description.length >= 16 && ENCRYPTED.has(latin1(description, 12)))
    throw encrypted('the stream needs a key');
  const tkhd = requiredBox(trak, 'tkhd');
  const id = field32(tkhd, tkhd.payload[0] === 1 ? 20 : 12);
  const timescale = timescaleOf(requiredBox(mdia, 'mdhd'));
  const edts = onlyBox(trak, 'edts');
  const elst = edts && onlyBox(childrenOf(edts.payload), 'elst');
  if (timescale === 0) throw unusable('a track of the stream has no clock');
  return {
    id,
    timescale,
    editSeconds: elst === undefined ? 0 : editOf(elst, timescale, movieTimescale),
    isAudio: latin1(requiredBox(mdia, 'hdlr').payload, 8) === 'soun',
    sampleTicks: sampleTicks.get(id) ?? 0,
    description: Buffer.from(description),
  };
}

/** Of `mvhd` and `mdhd`, which have it in the same position. */
function timescaleOf(header: Box): number {
  return field32(header, header.payload[0] === 1 ? 20 : 12);
}

/** Empty edits delay. The first other edit hides the media before its time. */
function editOf(elst: Box, timescale: number, movieTimescale: number): number {
  const fields = new Fields(elst);
  const isLong = elst.payload[0] === 1;
  const next = (): number => (isLong ? fields.unsigned64() : fields.unsigned32());
  const empty = isLong ? 2 ** 63 : 2 ** 31; // From here on a negative number.
  fields.unsigned32();
  let delaySeconds = 0;
  for (let left = fields.unsigned32(); left > 0; left -= 1) {
    const duration = next();
    const mediaTime = next();
    fields.unsigned32();
    if (mediaTime < empty) return delaySeconds - mediaTime / timescale;
    if (movieTimescale > 0) delaySeconds += duration / movieTimescale;
  }
  return delaySeconds;
}

/** The number at a position of a box that begins with version and flags. */
function field32(box: Box, at: number): number {
  const fields = new Fields(box);
  while (fields.at < at) fields.unsigned32();
  return fields.unsigned32();
}

function withHeader(boxes: readonly Box[], type: string): Buffer {
  const box = boxes.find((other) => other.type === type);
  if (box === undefined) return Buffer.alloc(0);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + box.payload.length);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, box.payload]);
}

/** A track's number in the later header, to its number in the first. */
export type TrackNumbers = ReadonlyMap<number, number>;

/**
 * ffmpeg reads one header. Fragments of another one may follow if it has the same audio: timescale,
 * codec and configuration.
 * @throws {MediaFailure} EXTRACTION_FAILED otherwise
 */
export function matchTracks(first: Movie, later: Movie): TrackNumbers {
  const left = [...first.tracks];
  return new Map(
    later.tracks.map((track) => {
      const at = left.findIndex(({ isAudio }) => isAudio === track.isAudio);
      const [same] = at < 0 ? [] : left.splice(at, 1);
      const fits =
        same?.timescale === track.timescale &&
        same.sampleTicks === track.sampleTicks &&
        (!track.isAudio || same.description.equals(track.description));
      if (!fits) throw unsupported('the stream changes its audio coding midway');
      return [track.id, same.id];
    }),
  );
}
