/**
 * multipart/form-data with one file: fields are kept, the file goes straight to the storage, so memory stays flat whatever
 * its size (decisions A4, A5; RFC 7578).
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { ServiceError } from '../contract/errors.ts';
import type { ReceivedFile } from './intake.ts';
import { requestBody, tooLarge } from './request-body.ts';

interface FormHandling<Stored> {
  readonly maxFileBytes: number;
  /** Gets the file and must read its content to the end. */
  readonly store: (file: ReceivedFile) => Promise<Stored>;
  /** Gets what `store` made, when the form turns out to be no good after it. */
  readonly discard: (stored: Stored) => Promise<void>;
}

interface ReceivedForm<Stored> {
  readonly fields: ReadonlyMap<string, string>;
  /** Undefined when there was no file. */
  readonly stored: Stored | undefined;
}

const KIB = 1024;
const MAX_FIELD_BYTES = 256 * KIB;
const MAX_FIELDS = 10;
const MAX_HEADER_PAIRS = 50;
/** What a form may have beside the file's own bytes: fields, boundaries, headers. */
const MAX_OVERHEAD_BYTES = (MAX_FIELDS + 1) * (MAX_FIELD_BYTES + 64 * KIB);

/** Reads the whole request. Throws INVALID_REQUEST, PAYLOAD_TOO_LARGE, or what `store` rejects with; nothing is stored then. */
export async function receiveMultipart<Stored>(
  request: Request,
  { maxFileBytes, store, discard }: FormHandling<Stored>,
): Promise<ReceivedForm<Stored>> {
  const parser = openParser(request.get('content-type') ?? '', maxFileBytes);
  const fields = new Map<string, string>();
  const faults: ServiceError[] = [];
  let file: Readable | undefined;
  let storing: Promise<Stored> | undefined;
  let storeFailed = false;

  parser.on('field', (name, value, _nameTruncated, valueTruncated) => {
    if (valueTruncated) {
      faults.push(new ServiceError('PAYLOAD_TOO_LARGE', 'a field of the form may have at most 256 KiB'));
    }
    fields.set(name, value);
  });
  parser.on('file', (name, content, filename) => {
    // Told by what the store rejects with; a part that nobody stores has nobody to tell.
    content.on('error', () => undefined);
    if (name !== 'file') {
      faults.push(oneFileOnly());
      content.resume();
      return;
    }
    file = content;
    content.once('limit', () => content.destroy(tooLarge(maxFileBytes)));
    storing = store({ name: filename ?? '', content });
    storing.catch((error: unknown) => {
      storeFailed = true;
      parser.destroy(asError(error));
    });
  });
  parser.on('filesLimit', () => faults.push(oneFileOnly()));
  parser.on('fieldsLimit', () =>
    faults.push(new ServiceError('INVALID_REQUEST', `a form has at most ${MAX_FIELDS} fields`)),
  );

  const body = requestBody(request, maxFileBytes + MAX_OVERHEAD_BYTES);
  const broken = await pipeline(body, parser).then(() => undefined, asError);
  if (broken !== undefined && !storeFailed) {
    // The parser leaves its file open when it is destroyed: whoever stores it would wait for ever.
    file?.destroy(broken);
  }
  const [outcome] = await Promise.allSettled([storing]);
  if (outcome.status === 'rejected') {
    // A disk or a Redis that fails is not the sender's fault, a part that cannot be read is.
    throw outcome.reason === file?.errored ? senderFault(outcome.reason) : outcome.reason;
  }
  const fault = broken ?? faults[0];
  if (fault !== undefined) {
    if (outcome.value !== undefined) {
      await discard(outcome.value);
    }
    throw senderFault(fault);
  }
  return { fields, stored: outcome.value };
}

function openParser(contentType: string, maxFileBytes: number): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        files: 1,
        fields: MAX_FIELDS,
        fieldSize: MAX_FIELD_BYTES,
        fileSize: maxFileBytes,
        headerPairs: MAX_HEADER_PAIRS,
      },
    });
  } catch (error) {
    throw malformed(error);
  }
}

function oneFileOnly(): ServiceError {
  return new ServiceError('INVALID_REQUEST', 'send exactly one file, in a part with the name file');
}

function senderFault(error: unknown): ServiceError {
  return error instanceof ServiceError ? error : malformed(error);
}

function malformed(cause: unknown): ServiceError {
  return new ServiceError('INVALID_REQUEST', 'the multipart body is malformed or was cut short', { cause });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
