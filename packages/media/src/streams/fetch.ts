/** Fetches the pieces of a stream, several at a time, and passes them on in order. */
import { createDecipheriv, type Decipheriv, randomUUID } from 'node:crypto';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { untilAborted } from 'soundpost-base/deadline';
import { OutboundFailed } from 'soundpost-outbound/errors';
import { MediaFailure } from '../failure.ts';
import { type Reading, readApart } from '../reading/reader.ts';
import { asAsked, NotAsAsked, orItsFailure } from './not-as-asked.ts';
import {
  MAX_INIT_BYTES,
  type Piece,
  type Presentation,
  type Resource,
  type Segment,
  unpacked,
  unusable,
} from './presentation.ts';
import { examine, PACKED, requireInit } from './segments/examine.ts';
import { missingSeconds, type Neighbours, type Sound } from './segments/sound.ts';

/** Requests through the guard, within limits, with retries: packages/outbound/src/pieces.ts. */
type FetchPiece = <T>(
  request: Resource & {
    readonly maxBytes: number;
    readonly signal: AbortSignal;
    readonly isSegment?: boolean;
  },
  take: (answer: {
    readonly url: string;
    /** Whether the server did not say where it ends; default it did. */
    readonly isOpenEnded?: boolean;
    readonly bytes: AsyncIterable<Uint8Array>;
  }) => Promise<T>,
) => Promise<T>;

export interface StreamContext {
  readonly fetch: FetchPiece;
  /** Whether an error is one of `fetch`: of the other side, or of the guard. */
  readonly isFetchFailure: (error: unknown) => boolean;
  /** For what it is described by. */
  readonly reading: Reading;
  /** A folder for segments in progress; it exists. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Awaited before so many bytes are written; below 0: so many have been removed. */
  readonly makeRoom: (bytes: number) => Promise<void>;
}

const MIB = 1024 * 1024;
/** 10,000 segments with addresses of 700 characters. */
const MAX_PLAYLIST_BYTES = 8 * MIB;
/** In memory; streams alternate two. */
const INITS_HELD = 12;
const KEY_BYTES = 16;

/** Half as many as for parts of a file: each segment stays on disk until earlier ones are done. */
const SEGMENTS_AT_ONCE = 8;

/** The segments of a media playlist. @throws {MediaFailure}; {CutOff}; as {@link FetchPiece} */
export function fetchPlaylist(
  { fetch, signal, reading, folder, makeRoom }: StreamContext,
  url: string,
): Promise<Presentation> {
  return fetch({ url, maxBytes: MAX_PLAYLIST_BYTES, signal }, async ({ bytes, ...answer }) => {
    const content = await allOf(bytes);
    const path = join(folder, `playlist-${randomUUID()}`);
    await makeRoom(content.length);
    try {
      await writeFile(path, content, { mode: 0o600 });
      // Within the request: one that was cut off is asked for again.
      return await unpacked(await readApart('playlist', { ...answer, path }, content.length, reading));
    } finally {
      await rm(path, { force: true });
      await makeRoom(-content.length);
    }
  });
}

/**
 * What is small enough to be held in memory.
 * @param check throws a MediaFailure where the bytes cannot be what was asked for
 * @throws as {@link FetchPiece}
 */
export function fetchBytes(
  { fetch, signal }: StreamContext,
  resource: Resource,
  maxBytes: number,
  check: (bytes: Buffer) => void = () => {},
): Promise<Buffer> {
  const fetched = fetch({ ...resource, maxBytes, signal }, async (answer) => {
    const bytes = await allOf(answer.bytes);
    await asAsked(() => check(bytes));
    return bytes;
  });
  return orItsFailure(fetched);
}

/** @throws {MediaFailure} when it is longer than any playlist */
export function requirePlaylistSize(sizeBytes: number): void {
  if (sizeBytes > MAX_PLAYLIST_BYTES)
    throw unusable(`the playlist is larger than ${MAX_PLAYLIST_BYTES} bytes`);
}

