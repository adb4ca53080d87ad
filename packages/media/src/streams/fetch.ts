/** Fetches the pieces of a stream, several at a time, and passes them on in order. */
import { createDecipheriv, type Decipheriv, randomUUID } from 'node:crypto';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Reading, readApart } from '../reading/reader.ts';
import { needsHeader } from './join/join.ts';
import {
  MAX_INIT_BYTES,
  type Piece,
  type Presentation,
  type Resource,
  type Segment,
  unpacked,
  unusable,
} from './presentation.ts';

/** Requests through the guard, within limits, with retries: packages/outbound/src/pieces.ts. */
type FetchPiece = <T>(
  request: Resource & {
    readonly maxBytes: number;
    readonly signal: AbortSignal;
    readonly isSegment?: boolean;
  },
  take: (answer: { readonly url: string; readonly bytes: AsyncIterable<Uint8Array> }) => Promise<T>,
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

/** The segments of a media playlist. @throws {MediaFailure}; as {@link FetchPiece} */
export async function fetchPlaylist(
  { fetch, signal, reading, folder, makeRoom }: StreamContext,
  url: string,
): Promise<Presentation> {
  const path = join(folder, `playlist-${randomUUID()}`);
  const { finalUrl, sizeBytes } = await fetch(
    { url, maxBytes: MAX_PLAYLIST_BYTES, signal },
    async (answer) => {
      const bytes = await allOf(answer.bytes);
      await makeRoom(bytes.length);
      await writeFile(path, bytes, { mode: 0o600 });
      return { finalUrl: answer.url, sizeBytes: bytes.length };
    },
  );
  const playlist = await readApart('playlist', { path, url: finalUrl }, sizeBytes, reading);
  await rm(path);
  await makeRoom(-sizeBytes);
  return unpacked(playlist);
}

/** What is small enough to be held in memory. @throws as {@link FetchPiece} */
export function fetchBytes(
  { fetch, signal }: StreamContext,
  resource: Resource,
  maxBytes: number,
): Promise<Buffer> {
  return fetch({ ...resource, maxBytes, signal }, ({ bytes }) => allOf(bytes));
}

/** @throws {MediaFailure} when it is longer than any playlist */
export function requirePlaylistSize(sizeBytes: number): void {
  if (sizeBytes > MAX_PLAYLIST_BYTES)
    throw unusable(`the playlist is larger than ${MAX_PLAYLIST_BYTES} bytes`);
}

/**
 * @param take gets each segment as a file of its own, decrypted, with its init section if segments
 * of its container need one; the file is removed afterwards
 * @throws as {@link FetchPiece}; {MediaFailure} for an invalid key or content; what `take` throws
 */
export async function fetchSegments(
  context: StreamContext,
  segments: readonly Segment[],
  take: (segment: Segment, file: string, init: Uint8Array | undefined) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const pieces = new PieceFetcher({ ...context, signal });
  const rest = segments.entries();
  const underway: Underway[] = [];
  // The first segment with content decides, so that no header is fetched in vain.
  let needsInit: Promise<boolean | undefined> = Promise.resolve(undefined);
  const fill = (): void => {
    while (underway.length < SEGMENTS_AT_ONCE) {
      const { value, done } = rest.next();
      if (done) return;
      const [nth, segment] = value;
      const file = join(context.folder, String(nth));
      const stored = pieces.toFile(segment, file);
      needsInit = needsInit.then((known) => known ?? stored.then(() => needsHeader(file)));
      const init = needsInit.then((isNeeded) => (isNeeded ? pieces.init(segment.init) : undefined));
      const parts = [init, stored] as const;
      // Both have ended when one fails, so that no more is written.
      const fetched = Promise.allSettled(parts).then(() => Promise.all(parts));
      fetched.catch(() => {}); // It is waited for in its turn.
      underway.push({ segment, file, fetched });
    }
  };
  try {
    for (fill(); underway.length > 0; fill()) {
      for (const { segment, file, fetched } of underway.splice(0, 1)) {
        const [init, sizeBytes] = await fetched;
        await take(segment, file, await pieces.bytesOf(init));
        await rm(file);
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

interface Underway {
  readonly segment: Segment;
  readonly file: string;
  /** The file of its init section, and the size of its own. */
  readonly fetched: Promise<readonly [init: string | undefined, sizeBytes: number]>;
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
    const stored = this.toFile(piece, file, MAX_INIT_BYTES).then(() => file);
    this.#inits.set(name, stored);
    return stored;
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
   * @param maxBytes of a header; of segments all together have a limit
   * @returns its size, bytes
   */
  async toFile(piece: Piece, path: string, maxBytes?: number): Promise<number> {
    const { fetch, signal, makeRoom } = this.#context;
    const { url, span } = piece;
    const decipher = await this.#decipher(piece);
    const isSegment = maxBytes === undefined;
    const request = { url, span, maxBytes: maxBytes ?? Number.POSITIVE_INFINITY, signal, isSegment };
    let sizeBytes = 0;
    await fetch(request, async ({ bytes }) => {
      await using file = await open(path, 'w', 0o600);
      await makeRoom(-sizeBytes); // What an earlier try has written.
      sizeBytes = 0;
      for await (const chunk of decrypted(bytes, decipher())) {
        sizeBytes += chunk.length;
        await makeRoom(chunk.length);
        await file.writeFile(chunk);
      }
    });
    return sizeBytes;
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
    return fetchBytes(this.#context, { url }, MIB).then((key) => {
      if (key.length !== KEY_BYTES) throw unusable(`a key of the stream is not of ${KEY_BYTES} bytes`);
      return key;
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
    throw unusable('a segment of the stream could not be decrypted', { cause: error });
  }
  yield rest;
}
