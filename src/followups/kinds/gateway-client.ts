/**
 * Sends a voice note to the messaging gateway (messaging-gateway.md "Send audio message"; decisions
 * C): to ours as a multipart file, to others as base64 or, above 12 MiB, as a signed URL.
 */
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import { jsonOf } from 'soundpost-base/json';
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { retryAfterSeconds } from 'soundpost-outbound/exchange';
import type { FormData, Response } from 'undici';
import type { Failure, GatewayAdapter, Sending } from '../gateways/adapter.ts';
import { type GatewayKind, gatewayAdapters } from '../gateways/adapters.ts';

export interface GatewaySettings {
  /** Base address without trailing slash. */
  readonly url: string;
  readonly kind: GatewayKind;
  /** Brand segment of the send path. */
  readonly brand: string;
  readonly apiKey: string;
  /** Timeout for its answer, on top of the message's delay. Default 165 s. */
  readonly answerMarginMs?: number;
}

interface VoiceFile extends Omit<Sending['audio'], 'base64'> {
  readonly path: string;
  readonly sizeBytes: number;
}

export type SendAnswer = Answer & {
  /** Undefined: no answer. */
  readonly httpStatus?: number;
};

type Answer =
  | { readonly kind: 'sent'; readonly key: MessageKey; readonly messageStatus: MessageStatus }
  | (Failure & { readonly retryAfterSeconds?: number | undefined });

export const LARGEST_BASE64_BYTES = 12 * 1024 * 1024;
/**
 * Our gateway's longest answer, beside the delay: 60 s for the network's rate, 60 s for earlier
 * messages, 30 s to prepare and send (src/gateway/outgoing.ts, start.ts), 15 s for the round trip.
 * Hanging up earlier would make a message in progress look lost.
 */
const ANSWER_MARGIN_MS = 165_000;
/** A request with one of these errors never reached the gateway. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ENETUNREACH',
]);

interface SendOptions {
  /** Trace headers. */
  readonly context?: Readonly<Record<string, string>>;
  /** Aborts the request; only for sends that are safe to repeat. */
  readonly signal?: AbortSignal;
}

/** @throws the reason of `signal` when it aborts */
export async function sendVoiceMessage(
  settings: GatewaySettings,
  { split: _split, trimSilence: _trim, ...request }: VoiceMessageRequest,
  file: VoiceFile,
  idempotencyKey: string,
  { context = {}, signal }: SendOptions = {},
): Promise<SendAnswer> {
  const adapter: GatewayAdapter = gatewayAdapters[settings.kind];
  const audio = { ...file, base64: await inBase64(adapter, file) };
  const call = adapter.call({ request, audio, brand: settings.brand, apiKey: settings.apiKey });
  const { body, headers } = await encode(adapter, call.body, file);
  // Node's own fetch keeps filling a body after a lost connection and throws uncaught (24.21).
  const { fetch } = await import('undici');
  using limit = deadline((request.delay ?? 0) + (settings.answerMarginMs ?? ANSWER_MARGIN_MS), { signal });
  let response: Response;
  try {
    response = await fetch(`${settings.url}${call.path}`, {
      method: 'POST',
      body,
      headers: { ...context, ...headers, ...call.headers, 'idempotency-key': idempotencyKey },
      redirect: 'error',
      signal: limit.signal,
    });
  } catch (error) {
    signal?.throwIfAborted();
    return withoutAnswer(error);
  }
  const text = await beginningOf(response).catch(() => undefined);
  if (text === undefined) signal?.throwIfAborted();
  const answer =
    text === undefined ? lost('the answer of the gateway broke off') : read(adapter, response, text, request);
  return { ...answer, httpStatus: response.status };
}

async function inBase64({ isForm }: GatewayAdapter, file: VoiceFile): Promise<string | undefined> {
  return isForm || file.sizeBytes > LARGEST_BASE64_BYTES ? undefined : readFile(file.path, 'base64');
}

/** Answers have a few kilobytes. */
const LONGEST_ANSWER_BYTES = 256 * 1024;

/** A longer body is cut, so its JSON is unreadable; the status still gives the outcome. */
async function beginningOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LONGEST_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

async function encode(
  { isForm }: GatewayAdapter,
  fields: Readonly<Record<string, unknown>>,
  file: VoiceFile,
): Promise<{ body: FormData | string; headers: Record<string, string> }> {
  if (!isForm) return { body: JSON.stringify(fields), headers: { 'content-type': 'application/json' } };
  const form = new (await import('undici')).FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) {
      form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
    }
  }
  form.append('file', await openAsBlob(file.path, { type: 'audio/ogg' }), 'voice.ogg');
  return { body: form, headers: {} };
}

const lost = (message: string): Failure => ({ kind: 'lost', code: 'ANSWER_LOST', message });

function withoutAnswer(error: unknown): Failure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return NEVER_SENT.has(code)
    ? { kind: 'not-now', code: 'GATEWAY_UNAVAILABLE', message: 'the gateway could not be reached' }
    : lost('the gateway did not answer');
}

function read(
  adapter: GatewayAdapter,
  { status, ok, headers }: Response,
  text: string,
  request: Sending['request'],
): Answer {
  const json = jsonOf(text);
  if (ok) {
    const sent = adapter.sent(json, request);
    return sent ? { kind: 'sent', ...sent } : lost('the answer of the gateway could not be read');
  }
  const retryAfter = headers.get('retry-after');
  return {
    ...adapter.failure({ status, json, text }),
    ...(retryAfter !== null && { retryAfterSeconds: retryAfterSeconds({ 'retry-after': retryAfter }) }),
  };
}
