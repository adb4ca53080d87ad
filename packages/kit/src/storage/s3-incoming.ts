/**
 * Uploads in pieces to a bucket: each is one multipart upload of its future object, so completing
 * it copies nothing. Parts have at least 5 MiB and one size per upload, so a repeated part is the
 * same. Bytes beyond the last whole part are a separate object, the tail, until the next request.
 *
 * Only noted state counts: parts and tails that were not noted are stored again.
 */
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListPartsCommand,
  type Part,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';
import { isNoUpload } from './s3-errors.ts';
import { inParts, partBytesFor } from './s3-parts.ts';
import { openObject } from './s3-reader.ts';
import { type IncomingUploads, type InTime, ObjectNotFound } from './storage.ts';

/**
 * An upload's state besides its bytes, if the storage cannot hold it. Every process must see it for
 * as long as the upload exists.
 */
interface IncomingStates {
  read(file: string): Promise<IncomingState | undefined>;
  /** Stores the given changes. The size of the complete upload was stored when it began. */
  note(file: string, changes: Partial<Omit<IncomingState, 'sizeBytes'>>): Promise<void>;
  forget(file: string): Promise<void>;
}

interface IncomingState {
  /** Id of the multipart upload. */
  readonly multipart: string;
  /** Of the complete upload. */
  readonly sizeBytes: number;
  readonly arrivedBytes: number;
  /** Positions of tails, which are too short for a part. */
  readonly tails: readonly number[];
}

interface S3IncomingOptions {
  readonly states: IncomingStates;
  /** Limits what may complete late without harm: no bytes, nothing that a later request meets. */
  readonly inTime: InTime;
  /** Key of the complete upload. */
  readonly keyOf: (file: string) => string;
  /** Part size of an upload; default the least that S3 accepts. */
  readonly partBytesFor?: (uploadBytes: number) => number;
}

export class S3Incoming implements IncomingUploads {
  readonly #bucket: S3Bucket;
  readonly #options: S3IncomingOptions;
  readonly #partBytesFor: (uploadBytes: number) => number;

  constructor(bucket: S3Bucket, options: S3IncomingOptions) {
    this.#bucket = bucket;
    this.#options = options;
    this.#partBytesFor = options.partBytesFor ?? partBytesFor;
  }

