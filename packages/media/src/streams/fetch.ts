/** Fetches what a stream names: playlists, headers, keys and segments. */
import { createDecipheriv, type Decipheriv, randomUUID } from 'node:crypto';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reading } from '../reading/in-place.ts';
import { readApart } from '../reading/reader.ts';
import { asAsked, isCutOff, NotAsAsked, orItsFailure } from './not-as-asked.ts';
import {
  MAX_INIT_BYTES,
  type Piece,
  type Presentation,
  type Resource,
  unpacked,
  unusable,
} from './presentation.ts';
import { requireInit } from './segments/examine.ts';

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
      // Within the request, so a playlist that was cut off is fetched again.
      return await unpacked(await readApart('playlist', { ...answer, path }, content.length, reading));
    } finally {
      await rm(path, { force: true });
      await makeRoom(-content.length);
    }
  });
}

/**
 * Fetches a piece that is small enough for memory.
 * @param check throws a MediaFailure if the bytes cannot be the requested piece
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

/** Fetches segments into files, and each header and key once. */
export class PieceFetcher {
  readonly #context: StreamContext;
  readonly #keys = new Map<string, Promise<Uint8Array>>();
  /** Their files, by what they are fetched with: each segment may name another. */
  readonly #inits = new Map<string, Promise<string>>();
  /** Those that were read last: so the same bytes are parsed once. */
  readonly #bytesOf = new Map<string, Promise<Uint8Array>>();

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
    const bytes = this.#bytesOf.get(init) ?? readFile(init);
    this.#bytesOf.set(init, bytes);
    const [oldest = init] = this.#bytesOf.keys();
    if (this.#bytesOf.size > INITS_HELD) this.#bytesOf.delete(oldest);
    return bytes;
  }

  /**
   * @param look is awaited once an answer has been written, even if it was cut off
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
      // The bytes so far may be all there are.
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
