/**
 * Headers that requests carry besides X-API-Key (decisions A4 and A6), under the names by which
 * their senders know them; and those that a caller has us send to a webhook or a destination.
 */
import { z } from 'zod';

/** POST extract, batch, retry, voice-message and uploads. */
export const IdempotencyHeaders = z.object({
  'Idempotency-Key': z.string().min(1).max(255).optional().meta({
    description:
      'Makes retries safe: repeating the same request with this key returns the first answer, for 24 hours',
    example: '2f1c8a52-6f3e-4d0a-9a57-0c5a3f6a1b7d',
  }),
});

/** POST extract and retry (RFC 7240). */
export const SubmitHeaders = IdempotencyHeaders.extend({
  Prefer: z.string().optional().meta({
    description:
      'wait=1 to wait=60: answers when the job has ended, or after so many seconds. Needs the scope read; other values are ignored',
    example: 'wait=30',
  }),
});

/** GET /v1/download/{jobId} (RFC 9110, 13 and 14). */
export const DownloadHeaders = z.object({
  Range: z.string().optional().meta({ description: 'One range of bytes', example: 'bytes=0-65535' }),
  'If-Range': z.string().optional().meta({
    description: 'ETag of the file that the range continues; if the file has changed, all of it is sent',
  }),
  'If-None-Match': z
    .string()
    .optional()
    .meta({ description: 'ETags that you have; if one matches, the answer is 304' }),
});

/** /v1/session (decisions A6). */
export const ConsoleHeaders = z.object({
  'Soundpost-Console': z
    .literal('1')
    .meta({ description: 'Proves that the request is not from a page of another origin' }),
});

/** Standard Webhooks 1.0.0: what the gateway signs its events with. */
export const SignedEventHeaders = z.object({
  'webhook-id': z.string().meta({ description: 'The same for every attempt' }),
  'webhook-timestamp': z.string().regex(/^\d+$/).meta({ description: 'Unix seconds of the attempt' }),
  'webhook-signature': z
    .string()
    .meta({ description: 'Signatures of the form v1,<base64>, separated by spaces' }),
});

/** GET /v1/jobs/{jobId}/events (WHATWG HTML 9.2). */
export const LastEventHeaders = z.object({
  'Last-Event-ID': z.string().optional().meta({ description: 'Id of the last event that you received' }),
});

/** POST /v1/uploads (RFC 6266; tus 1.0, "Creation" and "Creation With Upload"). */
export const TusUploadHeaders = z.object({
  'Content-Disposition': z
    .string()
    .optional()
    .meta({ description: 'Name of a file sent as the body', example: 'attachment; filename="talk.mp4"' }),
  'Tus-Resumable': z.string().optional().meta({ description: 'Starts a tus upload; must be 1.0.0' }),
  'Upload-Length': z.string().optional().meta({ description: 'tus: size of the whole file in bytes' }),
  'Upload-Metadata': z.string().optional().meta({
    description: 'tus: keys with base64 values; filename is the file’s name',
    example: 'filename dGFsay5tcDQ=',
  }),
  'Upload-Checksum': z.string().optional().meta({
    description: 'tus: algorithm and base64 digest of the bytes in this request',
    example: 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=',
  }),
});

/** PATCH /v1/uploads/{uploadId} (tus 1.0, "Core protocol" and "Checksum"). */
export const TusChunkHeaders = TusUploadHeaders.pick({ 'Upload-Checksum': true }).extend({
  'Tus-Resumable': z.string().meta({ description: 'The version of tus', example: '1.0.0' }),
  'Upload-Offset': z.string().meta({ description: 'How many bytes have arrived before these', example: '0' }),
});

const LONGEST_NAME = 128;

interface HeaderRules {
  /** Lower case: names that the sender needs for itself. */
  readonly reserved: RegExp;
  /** Such as `the gateway`. */
  readonly setBy: string;
  /** Characters of a value, at most. */
  readonly longestValue: number;
  /** Default 20. */
  readonly most?: number;
}

/** What no caller may set: where the message goes, and where it ends (RFC 9110, 7.6.1 and 7.2). */
export const CONNECTION_HEADERS =
  'host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer|proxy-.*';

/** Names and values as RFC 9110 has them (5.6.2 and 5.5). */
export function headerFields({ reserved, setBy, longestValue, most = 20 }: HeaderRules) {
  return z
    .record(
      z
        .string()
        .max(LONGEST_NAME)
        .regex(/^[!#$%&'*+.^_`|~\w-]+$/, 'must be a header name'),
      z
        .string()
        .max(longestValue)
        .regex(/^[\x20-\x7e\x80-\xff]*$/, 'must be a header value'),
    )
    .superRefine((headers, context) => {
      const names = Object.keys(headers);
      for (const name of names.filter((candidate) => reserved.test(candidate.toLowerCase()))) {
        context.addIssue({ code: 'custom', path: [name], message: `is set by ${setBy} itself` });
      }
      if (names.length > most) {
        context.addIssue({ code: 'custom', message: `must be ${most} at most` });
      }
    });
}
