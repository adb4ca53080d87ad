/** fMP4: one header and the fragments of all segments, on one clock. */
import type { Reading } from '../../reading/in-place.ts';
import { readApart } from '../../reading/reader.ts';
import { boxHeader, UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { MAX_INIT_BYTES, type Segment, unusable } from '../presentation.ts';
import { boxesOf, type FileBox, MAX_BOXES, MAX_FRAGMENT_BYTES, readBox } from './boxes.ts';
import { lengthTicks, moveBase, setStart, setTrack, type TrackRun } from './fragment.ts';
import { type Movie, matchTracks, type TrackNumbers } from './movie.ts';
import { movieOf } from './movies.ts';
import { copy, type Joiner, type Output, type Part } from './part.ts';

/** What the next box belongs to. */
type Within = 'nothing' | 'fragment' | 'fragment not shown';

const HEADER = new Set(['ftyp', 'moov']);

export class FragmentJoiner implements Joiner {
  #movie: Movie | undefined;
  #header: Uint8Array | undefined;
  /** Of the headers so far, as long as somebody holds them: streams alternate two. */
  readonly #known = new WeakMap<Uint8Array, TrackNumbers>();
  #boxes = 0;
  #numbers: TrackNumbers = new Map();
  /** Added to segments' timestamps, seconds; undefined after a break until a fragment has some. */
  #shiftSeconds: number | undefined = 0;
  /** How far before its time 0 the first stretch should begin, which an edit list may delay. */
  #earlySeconds = 0;
  /** The joined file's beginning and end so far, on its own clock. */
  #startSeconds: number | undefined;
  #endSeconds = 0;
  /** The gap behind that. */
  #gapSeconds = 0;
  #writtenBytes = 0;
  #isOnClock = false;

  get startSeconds(): number {
    return this.#isOnClock ? (this.#startSeconds ?? 0) : 0;
  }

  async append(part: Part, output: Output): Promise<void> {
    try {
      await this.#append(part, {
        write: async (bytes) => {
          this.#writtenBytes += bytes.length;
          await output.write(bytes);
        },
      });
    } catch (error) {
      if (!(error instanceof UnsupportedLayout || error instanceof RangeError)) throw error;
      throw unusable('a segment of the stream is not readable fragmented MP4', { cause: error });
    }
  }

  async #append(part: Part, output: Output): Promise<void> {
    const { segment, file, sizeBytes, init } = part;
    const useHeader = (header: Uint8Array) => this.#useHeader(header, part.reading, output);
    if (init !== undefined) await useHeader(init);
    if (segment.breaksClock) this.#breakClock(segment);
    let within: Within = 'nothing';
    let header: Header = new Map();
    for await (const box of boxesOf(file, sizeBytes)) {
      this.#count();
      if (box.type === 'moof') {
        if (header.size > 0) await useHeader(Buffer.concat([...header.values()]));
        header = new Map();
        within = await this.#addFragment(part, box, output);
      } else if (within !== 'nothing') {
        // Nothing may come between a fragment and its data, or be missing there.
        if (within === 'fragment') await copy(file, box.start, box.end, output);
        if (box.type === 'mdat') within = 'nothing';
      } else {
        await addHeaderBox(header, file, box);
      }
    }
  }

  #count(): void {
    this.#boxes += 1;
    if (this.#boxes > MAX_BOXES) throw new UnsupportedLayout(`more than ${MAX_BOXES} boxes`);
  }

  #breakClock({ mediaZeroSeconds, gapSeconds = 0 }: Segment): void {
    this.#gapSeconds = gapSeconds;
    this.#isOnClock ||= mediaZeroSeconds !== undefined;
    const isFirst = this.#startSeconds === undefined;
    this.#shiftSeconds = mediaZeroSeconds ?? (isFirst ? 0 : undefined);
  }

  async #useHeader(header: Uint8Array, reading: Reading, output: Output): Promise<void> {
    if (this.#header !== undefined && Buffer.compare(this.#header, header) === 0) return;
    const movie = this.#known.get(header) ?? (await movieOf(header, reading));
    this.#header = header;
    if (!('tracks' in movie)) {
      this.#numbers = movie;
    } else if (this.#movie === undefined) {
      this.#movie = movie;
      await output.write(movie.bytes);
    } else {
      this.#numbers = matchTracks(this.#movie, movie);
    }
    this.#known.set(header, this.#numbers);
  }

  async #addFragment({ segment, file, reading }: Part, box: FileBox, output: Output): Promise<Within> {
    const whole = await readBox(file, box, MAX_FRAGMENT_BYTES);
    const moof = whole.subarray(boxHeader(whole).headerBytes);
    const runs = await readApart('fragment', moof, moof.length, reading);
    if (!runs.some((run) => this.#isShown(run, segment))) return 'fragment not shown';
    // A position in a fragment is one of its own file.
    const movedBytes = this.#writtenBytes - (segment.span?.start ?? 0) - box.start;
    for (const run of runs) {
      moveBase(moof, run, movedBytes);
      this.#place(moof, run);
    }
    await output.write(whole);
    return 'fragment';
  }

  /** By its middle: a fragment across two periods of a file is shown in one of them. */
  #isShown(run: TrackRun, { shown }: Segment): boolean {
    if (shown === undefined || run.startTicks === undefined) return true;
    const { timescale, sampleTicks } = this.#trackOf(run);
    const middleSeconds = (run.startTicks + lengthTicks(run, sampleTicks) / 2) / timescale;
    return middleSeconds >= shown.startSeconds && middleSeconds < shown.endSeconds;
  }

  /** As in the joined file's header. */
  #trackOf(run: TrackRun): Movie['tracks'][number] {
    const number = this.#numbers.get(run.track) ?? run.track;
    const track = this.#movie?.tracks.find(({ id }) => id === number);
    if (track === undefined) throw unusable('the stream has audio of a track that it does not describe');
    return track;
  }

  /** Puts a run on the clock of the joined file. */
  #place(moof: Uint8Array, run: TrackRun): void {
    const track = this.#trackOf(run);
    setTrack(moof, run, track.id);
    if (run.startTicks === undefined) return;
    const ownSeconds = run.startTicks / track.timescale;
    this.#shiftSeconds ??= this.#endSeconds + this.#gapSeconds - ownSeconds;
    // The audio before the beginning goes with it.
    if (this.#startSeconds === undefined && this.#shiftSeconds < -ownSeconds) {
      this.#earlySeconds = -ownSeconds - this.#shiftSeconds;
      this.#shiftSeconds = -ownSeconds;
    }
    const startTicks = Math.max(0, run.startTicks + Math.round(this.#shiftSeconds * track.timescale));
    setStart(moof, run, startTicks);
    const decodedSeconds = startTicks / track.timescale;
    const shownSeconds = decodedSeconds + run.offsetTicks / track.timescale + track.editSeconds;
    const startSeconds = Math.max(0, shownSeconds - this.#earlySeconds);
    this.#startSeconds = Math.min(this.#startSeconds ?? startSeconds, startSeconds);
    const endSeconds = decodedSeconds + lengthTicks(run, track.sampleTicks) / track.timescale;
    this.#endSeconds = Math.max(this.#endSeconds, endSeconds);
  }
}

/** The boxes of a header inside a segment, by type. */
type Header = Map<string, Buffer>;

/** Drops indexes and events before a fragment: in the joined file they are wrong or useless. */
async function addHeaderBox(header: Header, file: Part['file'], box: FileBox): Promise<void> {
  if (box.type === 'mdat') throw unusable('a segment of the stream has audio that it does not describe');
  if (!HEADER.has(box.type)) return;
  if (header.has(box.type)) throw new UnsupportedLayout(`two boxes ${box.type} before a fragment`);
  header.set(box.type, await readBox(file, box, MAX_INIT_BYTES));
}
