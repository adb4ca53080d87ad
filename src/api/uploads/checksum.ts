/** tus 1.0 checksums, which @tus/server lacks: `Upload-Checksum: sha1 <base64>` of the body. */
import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { ServiceError } from 'soundpost-contract/errors';
import { digestBytes } from './tus-protocol.ts';

// tus 1.0 errors whose status no code of the catalogue has.

export class TusRefusal extends Error {
  override readonly name = 'TusRefusal';
  readonly httpStatus: number;
  readonly refusal: ServiceError;

  constructor(httpStatus: number, refusal: ServiceError) {
    super(refusal.message, { cause: refusal });
    this.httpStatus = httpStatus;
    this.refusal = refusal;
  }
}

/** 460 Checksum Mismatch; the chunk is discarded. */
const HTTP_CHECKSUM_MISMATCH = 460;

/** A checksum sent with the bytes. */
export class Checksum {
  readonly #hash: Hash;
  readonly #expected: Buffer;

  /** Throws INVALID_REQUEST for a malformed header or an unknown algorithm. */
  static parse(header: string): Checksum {
    const [algorithm = '', text = '', ...rest] = header.split(' ');
    const expected = Buffer.from(text, 'base64');
    if (rest.length > 0 || expected.length === 0 || expected.length !== digestBytes[algorithm]) {
      throw new ServiceError(
        'INVALID_REQUEST',
        `Upload-Checksum must be one of ${Object.keys(digestBytes).join(', ')}, a space, and the digest in base64`,
      );
    }
    return new Checksum(algorithm, expected);
  }

  private constructor(algorithm: string, expected: Buffer) {
    this.#hash = createHash(algorithm);
    this.#expected = expected;
  }

  /** The same bytes, hashed as they pass. */
  over(content: Readable): Readable {
    const hash = this.#hash;
    return Readable.from(
      (async function* () {
        for await (const chunk of content) {
          hash.update(chunk);
          yield chunk;
        }
      })(),
      { objectMode: false },
    );
  }

  /** Call once, after the bytes. Throws a refusal with status 460. */
  demandMatch(): void {
    if (!this.#hash.digest().equals(this.#expected)) {
      throw new TusRefusal(
        HTTP_CHECKSUM_MISMATCH,
        new ServiceError('INVALID_REQUEST', 'the received bytes do not match Upload-Checksum'),
      );
    }
  }
}
