/** fMP4: one header and the fragments of all segments, on one clock. */
import { boxHeader, MAX_HEADER_BYTES, UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { type Segment, unusable } from '../presentation.ts';
import { runsOf } from './fragment.ts';
import { matchTracks, readMovie } from './movie.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';

type Movie = ReturnType<typeof readMovie>;

type TrackRun = ReturnType<typeof runsOf>[number];

interface FileBox {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** What the next box belongs to. */
type Within = 'nothing' | 'fragment' | 'fragment not shown';

const HEADER = new Set(['ftyp', 'moov']);

/** Of a fragment's box, and of a whole header inside a segment. */
const MAX_BOX_BYTES = 16 * 1024 * 1024;
/** More than any program writes. */
const MAX_BOXES = 100_000;

export class FragmentJoiner implements Joiner {
  #movie: Movie | undefined;
  #header: Uint8Array | undefined;
  #numbers: ReturnType<typeof matchTracks> = new Map();
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
      throw unusable('a segment of the stream is no fragmented MP4 that can be read', { cause: error });
    }
  }

  async #append(part: Part, output: Output): Promise<void> {
    const { segment, file, sizeBytes, init } = part;
    if (init !== undefined) await this.#useHeader(init, output);
    if (segment.breaksClock) this.#breakClock(segment);
    let within: Within = 'nothing';
    let header = Buffer.alloc(0);
    for await (const box of boxesOf(file, sizeBytes)) {
      if (box.type === 'moof') {
        if (header.length > 0) await this.#useHeader(header, output);
        header = Buffer.alloc(0);
        within = await this.#addFragment(part, box, output);
      } else if (within !== 'nothing') {
        // Nothing may come between a fragment and its data, or be missing there.
        if (within === 'fragment') await copy(file, box.start, box.end, output);
        if (box.type === 'mdat') within = 'nothing';
      } else {
        header = await withHeaderBox(header, file, box);
      }
    }
  }

  #breakClock({ mediaZeroSeconds, gapSeconds = 0 }: Segment): void {
    this.#gapSeconds = gapSeconds;
    this.#isOnClock ||= mediaZeroSeconds !== undefined;
    const isFirst = this.#startSeconds === undefined;
    this.#shiftSeconds = mediaZeroSeconds ?? (isFirst ? 0 : undefined);
  }

  async #useHeader(header: Uint8Array, output: Output): Promise<void> {
    if (this.#header !== undefined && Buffer.from(this.#header).equals(header)) return;
    this.#header = header;
    const movie = readMovie(header);
    if (this.#movie !== undefined) {
      this.#numbers = matchTracks(this.#movie, movie);
      return;
    }
    this.#movie = movie;
    await output.write(movie.bytes);
  }

  async #addFragment({ segment, file }: Part, box: FileBox, output: Output): Promise<Within> {
    const moof = await readBox(file, box);
    const runs = runsOf(moof.subarray(boxHeader(moof).headerBytes));
    if (!runs.some((run) => this.#isShown(run, segment))) return 'fragment not shown';
    // A position in a fragment is one of its own file.
    const movedBytes = this.#writtenBytes - (segment.span?.start ?? 0) - box.start;
    for (const run of runs) {
      run.moveBase(movedBytes);
      this.#place(run);
    }
    await output.write(moof);
    return 'fragment';
  }

  /** By its middle: a fragment across two periods of a file is shown in one of them. */
  #isShown(run: TrackRun, { shown }: Segment): boolean {
    if (shown === undefined || run.startTicks === undefined) return true;
    const { timescale, sampleTicks } = this.#trackOf(run);
    const middleSeconds = (run.startTicks + run.lengthTicks(sampleTicks) / 2) / timescale;
    return middleSeconds >= shown.startSeconds && middleSeconds < shown.endSeconds;
  }

  /** As in the joined file's header. */
  #trackOf(run: TrackRun): Movie['tracks'][number] {
    const number = this.#numbers.get(run.track) ?? run.track;
    const track = this.#movie?.tracks.find(({ id }) => id === number);
    if (track === undefined) throw unusable('the stream has sound of a track that it does not describe');
    return track;
  }

  /** Puts a run on the clock of the joined file. */
  #place(run: TrackRun): void {
    const track = this.#trackOf(run);
    run.setTrack(track.id);
    if (run.startTicks === undefined) return;
    const ownSeconds = run.startTicks / track.timescale;
    this.#shiftSeconds ??= this.#endSeconds + this.#gapSeconds - ownSeconds;
    // The audio before the beginning goes with it.
    if (this.#startSeconds === undefined && this.#shiftSeconds < -ownSeconds) {
      this.#earlySeconds = -ownSeconds - this.#shiftSeconds;
      this.#shiftSeconds = -ownSeconds;
    }
    const startTicks = Math.max(0, run.startTicks + Math.round(this.#shiftSeconds * track.timescale));
    run.setStart(startTicks);
    const decodedSeconds = startTicks / track.timescale;
    const shownSeconds = decodedSeconds + run.offsetTicks / track.timescale + track.editSeconds;
    const startSeconds = Math.max(0, shownSeconds - this.#earlySeconds);
    this.#startSeconds = Math.min(this.#startSeconds ?? startSeconds, startSeconds);
    const endSeconds = decodedSeconds + run.lengthTicks(track.sampleTicks) / track.timescale;
    this.#endSeconds = Math.max(this.#endSeconds, endSeconds);
  }
}

/** Drops indexes and events before a fragment: in the joined file they are wrong or useless. */
async function withHeaderBox(
  header: Buffer<ArrayBuffer>,
  file: Part['file'],
  box: FileBox,
): Promise<Buffer<ArrayBuffer>> {
  if (box.type === 'mdat') throw unusable('a segment of the stream has sound without saying what it is');
  if (!HEADER.has(box.type)) return header;
  const longer = Buffer.concat([header, await readBox(file, box)]);
  if (longer.length > MAX_BOX_BYTES) throw new UnsupportedLayout(`a header of ${longer.length} bytes`);
  return longer;
}

async function* boxesOf(file: Part['file'], sizeBytes: number): AsyncGenerator<FileBox> {
  let boxes = 0;
  for (let start = 0; start < sizeBytes; ) {
    const header = boxHeader(await readAt(file, start, MAX_HEADER_BYTES));
    const end = header.sizeBytes === null ? sizeBytes : start + header.sizeBytes;
    if (end > sizeBytes) throw new UnsupportedLayout(`box ${header.type} goes past the end of its segment`);
    if (++boxes > MAX_BOXES) throw new UnsupportedLayout(`more than ${MAX_BOXES} boxes`);
    yield { type: header.type, start, end };
    start = end;
  }
}

async function readBox(file: Part['file'], { type, start, end }: FileBox): Promise<Buffer> {
  if (end - start > MAX_BOX_BYTES) throw new UnsupportedLayout(`box ${type} of ${end - start} bytes`);
  return readAt(file, start, end - start);
}
