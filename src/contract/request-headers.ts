/** Headers that requests carry besides X-API-Key (decisions A4 and A6), under the names by which their senders know them. */
import { z } from 'zod';

/** POST extract, batch, retry, voice-message and uploads. */
export const IdempotencyHeaders = z.object({
  'Idempotency-Key': z.string().min(1).max(255).optional().meta({
    description:
      'Makes a repetition safe: the same key with the same body gets the first answer again, for 24 hours',
    example: '2f1c8a52-6f3e-4d0a-9a57-0c5a3f6a1b7d',
  }),
});

/** GET /v1/download/{jobId} (RFC 9110, 13 and 14). */
export const DownloadHeaders = z.object({
  Range: z.string().optional().meta({ description: 'One range of bytes', example: 'bytes=0-65535' }),
  'If-Range': z
    .string()
    .optional()
    .meta({ description: 'The ETag of the file that the range continues; another file is sent whole' }),
  'If-None-Match': z
    .string()
    .optional()
    .meta({ description: 'ETags that the caller has; the answer is then 304' }),
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
  'Last-Event-ID': z
    .string()
    .optional()
    .meta({ description: 'The id of the last event that the caller has seen' }),
});
