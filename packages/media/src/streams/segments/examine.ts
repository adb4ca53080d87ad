/** What the file of a segment says by itself. In the reader process where it is large. */
import { type FileHandle, open } from 'node:fs/promises';
import { id3Bytes, sniffContainer } from '../../sniff.ts';
import { boxHeader, UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { boxesOf, MAX_BOXES, MAX_FRAGMENT_BYTES, readBox } from '../join/boxes.ts';
import { beginsWithCluster, wholeClusters } from '../join/clusters.ts';
import { runsOf, type TrackRun } from '../join/fragment.ts';
import { fileSource, readAt } from '../join/part.ts';
import { PACKET_BYTES } from '../join/transport-packets.ts';
import { DESCRIBED_TRACKS, unsupported, unusable } from '../presentation.ts';
import { FrameReader } from './frames.ts';
import type { Sound } from './sound.ts';
import { TransportMeter } from './transport-meter.ts';

/** Demuxers of packed audio. */
export const PACKED = ['aac', 'mp3', 'ac3', 'eac3'];

/** Of a transport stream or packed audio, at a time. */
const WINDOW_BYTES = 1024 * PACKET_BYTES;

/** What a segment says by itself. */
export interface Examined {
  readonly sound: Sound;
  /** Of fMP4 without a header of its own, which says how long samples are: by track. */
  readonly fragments?: ReadonlyMap<number, Held>;
}

/** Of all fragments of a track. */
export type Held = Pick<TrackRun, 'startTicks' | 'knownTicks' | 'otherSamples'>;

/**
 * @param path of its file
 * @throws {MediaFailure} when nothing of it can be joined
 */
export async function examineFile(path: string): Promise<Examined> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size === 0) throw unusable('a segment of the stream is empty');
  if (await beginsWithCluster(file)) return { sound: await ofClusters(file, size) };
  const source = fileSource(file, 0, size);
  const kind = (await sniffContainer(source))?.demuxer;
  if (kind === 'mpegts') return { sound: await ofTransport(file, size) };
  if (kind === 'mov') return await ofFragments(file, size);
  if (kind !== undefined && PACKED.includes(kind)) return { sound: await ofFrames(file, size, kind) };
  if (kind !== undefined) return { sound: { ...UNMEASURED, kind, bytes: size } };
  const head = Buffer.from(await source.read(0, Math.min(size, 10))).toString('latin1');
  if (head.includes('#EXTM3U')) throw unusable('the playlist names another playlist as a segment');
  const { nameOther } = await import('../../other-files.ts');
  throw unusable(`a segment of the stream cannot be read: ${await nameOther(source)}`);
}

/** @param path of the header of fMP4 or WebM. @throws {MediaFailure} when it cannot be one */
export async function requireInit(path: string): Promise<void> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size === 0) throw unusable('a header of the stream is empty');
  const source = fileSource(file, 0, size);
  const kind = (await sniffContainer(source))?.demuxer;
  if (kind === 'matroska') return;
  if (kind !== undefined && kind !== 'mov') throw unsupported(`streams of ${kind} cannot be put together`);
  const { nameOther } = await import('../../other-files.ts');
  if (kind === undefined) throw unusable(`a header of the stream cannot be read: ${await nameOther(source)}`);
  try {
    for await (const { type } of boxesOf(file, size)) if (type === 'moov') return;
  } catch (error) {
    if (!(error instanceof UnsupportedLayout)) throw error;
  }
  throw unusable('a header of the stream is incomplete, or describes no track');
}

const UNMEASURED = { heldSeconds: undefined, startSeconds: undefined, isWhole: true, beside: [] } as const;

async function ofTransport(file: FileHandle, size: number): Promise<Sound> {
  const head = await readAt(file, 0, PACKET_BYTES + 1);
  if (size < PACKET_BYTES || head[0] !== 0x47 || (head[PACKET_BYTES] ?? 0x47) !== 0x47)
    throw unusable('a segment is not an MPEG transport stream that begins with a packet');
  const meter = new TransportMeter();
  const end = size - (size % PACKET_BYTES);
  for (let at = 0; at < end; at += WINDOW_BYTES)
    meter.read(await readAt(file, at, Math.min(WINDOW_BYTES, end - at)));
  return meter.sound(size);
}

