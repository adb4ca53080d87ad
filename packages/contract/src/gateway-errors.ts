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
    meaning: 'A field is missing or has a value that the operation does not take.',
    remedy: 'Fix the fields that the messages name.',
  },
  unknown_recipient: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The network of the instance knows nobody and no group under this number.',
    remedy: 'Check the number with its country code, or the JID.',
  },
  not_audio: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The audio cannot be read as sound.',
    remedy: 'Check that the file plays and holds an audio track.',
  },
  audio_unreachable: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The audio could not be downloaded from its URL.',
    remedy: 'Check that the URL is public and answers, or send the audio itself.',
  },
  not_editable: {
    httpStatus: 400,
    retryable: false,
    meaning: 'The message is not one that can be changed.',
    remedy: 'Change only own messages, and only on networks that can.',
  },
  unauthorized: {
    httpStatus: 401,
    retryable: false,
    meaning: 'The apikey header is missing or does not give access to this instance.',
    remedy: 'Send the key of the gateway, or the token of this very instance.',
  },
  instance_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'No instance has this name or id.',
    remedy: 'Look the instance up with GET /instance/fetchInstances.',
  },
  group_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'The instance is in no group with this JID.',
    remedy: 'Look the group up with findChats.',
  },
  message_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'The chat holds no message with this id.',
    remedy: 'Use the key that the send operation answered.',
  },
  delivery_not_found: {
    httpStatus: 404,
    retryable: false,
    meaning: 'The instance has no delivery with this id, or has it no more.',
    remedy: 'Look the delivery up with GET /webhook/deliveries/{instance}.',
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
    remedy: 'Use a method of the Allow header.',
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
    meaning:
      'The instance has more to send than its network takes, or an address brought too many wrong keys.',
    remedy: 'Wait for Retry-After seconds.',
  },
  internal_error: {
    httpStatus: 500,
    retryable: true,
    meaning: 'Something went wrong inside the gateway.',
    remedy: 'Try again; report the requestId if it stays.',
  },
  unsupported: {
    httpStatus: 501,
    retryable: false,
    meaning: 'The transport of the instance cannot do this.',
    remedy: 'Use an instance on another transport.',
  },
  network_refused: {
    httpStatus: 502,
    retryable: true,
    meaning: 'The chat network or the transcriber refused the request or broke off.',
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
    meaning: 'A part that the gateway needs is unreachable, or the gateway is stopping.',
    remedy: 'Wait for Retry-After seconds.',
  },
  standby: {
    httpStatus: 503,
    retryable: true,
    meaning: 'Another process of the gateway serves; this one stands by and did not take the request.',
    remedy:
      'Send the request to the one whose /health/ready answers 200, or again after Retry-After seconds.',
  },
  timeout: {
    httpStatus: 504,
    retryable: true,
    meaning:
      'The audio could not be prepared and handed to the network in time, or the process that was at it did not answer: it may have been sent.',
    remedy: 'Try again with the same Idempotency-Key, unless the answer says `retryable: false`.',
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
      'Of a timeout: the message was handed to the network before and may have arrived, so a repetition with this Idempotency-Key sends nothing',
  }),
  response: z.object({
    message: z.array(z.string()).min(1).meta({ description: 'One sentence a fault, naming the field' }),
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
