/** Parts of a source: its beginning from the first answer, the rest by ranges. */
import { type FileHandle, open } from 'node:fs/promises';
import { LinkMeter } from './ranges-cost.ts';
import type { Beginning } from './ranges-opening.ts';
import type { RemoteFile } from './ranges-request.ts';
import { RangeSession } from './ranges-session.ts';
import { type ByteSpan, type ByteSpans, bytesOf, roomFor, spansOf, united, without } from './ranges-spans.ts';

/** Everything read or fetched of a source is then in the local file. */
export interface SourceParts {
  readonly sizeBytes: number;
  /** Exactly these bytes. @throws OutboundRefused, OutboundFailed */
  read(start: number, end: number): Promise<Uint8Array>;
  /** Like `read`, for spans that may overlap. @returns undefined if `fetch` would return false */
  readEach(spans: readonly ByteSpan[]): Promise<Uint8Array[] | undefined>;
  /** Bytes that arrive within a round trip; 0 before the first range request. */
  readonly roundTripBytes: number;
  /** The longest gap that is cheaper fetched than left out; 0 before the first range request. */
  readonly rangeBytes: number;
  /** @returns false, without fetching, if the whole file is nearly as fast. Throws as `read`. */
  fetch(spans: ByteSpans): Promise<boolean>;
}

interface PartsSettings extends Omit<ConstructorParameters<typeof RangeSession>[0], 'local'> {
  /** Path of a file that does not exist yet. */
  readonly file: string;
  readonly beginning: Beginning;
  /** Until the first answer's headers arrived. */
  readonly waitedSeconds: number;
  /** Awaited before bytes are written. */
  readonly makeRoom: (bytes: number) => Promise<void>;
  /** Called with the number of bytes about to be fetched. */
  readonly onFetch: (bytes: number) => void;
}

const KIB = 1_024;

/** Up to here, reading on costs less than a request; the beginning is kept in memory. */
const MAX_SKIP_BYTES = 256 * KIB;
const MAX_BEGINNING_BYTES = 34 * 1_024 * KIB;

/** A reader of an index at the end of a file starts with its header, so read most or all ahead. */
const READ_AHEAD_BYTES = 256 * KIB;
const WHOLE_TAIL_BYTES = 4 * 1_024 * KIB;

const MEASURED_BYTES = 256 * KIB;

export class RemoteParts implements SourceParts {
  readonly sizeBytes: number;
  readonly #settings: PartsSettings;
  readonly #meter = new LinkMeter();
  #local: FileHandle | undefined;
  #session: RangeSession | undefined;
  /** Known contents of the local file. */
  #there: ByteSpans = spansOf([]);
  #window: { readonly start: number; readonly bytes: Uint8Array } = { start: 0, bytes: new Uint8Array() };

  constructor(remote: RemoteFile, settings: PartsSettings) {
    this.sizeBytes = remote.sizeBytes;
    this.#settings = settings;
  }

  get roundTripBytes(): number {
    const { bytesPerSecond, roundTripSeconds } = this.#meter.link;
    return this.#session === undefined ? 0 : bytesPerSecond * roundTripSeconds;
  }

  get rangeBytes(): number {
    return this.#session?.gapBytes ?? 0;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { beginning } = this.#settings;
    if (this.#isInBeginning({ start, end })) {
      await beginning.readTo(end);
      return beginning.bytes().subarray(start, end);
    }
    const within = start - this.#window.start;
    if (within < 0 || end > this.#window.start + this.#window.bytes.length)
      await this.#moveWindow(start, end);
    return this.#window.bytes.subarray(start - this.#window.start, end - this.#window.start);
  }

  async readEach(spans: readonly ByteSpan[]): Promise<Uint8Array[] | undefined> {
    const chunks: Uint8Array[] = [];
    if (spans.every((span) => this.#isInBeginning(span))) {
      for (const { start, end } of spans) chunks.push(await this.read(start, end));
      return chunks;
    }
    // The total is not known yet, so `onFetch` is not called.
    const isFetched = await this.#bring(spansOf(spans));
    if (!isFetched || this.#local === undefined) return undefined;
    for (const { start, end } of spans) chunks.push(await readAll(this.#local, start, end));
    return chunks;
  }

  fetch(spans: ByteSpans): Promise<boolean> {
    return this.#bring(spans, this.#settings.onFetch);
  }

  async #bring(wanted: ByteSpans, onFetch?: (bytes: number) => void): Promise<boolean> {
    const session = await this.#ranges();
    const spans = without(wanted, this.#there);
    if (spans.starts.length === 0) return true;
    if (session.isHopeless(spans)) return false;
    const roomBytes = roomFor(spans);
    await this.#settings.makeRoom(roomBytes);
    const plan = session.plan(await session.learn(spans));
    if (plan === undefined) return false;
    await this.#settings.makeRoom(Math.max(0, roomFor(plan) - roomBytes));
    onFetch?.(bytesOf(plan));
    await session.fetch(plan);
    this.#there = united(this.#there, spans, plan);
    return true;
  }

  /** Closes the local file. @returns whether there is one */
  async close(): Promise<boolean> {
    await this.#local?.close();
    return this.#local !== undefined;
  }

  #isInBeginning({ start, end }: ByteSpan): boolean {
    const { beginning } = this.#settings;
    const isNear = start <= beginning.readBytes + MAX_SKIP_BYTES && end <= MAX_BEGINNING_BYTES;
    return end <= beginning.readBytes || (beginning.isWhole && isNear);
  }

  async #moveWindow(start: number, end: number): Promise<void> {
    const isTail = this.sizeBytes - start <= WHOLE_TAIL_BYTES;
    const ahead = isTail ? this.sizeBytes : Math.min(this.sizeBytes, start + READ_AHEAD_BYTES);
    const known = this.#window.bytes.subarray(Math.max(0, start - this.#window.start));
    const isInside = start >= this.#window.start && known.length > 0;
    const from = isInside ? start + known.length : start;
    const session = await this.#ranges();
    const span = { start: from, end: Math.max(end, ahead) };
    await this.#settings.makeRoom(span.end - span.start);
    const bytes = await session.read(span);
    this.#window = { start, bytes: isInside ? Buffer.concat([known, bytes]) : bytes };
  }

  /** Switches to ranges: aborts the first answer and writes the bytes that it delivered. */
  async #ranges(): Promise<RangeSession> {
    if (this.#session !== undefined) return this.#session;
    const { beginning, file, waitedSeconds } = this.#settings;
    // Less data says little about the link: the first packets come in a burst.
    if (beginning.isWhole) await beginning.readTo(Math.min(MEASURED_BYTES, this.sizeBytes));
    this.#meter.add(beginning.readBytes, beginning.seconds, waitedSeconds);
    await beginning.drop();
    await this.#settings.makeRoom(beginning.readBytes);
    const local = await open(file, 'wx+', 0o600);
    this.#local = local;
    await local.truncate(this.sizeBytes);
    const bytes = beginning.bytes();
    for (let at = 0; at < bytes.length; )
      at += (await local.write(bytes, at, bytes.length - at, at)).bytesWritten;
    this.#there = spansOf([{ start: 0, end: bytes.length }]);
    this.#session = new RangeSession({ ...this.#settings, local }, this.#meter);
    return this.#session;
  }
}

async function readAll(file: FileHandle, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  for (let read = 0; read < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read);
    if (bytesRead === 0) throw new Error(`the local file ends at ${start + read}, before ${end}`);
    read += bytesRead;
  }
  return bytes;
}