async function ofFrames(file: FileHandle, size: number, kind: string): Promise<Sound> {
  const frames = new FrameReader(kind);
  let heldSeconds = 0;
  for (let at = await tagsBytes(file); at < size; at += WINDOW_BYTES) {
    const window = await readAt(file, at, Math.min(WINDOW_BYTES, size - at));
    for (const { seconds } of frames.read(window)) heldSeconds += seconds;
  }
  if (heldSeconds === 0) throw unusable('a segment of the stream has no complete audio frame');
  return { ...UNMEASURED, kind, bytes: size, heldSeconds, isWhole: !frames.isBroken };
}

async function ofClusters(file: FileHandle, size: number): Promise<Sound> {
  const bytes = await wholeClusters(file, size);
  if (bytes === 0) throw unusable('a segment of the stream ends within its first WebM cluster');
  return { ...UNMEASURED, kind: 'matroska', bytes, isWhole: bytes === size };
}

/** Of fMP4, which needs a header unless it has its own. */
async function ofFragments(file: FileHandle, size: number): Promise<Examined> {
  const found: Fragments = { bytes: 0, isOwn: false, held: new Map() };
  try {
    await readFragments(file, size, found);
  } catch (error) {
    if (!(error instanceof UnsupportedLayout || error instanceof RangeError)) throw error;
  }
  const { held, isOwn } = found;
  if (held.size === 0 && !isOwn) throw unusable('a segment of the stream is not readable fragmented MP4');
  const bytes = held.size > 0 ? found.bytes : size;
  const sound = { ...UNMEASURED, kind: 'mov', bytes, isWhole: bytes === size };
  return isOwn ? { sound } : { sound, fragments: held };
}

interface Fragments {
  /** Up to the end of the last fragment with data. */
  bytes: number;
  /** Whether they include a header. The joiner reports its faults. */
  isOwn: boolean;
  readonly held: Map<number, Held>;
}

/** @param found gets them up to the first that is not whole. @throws UnsupportedLayout there */
async function readFragments(file: FileHandle, size: number, found: Fragments): Promise<void> {
  let boxes = 0;
  let unfinished: TrackRun[] | undefined;
  for await (const box of boxesOf(file, size)) {
    boxes += 1;
    if (boxes > MAX_BOXES) throw new UnsupportedLayout(`more than ${MAX_BOXES} boxes`);
    found.isOwn ||= box.type === 'moov';
    if (box.type === 'moof') {
      const whole = await readBox(file, box, MAX_FRAGMENT_BYTES);
      unfinished = runsOf(whole.subarray(boxHeader(whole).headerBytes));
    } else if (box.type === 'mdat' && unfinished !== undefined) {
      for (const run of unfinished) add(run, found.held);
      unfinished = undefined;
    }
    if (unfinished === undefined) found.bytes = box.end;
  }
}

function add({ track, startTicks, knownTicks, otherSamples }: TrackRun, held: Map<number, Held>): void {
  const before = held.get(track);
  if (before === undefined && held.size === DESCRIBED_TRACKS)
    throw new UnsupportedLayout(`more than ${DESCRIBED_TRACKS} tracks`);
  held.set(track, {
    startTicks: before === undefined ? startTicks : before.startTicks,
    knownTicks: (before?.knownTicks ?? 0) + knownTicks,
    otherSamples: (before?.otherSamples ?? 0) + otherSamples,
  });
}

/** One is usual, but gigabytes could consist of ten-byte ones, each read by itself. */
const MAX_TAGS = 100;

/** Length of the ID3 tags that a segment of packed audio begins with. @throws {MediaFailure} */
export async function tagsBytes(file: FileHandle): Promise<number> {
  let at = 0;
  for (let tags = 0; ; tags += 1) {
    const tag = id3Bytes(await readAt(file, at, 10), 0);
    if (tag === 0) return at;
    if (tags === MAX_TAGS) throw unusable(`a segment begins with more than ${MAX_TAGS} tags`);
    at += tag;
  }
}
