/** Requests with a file: the part `file` of a form, or the body itself (decisions A4, A5). */
import type { Hash } from 'node:crypto';
import { ServiceError } from 'soundpost-contract/errors';
import type { bodyStream } from 'soundpost-kit/http/body-stream';
import { readForm } from 'soundpost-kit/http/multipart';
import type { Upload } from '../jobs/uploads/record.ts';
import { discardUpload, storeUpload, withRoom } from './intake.ts';
import { MAX_JOB_BYTES } from './request.ts';
import { keyOf, type RouteContext } from './route.ts';

type FormRules = Parameters<typeof readForm<Upload>>[1];

interface TakenForm {
  readonly upload: Upload;
  readonly fields: ReadonlyMap<string, string>;
}

/**
 * Stores the file as the caller's upload, or leaves nothing. Throws INVALID_REQUEST,
 * PAYLOAD_TOO_LARGE or what `storeUpload` throws.
 * @param hash receives every byte
 * @param textParts allowed beside `file`
 * @param isKept whether it counts against the key's upload budget
 */
export async function takeForm(
  context: RouteContext,
  hash: Hash | undefined,
  { textParts = [], isKept = false }: { readonly textParts?: readonly string[]; readonly isKept?: boolean },
): Promise<TakenForm> {
  const announcedBytes = isKept ? Number(context.request.get('content-length') ?? 0) : undefined;
  const only = {
    textParts,
    extraPart: (name: string) => invalidForm(name, `the form takes ${partsInWords(textParts)}`),
  };
  const { fields, stored } = await readParts(context, hash, { announcedBytes, only });
  if (stored === undefined) {
    throw invalidForm('file', 'is required');
  }
  return { upload: stored, fields: new Map(fields) };
}

/**
 * Like {@link takeForm}, but the file may be missing. Without `only`, other files are dropped.
 * @param hash receives every byte of the file
 */
export function readParts(
  context: RouteContext,
  hash: Hash | undefined,
  {
    announcedBytes,
    ...rules
  }: Pick<FormRules, 'only'> & { readonly announcedBytes?: number | undefined } = {},
): ReturnType<typeof readForm<Upload>> {
  const { request, services } = context;
  const { maxInputBytes } = services.settings;
  return withRoom(context, () =>
    readForm(request, {
      maxFileBytes: maxInputBytes,
      maxFieldBytes: MAX_JOB_BYTES,
      store: (content, name) =>
        storeUpload(services, keyOf(context).id, { name, content, hash, announcedBytes }),
      discard: (upload) => discardUpload(services, upload.file),
      ...rules,
      errors: {
        tooLarge: (part) =>
          part === 'file'
            ? fileErrors(maxInputBytes).tooLarge()
            : new ServiceError('PAYLOAD_TOO_LARGE', 'a field of the form may have at most 64 KiB'),
        malformed: (_what, cause) =>
          new ServiceError('INVALID_REQUEST', 'the multipart body is malformed or incomplete', { cause }),
      },
    }),
  );
}

export function invalidForm(part: string, rule: string): ServiceError {
  return new ServiceError('INVALID_REQUEST', 'the request is not valid', { details: `${part}: ${rule}` });
}

/** Errors for a body that is a file or a chunk. */
export function fileErrors(maxBytes: number): Parameters<typeof bodyStream>[1] {
  return {
    tooLarge: () => new ServiceError('PAYLOAD_TOO_LARGE', `a file may have at most ${maxBytes} bytes`),
    cutShort: () => new ServiceError('INVALID_REQUEST', 'the body is incomplete'),
  };
}

function partsInWords(textParts: readonly string[]): string {
  return textParts.length === 0
    ? 'one part, file'
    : `the parts ${['file', ...textParts.map((name) => `${name} (text)`)].join(' and ')}, each once`;
}