/** A segment that has arrived, or why it has not. */
export type FetchedSegment = { readonly segment: Segment } & (
  | {
      readonly file: string;
      readonly init: Uint8Array | undefined;
      readonly sound: Sound;
      /** How much of its sound is not there, after all tries. */
      readonly missingSeconds: number;
    }
  /** In each try it was empty, cut off or unreadable. */
  | { readonly failure: Error }
);

/**
 * @param take gets each segment in order: as a file of its own, decrypted, with its init section if
 * segments of its container need one; the file is removed afterwards
 * @throws as {@link FetchPiece}; {MediaFailure} for an invalid key or header; what `take` throws
 */
export async function fetchSegments(
  context: StreamContext,
  segments: readonly Segment[],
  take: (fetched: FetchedSegment) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const fetcher = new SegmentFetcher({ ...context, signal }, segments);
  let taken = 0;
  const rest = segments.keys();
  const underway: { readonly file: string; readonly fetched: Promise<Stored> }[] = [];
  const fill = (): void => {
    while (underway.length < SEGMENTS_AT_ONCE) {
      const { value: nth, done } = rest.next();
      if (done) return;
      const file = join(context.folder, String(nth));
      const fetched = fetcher.fetch(nth, file);
      fetched.catch(() => {}); // It is waited for in its turn.
      underway.push({ file, fetched });
    }
  };
  try {
    for (fill(); underway.length > 0; fill()) {
      for (const { file, fetched } of underway.splice(0, 1)) {
        const { sizeBytes, ...stored } = await fetched;
        taken += 1;
        fetcher.passed(taken, stored);
        await take(stored);
        await rm(file, { force: true });
        await context.makeRoom(-sizeBytes);
      }
    }
  } catch (error) {
    failed.abort(error);
    throw error;
  } finally {
    // None may still write when the caller removes the folder.
    await Promise.allSettled(underway.map(({ fetched }) => fetched));
  }
}

/** With the size of its file, bytes. */
type Stored = FetchedSegment & { readonly sizeBytes: number };

/** Asks for a segment until its answer is whole: beside those before and after it, too. */
class SegmentFetcher {
  readonly #pieces: PieceFetcher;
  readonly #reading: Reading;
  readonly #signal: AbortSignal;
  readonly #segments: readonly Segment[];
  /** What was found first of each; undefined: nothing. Those before the ones underway are gone. */
  readonly #found = new Map<number, PromiseWithResolvers<Sound | undefined>>();
  /** The container of the first that could be read, once that has been taken. */
  #kind: string | undefined;
  /** How many have been taken. */
  #taken = 0;

  constructor(context: StreamContext, segments: readonly Segment[]) {
    this.#pieces = new PieceFetcher(context);
    this.#reading = context.reading;
    this.#signal = context.signal;
    this.#segments = segments;
  }

  async fetch(nth: number, file: string): Promise<Stored> {
    const [segment] = this.#segments.slice(nth, nth + 1);
    if (segment === undefined) throw new Error('no such segment');
    let kept: { readonly sound: Sound; readonly missingSeconds: number } | undefined;
    let sizeBytes: number | undefined;
    const look = async (isWhole: boolean): Promise<void> => {
      const examined = await this.#examine(nth, segment, file);
      const sound = isWhole ? examined : { ...examined, isWhole };
      this.#foundOf(nth).resolve(sound);
      const missing = missingSeconds(segment, sound, await this.#around(nth));
      kept = { sound, missingSeconds: missing };
      if (missing > 0) throw unusable(`a segment of the stream lacks ${missing.toFixed(2)} s of its sound`);
    };
    try {
      await this.#pieces.toFile(segment, file, {
        look: (isWhole) => asAsked(() => look(isWhole)),
        onSize(bytes) {
          if (bytes === 0) kept = undefined;
          sizeBytes = bytes;
        },
      });
    } catch (error) {
      if (error instanceof NotAsAsked && !error.retryable) throw error.failure;
      const isLie = error instanceof NotAsAsked || (isCutOff(error) && sizeBytes !== undefined);
      if (!isLie) throw error;
      const failure = error instanceof NotAsAsked ? error.failure : error;
      if (kept === undefined) return { segment, sizeBytes: sizeBytes ?? 0, failure };
    } finally {
      this.#foundOf(nth).resolve(undefined);
      this.#found.delete(nth - 2 * SEGMENTS_AT_ONCE);
    }
    if (kept === undefined) throw new Error('a segment that nobody has looked at');
    const init = await orItsFailure(this.#initOf(segment, kept.sound.kind));
    return { segment, file, init, ...kept, sizeBytes: sizeBytes ?? 0 };
  }

