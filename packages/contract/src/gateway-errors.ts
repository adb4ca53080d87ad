/**
 * The error catalogue of the messaging gateway: one row per code, with its HTTP status (decisions B
 * "Errors"; messaging-gateway.md leaves them open). An answer is
 * `{status, error, code, requestId, response: {message: [one sentence a fault]}}`.
 */
import { z } from 'zod';

export interface GatewayCatalogueEntry {
  readonly httpStatus: number;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  readonly meaning: string;
  readonly remedy: string;
}

export const gatewayErrorCatalogue = {
  bad_request: {
    httpStatus: 400,
    retryable: false,
    meaning: 'A field is missing or invalid.',
    remedy: 'Fix the fields that the messages name.',
  },
  unknown_recipient: {
    httpStatus: 400,
    retryable: false,
    meaning: 'No person or group has this number on the instance’s network.',
    remedy: 'Check the number with its country code, or the JID.',
  },
  not_audio: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The file is not readable audio.',
    remedy: 'Check that the file plays and has an audio track.',
  },
  audio_unreachable: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The audio could not be downloaded from its URL.',
    remedy: 'Check that the URL is public and answers, or upload the audio.',
  },
  not_editable: {
    httpStatus: 400,
    retryable: false,
    meaning: 'This message cannot be edited.',
    remedy: 'Edit only your own messages, on a network that supports it.',
  },
  unauthorized: {
    httpStatus: 401,
    retryable: false,
    meaning: 'The apikey header is missing or has no access to this instance.',
    remedy: 'Send the gateway’s key or this instance’s token.',
  },
  instance_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'No instance has this name or id.',
    remedy: 'List the instances with GET /instance/fetchInstances.',
  },
  group_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'The instance is in no group with this JID.',
    remedy: 'List the groups with findChats.',
  },
  message_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'The chat has no message with this id.',
    remedy: 'Use the key from the send operation’s answer.',
  },
  delivery_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'No such delivery, or it has expired.',
    remedy: 'List the deliveries with GET /webhook/deliveries/{instance}.',
  },
  not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'There is nothing at this path.',
    remedy: 'Look the path up in /openapi.json.',
  },
  method_not_allowed: {
    httpStatus: 405,
    retryable: false,
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use a method from the Allow header.',
  },
  name_in_use: {
    httpStatus: 409,
    retryable: false,
    meaning: 'Another instance has this name.',
    remedy: 'Choose another name, or delete the other instance.',
  },
  idempotency_in_progress: {
    httpStatus: 409,
    retryable: true,
    meaning: 'The first request with this Idempotency-Key is still running.',
    remedy: 'Send the same request again in a moment.',
  },
  payload_too_large: {
    httpStatus: 413,
    retryable: false,
    meaning: 'The body is larger than the limit.',
    remedy: 'Send less; the message names the limit.',
  },
  unsupported_media_type: {
    httpStatus: 415,
    retryable: false,
    meaning: 'The Content-Type is not one that this operation reads.',
    remedy: 'Send application/json, or multipart/form-data with a file.',
  },
  idempotency_mismatch: {
    httpStatus: 422,
    retryable: false,
    meaning: 'The Idempotency-Key was used before with another body.',
    remedy: 'Use a new key for a new request.',
  },
  rate_limited: {
    httpStatus: 429,
    retryable: true,
    meaning: 'The instance has reached its sending limit, or this address sent too many wrong keys.',
    remedy: 'Wait for Retry-After seconds.',
  },
  internal_error: {
    httpStatus: 500,
    retryable: true,
    meaning: 'Something went wrong inside the gateway.',
    remedy: 'Try again. If it persists, report the requestId.',
  },
  unsupported: {
    httpStatus: 501,
    retryable: false,
    meaning: 'The instance’s network does not support this.',
    remedy: 'Use an instance on another transport.',
  },
  network_refused: {
    httpStatus: 502,
    retryable: true,
    meaning: 'The chat network or the transcriber refused the request or closed the connection.',
    remedy: 'Try again later.',
  },
  not_connected: {
    httpStatus: 503,
    retryable: true,
    meaning: 'The instance is not connected to its network.',
    remedy: 'Connect it with GET /instance/connect.',
  },
  service_unavailable: {
    httpStatus: 503,
    retryable: true,
    meaning: 'The gateway cannot reach its database or storage, or is stopping.',
    remedy: 'Wait for Retry-After seconds.',
  },
  standby: {
    httpStatus: 503,
    retryable: true,
    meaning: 'Another gateway process is active; this one is on standby and did not accept the request.',
    remedy:
      'Send the request to the process whose /health/ready answers 200, or retry after Retry-After seconds.',
  },
  timeout: {
    httpStatus: 504,
    retryable: true,
    meaning:
      'Preparing or sending took too long, or the process stopped responding. The message may have been sent.',
    remedy: 'Retry with the same Idempotency-Key, unless the answer has `retryable: false`.',
  },
} as const satisfies Record<string, GatewayCatalogueEntry>;

export type GatewayErrorCode = keyof typeof gatewayErrorCatalogue;

const GatewayErrorCode = z.enum(
  Object.keys(gatewayErrorCatalogue) as [GatewayErrorCode, ...GatewayErrorCode[]],
);

/** What every failed request to the gateway answers. */
export const GatewayErrorAnswer = z.object({
  status: z.int().meta({ description: 'The HTTP status' }),
  /** RFC 9110, 15. */
  error: z.string().meta({ description: 'Its reason phrase' }),
  code: GatewayErrorCode,
  requestId: z.string().meta({ format: 'uuid' }),
  retryable: z.literal(false).optional().meta({
    description:
      'For a timeout: the message may have arrived, so a retry with this Idempotency-Key sends nothing',
  }),
  response: z.object({
    message: z.array(z.string()).min(1).meta({ description: 'One sentence per fault, naming the field' }),
  }),
});
export type GatewayErrorAnswer = z.infer<typeof GatewayErrorAnswer>;

/**
 * The only error that the gateway throws for callers. They see its messages unchanged, so these
 * hold no address, path or secret; what only operators may see goes into `cause`.
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: GatewayErrorCode;
  /** One sentence per fault, naming the field. */
  readonly messages: readonly string[];
  /** Seconds for a Retry-After header, where waiting helps. */
  readonly retryAfterSeconds: number | undefined;
  /** False where a repetition does nothing, unlike the code says. */
  readonly retryable: false | undefined;

  constructor(
    code: GatewayErrorCode,
    messages: string | readonly string[],
    more: { retryAfterSeconds?: number; retryable?: false; cause?: unknown } = {},
  ) {
    const list = typeof messages === 'string' ? [messages] : messages;
    super(list.join('; '), { cause: more.cause });
    this.code = code;
    this.messages = list;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.retryable = more.retryable;
  }
}
