/** Reads a form: one file, hashed while streamed to disk, and text fields; ignores others. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request } from 'express';
import { parseJson } from 'soundpost-base/json';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { readForm } from 'soundpost-kit/http/multipart';
import { inWords } from './middleware/error-answer.ts';
import { type LocalAudio, MAX_AUDIO_BYTES } from './voice-notes.ts';

interface MultipartBody {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly file: LocalAudio | undefined;
}

const MAX_FIELD_BYTES = 64 * 1024;

/** Collects data during a write: a thread call for each 64 KiB costs more than the writing. */
const WRITE_BYTES = 512 * 1024;

/** Lists and objects come as JSON text, or as repeated fields. */
const STRUCTURED_FIELDS = new Set(['mentioned', 'quoted']);

/** Throws bad_request, payload_too_large. Its files go with the workspace. */
export async function readMultipart(
  request: Request,
  workspace: string,
  maxFieldBytes = MAX_FIELD_BYTES,
): Promise<MultipartBody> {
  const { fields, stored } = await readForm(request, {
    maxFileBytes: MAX_AUDIO_BYTES,
    maxFieldBytes,
    store: (content) => saveFile(content, join(workspace, 'upload')),
    discard: async () => undefined,
    errors: {
      tooLarge: (part) =>
        new GatewayError(
          'payload_too_large',
          part === 'file'
            ? 'body: a multipart body may have 100 MiB at most'
            : `body: a text field may have ${inWords(maxFieldBytes)} at most; send larger audio as a file`,
        ),
      malformed: (what, cause) => {
        const message =
          what === 'type'
            ? 'Content-Type: multipart/form-data lacks its boundary'
            : 'body: is not a complete form';
        return new GatewayError('bad_request', message, { cause });
      },
    },
  });
  const body: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    addField(body, name, value);
  }
  return { fields: body, file: stored };
}

async function saveFile(content: Readable, path: string): Promise<LocalAudio> {
  const hash = createHash('sha256');
  await pipeline(
    content,
    async function* hashed(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: WRITE_BYTES }),
  );
  return { path, sha256: hash.digest('hex') };
}

function addField(fields: Record<string, unknown>, name: string, value: string): void {
  if (!STRUCTURED_FIELDS.has(name)) {
    fields[name] = value;
    return;
  }
  const parsed = parseStructured(value);
  const before = fields[name];
  // A list is one JSON text, or the field repeated.
  if (name === 'mentioned') {
    fields[name] = [
      ...(Array.isArray(before) ? before : []),
      ...(Array.isArray(parsed) ? parsed : [String(parsed)]),
    ];
  } else if (typeof parsed === 'object') {
    // Anything else is a printed object, which the public server ignores too.
    fields[name] = parsed;
  }
}

function parseStructured(value: string): unknown {
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}
