/** What of an MP4 or MOV file is needed to take one of its audio tracks out and no more: the rest is mostly pictures. */
import { SNIFF_BYTES, sniffContainer } from '../../sniff.ts';
import { UnsupportedLayout } from './boxes.ts';
import { boundariesOf, leadSpans, trackSpans } from './chunk-spans.ts';
import { withFragments } from './fragment-runs.ts';
import { readFragments } from './fragment-walk.ts';
import { bytesOf, type Spans, unite } from './spans.ts';
import { type ByteSource, readTopLevel } from './top-level.ts';
import { type Mp4Track, readTracks } from './tracks.ts';

export interface AudioIndex {
  /**
   * What ffmpeg looks at before it takes up a track, besides the index: the beginning of each track, and chapters'
   * titles and pictures whole.
   */
  readonly lead: Spans;
  readonly audioTracks: number;
  /** The bytes of an audio track, by its place among them. @throws UnsupportedLayout */
  track(place: number): Spans;
}

/**
 * ffmpeg finds out about a track from its first samples: of sound it decodes one or two, of H.264 up to twenty. More of
 * them are only read where these do not tell, and then they matter to pictures alone.
 */
export const LEAD = { samples: 64, bytes: 1024 * 1024 };

const MAX_CHAPTER_BYTES = 8 * 1024 * 1024;

/** Of the file's bytes: there is nothing to be left out then. */
export const MOSTLY = 0.7;

/** ISO/IEC 14496-12 section 8.12 and QuickTime's older kind: what lies where may then follow from more than the tables. */
const ENCRYPTED = new Set(['enca', 'encv', 'enct', 'encs', 'drms', 'drmi']);

/**
 * Reads the index: `ftyp`, `moov` and what else is no samples.
 * @throws UnsupportedLayout when the file has to be read whole; what the source throws
 */
export async function readAudioIndex(source: ByteSource): Promise<AudioIndex> {
  const head = await source.read(0, Math.min(source.sizeBytes, SNIFF_BYTES));
  if (sniffContainer(head)?.demuxer !== 'mov') throw new UnsupportedLayout('no MP4 or MOV file');
  const { moov, starts, fragmentsAt } = await readTopLevel(source);
  const announced = readTracks(moov);
  const encrypted = announced.find(({ format }) => ENCRYPTED.has(format));
  if (encrypted !== undefined) throw new UnsupportedLayout(`encrypted: ${encrypted.format}`);
  if (announced.every(({ handler }) => handler !== 'soun')) throw new UnsupportedLayout('no audio track');
  // Of fragments it shows only after all of them have been looked up.
  if (fragmentsAt !== undefined && announced.length === 1)
    throw new UnsupportedLayout('hardly anything but sound');
  const tracks =
    fragmentsAt === undefined
      ? announced
      : withFragments(announced, moov, await readFragments(source, fragmentsAt));
  const boundaries = boundariesOf(
    tracks.map(({ samples }) => samples),
    starts,
    source.sizeBytes,
  );
  const leadOf = ({ holdsChapters, samples }: Mp4Track): Spans => {
    const spans = holdsChapters ? trackSpans(samples, boundaries) : leadSpans(samples, LEAD, boundaries);
    if (holdsChapters && bytesOf(spans) > MAX_CHAPTER_BYTES) throw new UnsupportedLayout('large chapters');
    return spans;
  };
  const audio = tracks.filter(({ handler }) => handler === 'soun');
  const least = Math.min(...audio.map(({ samples }) => bytesOf(trackSpans(samples, boundaries))));
  if (least > MOSTLY * source.sizeBytes) throw new UnsupportedLayout('hardly anything but sound');
  return {
    lead: unite(tracks.map(leadOf)),
    audioTracks: audio.length,
    track(place) {
      const chosen = audio[place];
      if (chosen === undefined) throw new UnsupportedLayout(`no audio track ${place}`);
      return trackSpans(chosen.samples, boundaries);
    },
  };
}