  /** @param taken how many have been taken, with the last of them */
  passed(taken: number, last: FetchedSegment): void {
    this.#taken = taken;
    if ('sound' in last) this.#kind ??= last.sound.kind;
  }

  async #examine(nth: number, segment: Segment, file: string): Promise<Sound> {
    const sound = await examine(file, () => this.#initOf(segment, 'mov'), this.#reading);
    const kind = (await this.#kindBefore(nth)) ?? sound.kind;
    if (sound.kind === kind) return sound;
    throw unusable(`a segment of the stream is ${sound.kind}, others are ${kind}`);
  }

  async #kindBefore(nth: number): Promise<string | undefined> {
    for (let earlier = this.#taken; earlier < nth && this.#kind === undefined; earlier += 1) {
      const sound = await this.#soundOf(earlier);
      if (sound !== undefined) return sound.kind;
    }
    return this.#kind;
  }

  /** Once each has an answer: each waits for the first answer of its neighbours alone. */
  async #around(nth: number): Promise<Neighbours> {
    const [here, next] = this.#segments.slice(nth, nth + 2);
    const isApart = (segment: Segment): boolean => segment.breaksClock || (segment.gapSeconds ?? 0) > 0;
    const [before, after] = await Promise.all([
      here === undefined || nth === 0 || isApart(here) ? undefined : this.#soundOf(nth - 1),
      next === undefined || isApart(next) ? undefined : this.#soundOf(nth + 1),
    ]);
    return { before, after };
  }

  /** Once its first answer is there; it may never be asked for, when another one has failed. */
  #soundOf(nth: number): Promise<Sound | undefined> {
    return untilAborted(this.#foundOf(nth).promise, this.#signal);
  }

  #foundOf(nth: number): PromiseWithResolvers<Sound | undefined> {
    const known = this.#found.get(nth) ?? Promise.withResolvers<Sound | undefined>();
    this.#found.set(nth, known);
    return known;
  }

  /** So that no header is fetched in vain. */
  async #initOf({ init }: Segment, kind: string): Promise<Uint8Array | undefined> {
    if (kind === 'mpegts' || PACKED.includes(kind)) return undefined;
    try {
      return await this.#pieces.bytesOf(await this.#pieces.init(init));
    } catch (error) {
      // Another answer for the segment would not help.
      throw error instanceof MediaFailure ? new NotAsAsked(error, { isFinal: true }) : error;
    }
  }
}

/** Also of what a byte range should hold. */
function isCutOff(error: unknown): error is OutboundFailed {
  return error instanceof OutboundFailed && error.kind === 'reset';
}

class PieceFetcher {
  readonly #context: StreamContext;
  readonly #keys = new Map<string, Promise<Uint8Array>>();
  /** Their files, by what they are fetched with: each segment may name another. */
  readonly #inits = new Map<string, Promise<string>>();
  /** Those that were read last: so the same bytes are parsed once. */
  readonly #bytesOf = new Map<string, Uint8Array>();

  constructor(context: StreamContext) {
    this.#context = context;
  }

