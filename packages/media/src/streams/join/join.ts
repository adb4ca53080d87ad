/** Joins segments to one file that ffmpeg opens as any other; their bytes identify them. */
import { type FileHandle, open } from 'node:fs/promises';
import { unsupported } from '../presentation.ts';
import { PACKED } from '../segments/examine.ts';
import { ClusterJoiner } from './clusters.ts';
import { PackedAudioJoiner } from './packed-audio.ts';
import type { Joiner, Part } from './part.ts';
import { TransportStreamJoiner } from './transport.ts';

/** How to join segments, by ffmpeg's demuxer of their container. */
const JOINERS: Readonly<Record<string, () => Promise<Joiner>>> = {
  mpegts: async () => new TransportStreamJoiner(),
  mov: async () => new (await import('./fragments.ts')).FragmentJoiner(),
  matroska: async () => new ClusterJoiner(),
  ...Object.fromEntries(PACKED.map((demuxer) => [demuxer, async () => new PackedAudioJoiner()])),
};

export class JoinedFile {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #makeRoom: (bytes: number) => Promise<void>;
  #joiner: Joiner | undefined;
  #sizeBytes = 0;

  private constructor(path: string, file: FileHandle, makeRoom: (bytes: number) => Promise<void>) {
    this.#path = path;
    this.#file = file;
    this.#makeRoom = makeRoom;
  }

  /**
   * @param path of a file that does not exist yet; the caller removes it
   * @param makeRoom awaited before bytes are written
   */
  static async open(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<JoinedFile> {
    return new JoinedFile(path, await open(path, 'wx', 0o600), makeRoom);
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get startSeconds(): number {
    return this.#joiner?.startSeconds ?? 0;
  }

  /** @param path of the segment's file @throws {MediaFailure} */
  async append(of: Omit<Part, 'file' | 'sizeBytes'>, path: string): Promise<void> {
    await using file = await open(path, 'r');
    this.#joiner ??= await joinerOf(of.sound.kind);
    await this.#joiner.append({ ...of, file, sizeBytes: of.sound.bytes }, this);
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#makeRoom(bytes.length);
    await this.#file.writeFile(bytes);
    this.#sizeBytes += bytes.length;
  }

  /** Once all segments are there: what only then is known is written. */
  async finish(): Promise<void> {
    this.#sizeBytes = (await this.#joiner?.finish?.(this.#path, this.#makeRoom)) ?? this.#sizeBytes;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function joinerOf(kind: string): Promise<Joiner> {
  const load = JOINERS[kind];
  if (load === undefined) throw unsupported(`streams of ${kind} cannot be put together`);
  return load();
}
