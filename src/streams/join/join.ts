/** Puts segments together to one file that ffmpeg opens as any other. What they are is told by their bytes. */
import { type FileHandle, open } from 'node:fs/promises';
import { SNIFF_BYTES, sniffContainer } from '../../media/sniff.ts';
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

export class JoinedFile {
  readonly #file: FileHandle;
  readonly #makeRoom: (bytes: number) => Promise<void>;
  #joiner: Joiner | undefined;
  #sizeBytes = 0;

  private constructor(file: FileHandle, makeRoom: (bytes: number) => Promise<void>) {
    this.#file = file;
    this.#makeRoom = makeRoom;
  }

  /** @param path of a file that does not exist yet; the caller removes it @param makeRoom waited for before bytes are written */
  static async create(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<JoinedFile> {
    return new JoinedFile(await open(path, 'wx', 0o600), makeRoom);
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
    await this.#joiner.append(part, this);
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
