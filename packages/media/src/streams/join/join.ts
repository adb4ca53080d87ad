/** Joins segments to one file that ffmpeg opens as any other; their bytes identify them. */
import { type FileHandle, open } from 'node:fs/promises';
import { bytesSource, id3Bytes, type SniffSource, sniffContainer } from '../../sniff.ts';
import { unsupported, unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';
import { earliestSeconds, flipTimestamps, PACKET_BYTES, packetsOf } from './transport-packets.ts';

/** Demuxers of packed audio. */
const PACKED = ['aac', 'mp3', 'ac3', 'eac3'];

/** How to join segments, by ffmpeg's demuxer of their container. */
const JOINERS: Readonly<Record<string, () => Promise<Joiner>>> = {
  mpegts: async () => new TransportStreamJoiner(),
  mov: async () => new (await import('./fragments.ts')).FragmentJoiner(),
  matroska: async () => new ClusterJoiner(),
  ...Object.fromEntries(PACKED.map((demuxer) => [demuxer, async () => new PackedAudioJoiner()])),
};

/** Whether segments such as this need a header (EXT-X-MAP). @returns undefined if it is empty */
export async function needsHeader(path: string): Promise<boolean | undefined> {
  await using file = await open(path, 'r');
  const { size: sizeBytes } = await file.stat();
  if (sizeBytes === 0) return undefined;
  if (await beginsWithCluster(file)) return true;
  const container = await sniffContainer(fileSource(file, 0, sizeBytes));
  return container?.demuxer !== 'mpegts' && !PACKED.includes(container?.demuxer ?? '');
}

export class JoinedFile {
  readonly #file: FileHandle;
  readonly #makeRoom: (bytes: number) => Promise<void>;
  #joiner: Joiner | undefined;
  #sizeBytes = 0;

  private constructor(file: FileHandle, makeRoom: (bytes: number) => Promise<void>) {
    this.#file = file;
    this.#makeRoom = makeRoom;
  }

  /**
   * @param path of a file that does not exist yet; the caller removes it
   * @param makeRoom awaited before bytes are written
   */
  static async open(path: string, makeRoom: (bytes: number) => Promise<void>): Promise<JoinedFile> {
    return new JoinedFile(await open(path, 'wx', 0o600), makeRoom);
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get startSeconds(): number {
    return this.#joiner?.startSeconds ?? 0;
  }

  /** @param path of the segment's file; an empty one adds nothing @throws {MediaFailure} */
  async append(of: Pick<Part, 'segment' | 'init' | 'reading'>, path: string): Promise<void> {
    await using file = await open(path, 'r');
    const { size: sizeBytes } = await file.stat();
    if (sizeBytes === 0) return;
    const part = { ...of, file, sizeBytes };
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

async function joinerOf({ file, sizeBytes, init }: Part): Promise<Joiner> {
  const source = init === undefined ? fileSource(file, 0, sizeBytes) : bytesSource(init);
  if (
    Buffer.from(await source.read(0, 10))
      .toString('latin1')
      .includes('#EXTM3U')
  )
    throw unusable('the playlist names another playlist as a segment');
  const demuxer = (await sniffContainer(source))?.demuxer;
  const load = JOINERS[demuxer ?? ''];
  if (load !== undefined) return load();
  if (demuxer !== undefined) throw unsupported(`streams of ${demuxer} cannot be put together`);
  const { nameOther } = await import('../../other-files.ts');
  throw unusable(`a segment of the stream cannot be read: ${await nameOther(source)}`);
}

function fileSource(file: Part['file'], from: number, sizeBytes: number): SniffSource {
  return {
    sizeBytes: sizeBytes - from,
    read: (start, end) => readAt(file, from + start, end - start),
  };
}

// MPEG transport streams (ISO/IEC 13818-1): joined end to end they are one.

const FLIPPED_AT_ONCE = 1024 * PACKET_BYTES;

/** Contains at least the first audio and the first picture. */
const BEGINNING_BYTES = 512 * PACKET_BYTES;

/**
 * After a discontinuity timestamps may jump a few seconds ahead, which would look like a hole in
 * the audio. So every second stretch gets the highest bit of its timestamps flipped: 13 hours away.
 * The clock then goes on without a hole, as wherever a transport stream's timestamps jump
 * (decisions A2a).
 */
class TransportStreamJoiner implements Joiner {
  #startSeconds = 0;
  #isFirst = true;
  #isFlipped = false;

  get startSeconds(): number {
    return this.#startSeconds;
  }

  async append({ segment, file, sizeBytes }: Part, output: Output): Promise<void> {
    const head = await readAt(file, 0, this.#isFirst ? BEGINNING_BYTES : PACKET_BYTES + 1);
    if (head[0] !== 0x47 || (head[PACKET_BYTES] ?? 0x47) !== 0x47)
      throw unusable('a segment is no MPEG transport stream, unlike the first');
    if (this.#isFirst && segment.mediaZeroSeconds !== undefined)
      this.#startSeconds = Math.max(0, segment.mediaZeroSeconds + (earliestSeconds(head) ?? 0));
    if (segment.breaksClock && !this.#isFirst) this.#isFlipped = !this.#isFlipped;
    this.#isFirst = false;
    if (!this.#isFlipped) return copy(file, 0, sizeBytes, output);
    for (let at = 0; at < sizeBytes; at += FLIPPED_AT_ONCE) {
      const bytes = await readAt(file, at, FLIPPED_AT_ONCE);
      for (const packet of packetsOf(bytes)) flipTimestamps(packet);
      await output.write(bytes);
    }
  }
}

// WebM: a header and clusters, with timestamps of the presentation.

/** What a segment may begin with (RFC 9559): Cluster, or Void and Cues before one. */
const BEGINNINGS = new Set(['1f43b675', '1c53bb6b', 'ec']);

async function beginsWithCluster(file: Part['file']): Promise<boolean> {
  const id = (await readAt(file, 0, 4)).toString('hex');
  return BEGINNINGS.has(id) || BEGINNINGS.has(id.slice(0, 2));
}

class ClusterJoiner implements Joiner {
  readonly startSeconds = 0;
  #init: Uint8Array | undefined;

  async append({ segment, file, sizeBytes, init }: Part, output: Output): Promise<void> {
    if (init === undefined || !(await beginsWithCluster(file)))
      throw unusable('a segment of the stream does not begin with a cluster of WebM');
    if (this.#init === undefined) await output.write(init);
    else if (segment.breaksClock || !Buffer.from(this.#init).equals(init))
      throw unsupported('streams of WebM in several parts cannot be put together');
    this.#init = init;
    await copy(file, 0, sizeBytes, output);
  }
}

// Packed audio (RFC 8216 section 3.4): bare frames, after an ID3 tag with each segment's timestamp.

/** One is usual, but gigabytes could consist of ten-byte ones, each read by itself. */
const MAX_TAGS = 100;

/** Drops the tags, which may pass for frames in the middle. Frames have no timestamps that jump. */
class PackedAudioJoiner implements Joiner {
  readonly startSeconds = 0;
  #demuxer: string | undefined;

  async append({ file, sizeBytes }: Part, output: Output): Promise<void> {
    let at = 0;
    let tags = 0;
    for (let tag = await tagBytes(file, at); tag > 0; tag = await tagBytes(file, at)) {
      at += tag;
      tags += 1;
      if (tags > MAX_TAGS) throw unusable(`a segment begins with more than ${MAX_TAGS} tags`);
    }
    const container = await sniffContainer(fileSource(file, at, sizeBytes));
    const demuxer = container?.demuxer;
    this.#demuxer ??= demuxer;
    if (at >= sizeBytes) return;
    if (demuxer !== this.#demuxer) throw unusable('a segment holds other audio than the first');
    await copy(file, at, sizeBytes, output);
  }
}

async function tagBytes(file: Part['file'], at: number): Promise<number> {
  return id3Bytes(await readAt(file, at, 10), 0);
}