  async create(file: string): Promise<void> {
    const command = new CreateMultipartUploadCommand(this.#object(file));
    const asking = this.#bucket.ask('CreateMultipartUpload', this.#bucket.client.send(command));
    const { UploadId } = await this.#options.inTime('create', asking);
    if (UploadId === undefined) throw new Error('the server has begun a multipart upload without a name');
    await this.#options.states.note(file, { multipart: UploadId, arrivedBytes: 0, tails: [] });
  }

  async sizeOf(file: string): Promise<number | undefined> {
    return (await this.#options.states.read(file))?.arrivedBytes;
  }

  async write(file: string, content: Readable, offset: number): Promise<number> {
    const { inTime, states } = this.#options;
    const state = await this.#stateOf(file);
    const partBytes = this.#partBytesFor(state.sizeBytes);
    const restBytes = offset % partBytes;
    const start = offset - restBytes;
    await inTime('write', this.#bucket.ping());
    const tails = await this.#dropSpent(file, state, start);
    const before = await this.#restOf(file, start, restBytes);
    let arrivedBytes = offset;
    let sent = start / partBytes;
    await inParts(before, content, {
      partBytes,
      wholeBytes: state.sizeBytes - start,
      send: async (part) => {
        await this.#sendPart(file, state.multipart, sent + 1, part);
        arrivedBytes = sent * partBytes + part.length;
        sent += 1;
        await states.note(file, { arrivedBytes });
      },
      keep: async (rest) => {
        const at = sent * partBytes;
        // Noted before it is stored, because only noted tails are removed later.
        await states.note(file, { tails: [...new Set([...tails, at])] });
        await this.#bucket.ask(
          'PutObject',
          this.#bucket.sending.send(
            new PutObjectCommand({ ...this.#bucket.at(tailKey(file, at)), Body: rest }),
          ),
        );
        arrivedBytes = at + rest.length;
        await states.note(file, { arrivedBytes });
      },
    });
    return arrivedBytes;
  }

  async truncate(file: string, sizeBytes: number): Promise<void> {
    await this.#options.states.note(file, { arrivedBytes: sizeBytes });
  }

  async handOver(file: string): Promise<void> {
    const state = await this.#stateOf(file);
    try {
      await this.#complete(file, state);
    } catch (error) {
      if (!isLost(error)) throw error;
      // It may have been completed by a process that died before it could report that.
      const storedBytes = await this.#bucket.sizeOf(this.#options.keyOf(file));
      if (storedBytes !== state.sizeBytes) throw new ObjectNotFound(file);
    }
    await this.#deleteTails(file, state.tails);
    await this.#options.states.forget(file);
  }

  async remove(file: string): Promise<void> {
    const state = await this.#options.states.read(file);
    if (state === undefined) return;
    const abort = new AbortMultipartUploadCommand({ ...this.#object(file), UploadId: state.multipart });
    const removing = async (): Promise<void> => {
      await this.#bucket
        .ask('AbortMultipartUpload', this.#bucket.client.send(abort))
        .catch((error: unknown) => {
          if (!isLost(error)) throw error;
        });
      await this.#deleteTails(file, state.tails);
    };
    await this.#options.inTime('remove', removing());
  }

  /**
   * Removes tails that are now in parts. It keeps those from `start` on: a late removal would
   * delete what a later request has stored there, and obsolete ones are overwritten.
   * @returns the remaining ones
   */
  async #dropSpent(file: string, { tails }: IncomingState, start: number): Promise<number[]> {
    const left = tails.filter((tail) => tail >= start);
    if (left.length < tails.length) {
      await this.#deleteTails(
        file,
        tails.filter((tail) => tail < start),
      );
      await this.#options.states.note(file, { tails: left });
    }
    return left;
  }

  /** The beginning of the next part. */
  async #restOf(file: string, start: number, restBytes: number): Promise<Buffer> {
    if (restBytes === 0) return Buffer.alloc(0);
    // A later write may have made it longer and been rolled back.
    const rest = await openObject(this.#bucket, tailKey(file, start), { start: 0, end: restBytes - 1 });
    const bytes = await buffer(rest);
    if (bytes.length !== restBytes) throw new ObjectNotFound(file);
    return bytes;
  }

  async #sendPart(file: string, multipart: string, number: number, part: Buffer): Promise<void> {
    const name = { ...this.#object(file), UploadId: multipart, PartNumber: number };
    await this.#bucket
      .ask('UploadPart', this.#bucket.sending.send(new UploadPartCommand({ ...name, Body: part })))
      .catch((error: unknown) => {
        throw orNotFound(error, file);
      });
  }

  async #complete(file: string, { multipart, sizeBytes }: IncomingState): Promise<void> {
    const upload = { ...this.#object(file), UploadId: multipart };
    const listed = await this.#bucket.ask('ListParts', this.#partsOf(upload));
    const parts = listed.slice(0, Math.ceil(sizeBytes / this.#partBytesFor(sizeBytes)));
    if (parts.reduce((sum, { Size = 0 }) => sum + Size, 0) !== sizeBytes) throw new ObjectNotFound(file);
    const named = parts.map(({ PartNumber, ETag }) => ({ PartNumber, ETag }));
    const command = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: named } });
    await this.#bucket.ask('CompleteMultipartUpload', this.#bucket.client.send(command));
  }

  /** Not `paginateListParts`: servers set its marker on the last page too, to 0 on an empty one. */
  async #partsOf(upload: { Bucket: string; Key: string; UploadId: string }): Promise<Part[]> {
    const parts: Part[] = [];
    let after: { PartNumberMarker?: string | undefined } = {};
    for (;;) {
      const page = await this.#bucket.client.send(new ListPartsCommand({ ...upload, ...after }));
      parts.push(...(page.Parts ?? []));
      if (page.IsTruncated !== true) return parts;
      after = { PartNumberMarker: page.NextPartNumberMarker };
    }
  }

  async #deleteTails(file: string, tails: readonly number[]): Promise<void> {
    await Promise.all(tails.map((at) => this.#bucket.remove(tailKey(file, at))));
  }

  async #stateOf(file: string): Promise<IncomingState> {
    const state = await this.#options.states.read(file);
    if (state === undefined) throw new ObjectNotFound(file);
    return state;
  }

  #object(file: string): { Bucket: string; Key: string } {
    return this.#bucket.at(this.#options.keyOf(file));
  }
}

/** Keys of objects never begin like this. */
function tailKey(file: string, at: number): string {
  return `uploads/.incoming/${file}/${at}`;
}

function isLost(error: unknown): boolean {
  return error instanceof ObjectNotFound || (error instanceof Error && isNoUpload(error.cause));
}

function orNotFound(error: unknown, file: string): unknown {
  return isLost(error) ? new ObjectNotFound(file) : error;
}
