/** Puts segments together to one file that ffmpeg opens as any other. What they are is told by their bytes. */
import { type FileHandle, open } from 'node:fs/promises';
import { SNIFF_BYTES, sniffContainer } from '../../sniff.ts';
import { type Segment, unsupported, unusable } from '../presentation.ts';
import { type Joiner, type Part, readAt } from './part.ts';

/** Loads how segments are joined of which ffmpeg knows the container by this demuxer. */
const JOINERS: Readonly<Record<string, () => Promise<Joiner>>> = {
  mpegts: async () => new (await import('./transport-stream.ts')).TransportStreamJoiner(),
  mov: async () => new (await import('./fragments.ts')).FragmentJoiner(),
  matroska: async () => new (await import('./clusters.ts')).ClusterJoiner(),
  ...Object.fromEntries(
    ['aac', 'mp3', 'ac3', 'eac3'].map((demuxer) => [
      demuxer,
      async () => new (await import('./packed-audio.ts')).PackedAudioJoiner(),
    ]),
  ),
};

/** How far a file has come, to be continued. */
export interface BegunJoin {
  readonly joiner: Joiner | undefined;
  readonly sizeBytes: number;
}

export class JoinedFile {
  readonly #file: FileHandle;
  readonly #makeRoom: (bytes: number) => Promise<void>;
  #joiner: Joiner | undefined;
  #sizeBytes: number;
  #isWhole = true;

  private constructor(file: FileHandle, makeRoom: (bytes: number) => Promise<void>, begun?: BegunJoin) {
    this.#file = file;
    this.#makeRoom = makeRoom;
    this.#joiner = begun?.joiner;
    this.#sizeBytes = begun?.sizeBytes ?? 0;
  }

  /**
   * @param path of a file that does not exist yet, but for `begun`; the caller removes it
   * @param makeRoom waited for before bytes are written
   */
  static async open(
    path: string,
    makeRoom: (bytes: number) => Promise<void>,
    begun?: BegunJoin,
  ): Promise<JoinedFile> {
    const file = await open(path, begun === undefined ? 'wx' : 'a', 0o600);
    return new JoinedFile(file, makeRoom, begun);
  }

  /** undefined when a segment is there in part. */
  get begun(): BegunJoin | undefined {
    return this.#isWhole ? { joiner: this.#joiner, sizeBytes: this.#sizeBytes } : undefined;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get startSeconds(): number {
    return this.#joiner?.startSeconds ?? 0;
  }

  /** @param path of the segment's file; an empty one adds nothing @throws {MediaFailure} as {@link Joiner.append} */
  async append(segment: Segment, path: string, init: Uint8Array | undefined): Promise<void> {
    await using file = await open(path, 'r');
    const { size: sizeBytes } = await file.stat();
    if (sizeBytes === 0) return;
    const part = { segment, file, sizeBytes, init };
    this.#joiner ??= await joinerOf(part);
    this.#isWhole = false;
    await this.#joiner.append(part, this);
    this.#isWhole = true;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#makeRoom(bytes.length);
    await this.#file.writeFile(bytes);
    this.#sizeBytes += bytes.length;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function joinerOf({ file, init }: Part): Promise<Joiner> {
  const head = init ?? (await readAt(file, 0, SNIFF_BYTES));
  if (Buffer.from(head.subarray(0, 10)).toString('latin1').includes('#EXTM3U'))
    throw unusable('the playlist names another playlist as a segment');
  const demuxer = sniffContainer(head)?.demuxer;
  const load = JOINERS[demuxer ?? ''];
  if (load !== undefined) return load();
  throw demuxer === undefined
    ? unusable('the segments of the stream are of no known container')
    : unsupported(`streams of ${demuxer} cannot be put together`);
}
