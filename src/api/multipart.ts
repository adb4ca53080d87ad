/**
 * multipart/form-data with one file: fields are kept, the file goes straight to the storage, so memory stays flat whatever
 * its size (decisions A4, A5).
 */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { ServiceError } from '../contract/errors.ts';

export interface ReceivedFile {
  readonly name: string;
  readonly content: Readable;
}

export interface MultipartLimits {
  readonly maxFileBytes: number;
}

const MAX_FIELD_BYTES = 256 * 1024;
const MAX_FIELDS = 10;
const MAX_HEADER_PAIRS = 50;

/**
 * Reads the whole request. `store` is called with the file and must read its content to the end; what it resolves with
 * is handed back. Throws INVALID_REQUEST, PAYLOAD_TOO_LARGE, or what `store` rejects with.
 */
export async function receiveMultipart<Stored>(
  request: Request,
  { maxFileBytes }: MultipartLimits,
  store: (file: ReceivedFile) => Promise<Stored>,
): Promise<{ fields: ReadonlyMap<string, string>; stored: Stored | undefined }> {
  const contentType = request.headers['content-type'] ?? '';
  const fields = new Map<string, string>();
  let file: Readable | undefined;
  let storing: Promise<Stored> | undefined;
  let fault: ServiceError | undefined;
  const parser = openParser(contentType, maxFileBytes);
  const refuse = (error: ServiceError): void => {
    fault ??= error;
  };
  parser.on('field', (name, value, _nameTruncated, valueTruncated) => {
    if (valueTruncated) {
      refuse(new ServiceError('PAYLOAD_TOO_LARGE', `the part ${name} may have at most 256 KiB`));
    }
    fields.set(name, value);
  });
  parser.on('file', (name, content, filename) => {
    if (name !== 'file' || storing !== undefined) {
      refuse(new ServiceError('INVALID_REQUEST', 'send exactly one file, in a part with the name file'));
      content.resume();
      return;
    }
    content.on('limit', () =>
      content.destroy(new ServiceError('PAYLOAD_TOO_LARGE', `a file may have at most ${maxFileBytes} bytes`)),
    );
    file = content;
    storing = store({ name: filename || 'upload', content });
    storing.catch((error: unknown) => parser.destroy(error instanceof Error ? error : undefined));
  });
  for (const limit of ['fieldsLimit', 'filesLimit', 'partsLimit'] as const) {
    parser.on(limit, () => refuse(new ServiceError('INVALID_REQUEST', 'the form has too many parts')));
  }
  const cutShort = (): void => {
    parser.destroy(malformed(undefined));
  };
  request.once('aborted', cutShort);
  try {
    request.pipe(parser);
    await finished(parser);
    const stored = await storing;
    if (fault !== undefined) {
      throw fault;
    }
    return { fields, stored };
  } catch (error) {
    // The rest is read and dropped, not cut off: a sender whose connection breaks never sees the answer.
    request.unpipe(parser);
    request.resume();
    file?.destroy();
    const failure = await storing?.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    throw failure instanceof Error && !isPrematureClose(failure) ? failure : malformed(error);
  } finally {
    request.off('aborted', cutShort);
  }
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

function isPrematureClose(error: Error): boolean {
  return 'code' in error && (error.code === 'ERR_STREAM_PREMATURE_CLOSE' || error.code === 'ABORT_ERR');
}

function malformed(cause: unknown): ServiceError {
  return cause instanceof ServiceError
    ? cause
    : new ServiceError('INVALID_REQUEST', 'the multipart body is malformed or was cut short', { cause });
}
