/**
 * multipart/form-data with one file (RFC 7578), stored as it arrives, so memory stays flat; also
 * application/x-www-form-urlencoded, which has no file.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { bodyStream } from './body-stream.ts';

interface FormReader<Stored> {
  readonly maxFileBytes: number;
  readonly maxFieldBytes: number;
  /** Gets the part `file` and must read it to the end. `filename` is not cleaned. */
  readonly store: (content: Readable, filename: string) => Promise<Stored>;
  /** Gets the result of `store` if the form fails afterwards. */
  readonly discard: (stored: Stored) => Promise<void>;
  /** Parts allowed beside `file`, once each. Default: any text; other files are dropped. */
  readonly only?: { readonly textParts: readonly string[]; readonly extraPart: (name: string) => Error };
  readonly errors: FormErrors;
}

/** A server's errors; thrown as they are. */
interface FormErrors {
  readonly tooLarge: (part: 'file' | 'field') => Error;
  /** Its Content-Type has no boundary, or the body is no form or was cut short. */
  readonly malformed: (what: 'type' | 'body', cause?: unknown) => Error;
}

interface ReceivedForm<Stored> {
  /** In order of arrival. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Undefined if there was no file. */
  readonly stored: Stored | undefined;
}

/** Limit for boundaries, headers, and all fields beside the largest. */
const MAX_OVERHEAD_BYTES = 1024 * 1024;
const LIMITS = { fields: 50, files: 4, headerPairs: 50 };

/** Reads the whole request. Throws `errors`, `extraPart` or `store`'s error, storing nothing. */
export async function readForm<Stored>(
  request: Request,
  { maxFileBytes, maxFieldBytes, store, discard, only, errors }: FormReader<Stored>,
): Promise<ReceivedForm<Stored>> {
  const fields: [name: string, value: string][] = [];
  let fieldBytes = 0;
  const faults: Error[] = [];
  const fault = (error: Error): Error => {
    faults.push(error);
    return error;
  };
  const parser = openParser(request, { fieldSize: maxFieldBytes, fileSize: maxFileBytes }, errors);
  let file: Readable | undefined;
  let storing: Promise<Stored> | undefined;
  let storeFailed = false;

  parser.on('field', (name, value, _nameTruncated, valueTruncated) => {
    const isRepeated = fields.some(([before]) => before === name);
    if (only !== undefined && (isRepeated || !only.textParts.includes(name))) {
      fault(only.extraPart(name));
    } else if (valueTruncated) {
      fault(errors.tooLarge('field'));
    }
    fields.push([name, value]);
    // Fields are held in memory.
    fieldBytes += value.length;
    if (fieldBytes > maxFieldBytes + MAX_OVERHEAD_BYTES) parser.destroy(fault(errors.tooLarge('field')));
  });
  parser.on('file', (name, content, filename) => {
    // The store's rejection reports it; a part without a store has nobody to report to.
    content.on('error', () => undefined);
    if (name !== 'file' || file !== undefined) {
      if (only !== undefined) {
        fault(only.extraPart(name));
      }
      content.resume();
      return;
    }
    file = content;
    content.once('limit', () => content.destroy(fault(errors.tooLarge('file'))));
    storing = store(content, filename ?? '');
    storing.catch((error: unknown) => {
      storeFailed = true;
      parser.destroy(asError(error));
    });
  });

  const body = bodyStream(
    request,
    { tooLarge: () => fault(errors.tooLarge('file')), cutShort: () => fault(errors.malformed('body')) },
    maxFileBytes + MAX_OVERHEAD_BYTES,
  );
  const broken = await pipeline(body, parser).then(() => undefined, asError);
  if (broken !== undefined && !storeFailed) {
    // A destroyed parser leaves its file open, and the store would wait forever.
    file?.destroy(broken);
  }
  const said = (error: Error): Error => (faults.includes(error) ? error : errors.malformed('body', error));
  const [outcome] = await Promise.allSettled([storing]);
  if (outcome.status === 'rejected') {
    // A failing disk or Redis is not the sender's fault; an unreadable part is.
    throw outcome.reason === file?.errored ? said(outcome.reason) : outcome.reason;
  }
  const first = broken ?? faults[0];
  if (first !== undefined) {
    if (outcome.value !== undefined) {
      await discard(outcome.value);
    }
    throw said(first);
  }
  return { fields, stored: outcome.value };
}

function openParser(
  request: Request,
  limits: { fieldSize: number; fileSize: number },
  { malformed }: FormErrors,
): BusboyInstance {
  try {
    const headers = { 'content-type': request.get('content-type') ?? '' };
    return new Busboy({ headers, limits: { ...LIMITS, ...limits }, isPartAFile });
  } catch (error) {
    throw malformed('type', error);
  }
}

/**
 * The part `file` is a file by its name too: a filename is optional (RFC 7578 section 4.2), and n8n
 * may send none.
 */
function isPartAFile(name: string | undefined, type: string | undefined, filename?: string): boolean {
  return name === 'file' || filename !== undefined || type === 'application/octet-stream';
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