  /** Fetched once for all segments. @returns its file, which stays */
  async init(piece: Piece | undefined): Promise<string | undefined> {
    if (piece === undefined) return undefined;
    const name = JSON.stringify(piece);
    const known = this.#inits.get(name);
    if (known !== undefined) return known;
    const file = join(this.#context.folder, `init-${this.#inits.size}`);
    const look = () => asAsked(() => requireInit(file));
    const stored = orItsFailure(this.toFile(piece, file, { look, maxBytes: MAX_INIT_BYTES }));
    this.#inits.set(
      name,
      stored.then(() => file),
    );
    return this.init(piece);
  }

  /** @param init its file */
  async bytesOf(init: string | undefined): Promise<Uint8Array | undefined> {
    if (init === undefined) return undefined;
    const bytes = this.#bytesOf.get(init) ?? (await readFile(init));
    this.#bytesOf.set(init, bytes);
    const [oldest = init] = this.#bytesOf.keys();
    if (this.#bytesOf.size > INITS_HELD) this.#bytesOf.delete(oldest);
    return bytes;
  }

  /**
   * @param look is awaited once an answer has been written, also one that was cut off
   * @param onSize of the file so far, bytes
   * @param maxBytes of a header; of segments all together have a limit
   */
  async toFile(
    piece: Piece,
    path: string,
    {
      look,
      onSize = () => {},
      maxBytes,
    }: {
      readonly look: (isWhole: boolean) => Promise<void>;
      readonly onSize?: (bytes: number) => void;
      readonly maxBytes?: number;
    },
  ): Promise<void> {
    const { fetch, signal, makeRoom } = this.#context;
    const { url, span } = piece;
    const decipher = await this.#decipher(piece);
    const isSegment = maxBytes === undefined;
    const request = { url, span, maxBytes: maxBytes ?? Number.POSITIVE_INFINITY, signal, isSegment };
    let sizeBytes = 0;
    await fetch(request, async ({ bytes }) => {
      let broken: unknown;
      {
        await using file = await open(path, 'w', 0o600);
        await makeRoom(-sizeBytes); // What an earlier try has written.
        sizeBytes = 0;
        onSize(0);
        try {
          for await (const chunk of decrypted(bytes, decipher())) {
            sizeBytes += chunk.length;
            onSize(sizeBytes);
            await makeRoom(chunk.length);
            await file.writeFile(chunk);
          }
        } catch (error) {
          if (!isCutOff(error)) throw error;
          broken = error;
        }
      }
      if (broken === undefined) return await look(true);
      // What has come may be all that there is.
      await look(false).catch((error) => {
        if (!(error instanceof NotAsAsked) || !error.retryable) throw error;
      });
      throw broken;
    });
  }

  /** A decipher can be used once, and a piece may be fetched again. */
  async #decipher({ encryption }: Piece): Promise<() => Decipheriv | undefined> {
    if (encryption === undefined) return () => undefined;
    const { keyUrl, iv } = encryption;
    const known = this.#keys.get(keyUrl) ?? this.#fetchKey(keyUrl);
    this.#keys.set(keyUrl, known);
    const key = await known;
    return () => createDecipheriv('aes-128-cbc', key, iv);
  }

  #fetchKey(url: string): Promise<Uint8Array> {
    return fetchBytes(this.#context, { url }, MIB, ({ length }) => {
      if (length !== KEY_BYTES) throw unusable(`a key of the stream is not of ${KEY_BYTES} bytes`);
    });
  }
}

async function allOf(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* decrypted(
  bytes: AsyncIterable<Uint8Array>,
  decipher: Decipheriv | undefined,
): AsyncGenerator<Uint8Array> {
  if (decipher === undefined) return yield* bytes;
  for await (const chunk of bytes) yield decipher.update(chunk);
  let rest: Buffer;
  try {
    rest = decipher.final();
  } catch (error) {
    throw new NotAsAsked(unusable('a segment of the stream could not be decrypted', { cause: error }));
  }
  yield rest;
}
