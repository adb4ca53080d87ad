/**
 * multipart/form-data with one file: fields are kept, the file goes straight to the storage, so memory stays flat whatever
 * its size (decisions A4, A5).
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy } from '@fastify/busboy';
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
    storing = store({ name: filename || 'upload', content });
    // Looked at below; without this a failure while the rest is still being read would count as unhandled.
    storing.catch((error: unknown) => parser.destroy(error instanceof Error ? error : undefined));
  });
  for (const limit of ['fieldsLimit', 'filesLimit', 'partsLimit'] as const) {
    parser.on(limit, () => refuse(new ServiceError('INVALID_REQUEST', 'the form has too many parts')));
  }
  try {
    await pipeline(request, parser);
  } catch (error) {
    await storing?.catch(() => undefined);
    throw storing
      ? await storing.then(
          () => malformed(error),
          (failure: unknown) => failure,
        )
      : malformed(error);
  }
  const stored = await storing;
  if (fault !== undefined) {
    throw fault;
  }
  return { fields, stored };
}

function openParser(contentType: string, maxFileBytes: number): Busboy {
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

function malformed(cause: unknown): unknown {
  return cause instanceof ServiceError
    ? cause
    : new ServiceError('INVALID_REQUEST', 'the multipart body is malformed or was cut short', { cause });
}
