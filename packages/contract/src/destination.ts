/** Where a finished file is put besides our storage: the request and its state (decisions A8). */
import { z } from 'zod';
import { CONNECTION_HEADERS, headerFields } from './request-headers.ts';

const MAX_URL_LENGTH = 2048;
/** No name and no extension is longer. */
const LONGEST = { name: 'n'.repeat(32), extension: 'json' };

/** `{name}` and `{extension}` are filled in in the path; a query may be part of a signature. */
export const DestinationRequest = z.strictObject({
  url: z
    .string()
    .min(1)
    .refine(
      (url) => filledIn(url, LONGEST).length <= MAX_URL_LENGTH,
      `must be at most ${MAX_URL_LENGTH} characters, with {name} and {extension} filled in`,
    )
    .meta({
      description:
        'https address that accepts a PUT, such as a presigned S3 address. In its path, {name} becomes the output’s name and {extension} becomes mp3, json, …',
      example: 'https://bucket.s3.example.com/talks/keynote.mp3?X-Amz-Signature=2b7f9a51',
    }),
  headers: headerFields({
    reserved: new RegExp(`^(${CONNECTION_HEADERS}|repr-digest)$`),
    setBy: 'the service',
    longestValue: 1024,
  })
    .optional()
    .meta({
      description:
        'Headers to send, such as x-ms-blob-type, at most 20. Content-Type replaces the file’s own',
      example: { 'x-ms-blob-type': 'BlockBlob' },
    }),
});
export type DestinationRequest = z.infer<typeof DestinationRequest>;

/** POST /v1/jobs/{jobId}/destinations/{name}/replay: both optional. */
export const DestinationReplayRequest = DestinationRequest.extend({
  url: DestinationRequest.shape.url.optional().meta({
    description:
      'A new address, such as a fresh presigned one; also needs the scope download. Default: the previous address',
    example: 'https://bucket.s3.example.com/talks/keynote.mp3?X-Amz-Signature=9c04d7e3',
  }),
  headers: DestinationRequest.shape.headers.meta({
    description:
      'Replace the previous headers. Default: the previous ones, or none for another scheme, host or port',
    example: { 'x-ms-blob-type': 'BlockBlob' },
  }),
});
export type DestinationReplayRequest = z.infer<typeof DestinationReplayRequest>;

/** Headers of a job's destinations together, names and values (decisions A6). */
export const MAX_DESTINATION_HEADER_BYTES = 8 * 1024;

/** Header values are Latin-1: a character is a byte on the wire. */
export function headerBytes(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/** As answered: without its secrets. */
export const DestinationState = z.object({
  url: z.string().meta({
    description:
      'Without its query, which may contain a secret; for a file, {name} and {extension} are filled in',
    example: 'https://bucket.s3.example.com/talks/keynote.mp3',
  }),
  headers: z
    .array(z.string())
    .optional()
    .meta({ description: 'Names of the headers that are sent', example: ['x-ms-blob-type'] }),
  status: z.enum(['pending', 'completed', 'failed']).meta({
    description: 'pending until the file is uploaded or no attempts are left',
    example: 'completed',
  }),
  error: z
    .object({ code: z.literal('DESTINATION_FAILED'), message: z.string() })
    .nullable()
    .meta({ description: 'Why the upload failed; the job stays completed', example: null }),
});
export type DestinationState = z.infer<typeof DestinationState>;

/** What of an address depends on the file; the rest stays unchanged. */
interface PlacedFile {
  /** Of the output. */
  readonly name: string;
  /** Without a dot. */
  readonly extension: string;
}

/** The path's placeholders filled in. */
export function filledIn(url: string, { name, extension }: PlacedFile): string {
  const [path = ''] = url.split(/[?#]/, 1);
  return path.replaceAll('{name}', name).replaceAll('{extension}', extension) + url.slice(path.length);
}

/** Whether each output has an address of its own there. */
export function namesOutputs(url: string): boolean {
  return filledIn(url, { name: 'a', extension: '' }) !== filledIn(url, { name: 'b', extension: '' });
}
