/** Multipart bodies: one file, streamed to disk while it is hashed, and a few short text fields. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Request } from 'express';
import { GatewayError } from '../contract/gateway-errors.ts';
import { MAX_AUDIO_BYTES } from './audio-input.ts';

interface MultipartBody {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly file: { readonly path: string; readonly sha256: string } | undefined;
}

const MAX_FIELD_BYTES = 64 * 1024;
/** Boundaries and headers of the parts, and the text fields. */
const OVERHEAD_BYTES = 1024 * 1024;

const tooLarge = (): GatewayError =>
  new GatewayError('payload_too_large', 'body: a multipart body may have 100 MiB at most');

/** What comes while a write is under way goes into the next one: waking a thread for each 64 KiB of a socket takes longer than writing them. */
const WRITE_BYTES = 512 * 1024;

/** Fields that are lists or objects come as JSON text, or repeated. */
const STRUCTURED_FIELDS = new Set(['mentioned', 'quoted']);

/** Throws bad_request, payload_too_large. Files of other names than `file` are read and thrown away. */
export async function readMultipart(request: Request, workspace: string): Promise<MultipartBody> {
  if (Number(request.get('content-length') ?? 0) > MAX_AUDIO_BYTES + OVERHEAD_BYTES) {
    throw tooLarge();
  }
  const fields: Record<string, unknown> = {};
  let file: Promise<MultipartBody['file']> | undefined;
  const parser = openParser(request);
  parser.on('field', (name, value, _nameTruncated, truncated) => {
    if (truncated) {
      parser.destroy(tooLarge());
      return;
    }
    addField(fields, name, value);
  });
  parser.on('file', (name, stream) => {
    if (name !== 'file' || file !== undefined) {
      stream.resume();
      return;
    }
    file = saveFile(stream, join(workspace, 'upload'));
    file.catch((error: unknown) => parser.destroy(error instanceof Error ? error : undefined));
  });
  try {
    await pipeline(request, parser);
  } catch (error) {
    if (error instanceof GatewayError) {
      throw error;
    }
    throw new GatewayError('bad_request', 'body: is no complete multipart/form-data', { cause: error });
  }
  return { fields, file: await file };
}

function openParser(request: Request): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...request.headers, 'content-type': request.get('content-type') ?? '' },
      limits: { fileSize: MAX_AUDIO_BYTES, fieldSize: MAX_FIELD_BYTES, fields: 50, files: 4, parts: 60 },
    });
  } catch (error) {
    throw new GatewayError('bad_request', 'Content-Type: multipart/form-data lacks its boundary', {
      cause: error,
    });
  }
}

async function saveFile(stream: Readable, path: string): Promise<MultipartBody['file']> {
  const hash = createHash('sha256');
  let overLimit = false;
  stream.once('limit', () => {
    overLimit = true;
  });
  await pipeline(
    stream,
    async function* hashed(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: WRITE_BYTES }),
  );
  if (overLimit) {
    throw tooLarge();
  }
  return { path, sha256: hash.digest('hex') };
}

function addField(fields: Record<string, unknown>, name: string, value: string): void {
  if (!STRUCTURED_FIELDS.has(name)) {
    fields[name] = value;
    return;
  }
  const parsed = parseStructured(value);
  const before = fields[name];
  // A list may be one JSON text or the field repeated.
  if (name === 'mentioned') {
    fields[name] = [
      ...(Array.isArray(before) ? before : []),
      ...(Array.isArray(parsed) ? parsed : [String(parsed)]),
    ];
  } else {
    fields[name] = parsed;
  }
}

function parseStructured(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
