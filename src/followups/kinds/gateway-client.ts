/**
 * Sends a voice note to the messaging gateway (messaging-gateway.md "Send audio message"; decisions
 * C): to ours as a multipart file, to others as base64 or, above 12 MiB, as a signed URL.
 */
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import { parseJson } from 'soundpost-base/json';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { retryAfterSeconds } from 'soundpost-outbound/exchange';
import type { FormData, Response } from 'undici';
import { z } from 'zod';

export interface GatewaySettings {
  /** Base address without trailing slash. */
  readonly url: string;
  readonly kind: 'soundpost' | 'other';
  /** Brand segment of the send path. */
  readonly brand: string;
  readonly apiKey: string;
  /** Timeout for its answer, on top of the message's delay. Default 165 s. */
  readonly answerMarginMs?: number;
}

interface VoiceFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Whether it is a voice note; otherwise it is the job's output, in any format. */
  readonly isNote: boolean;
  /** Where the gateway could fetch the same file. */
  readonly url: string;
}

export type SendAnswer = Answer & {
  /** Undefined: no answer. */
  readonly httpStatus?: number;
};

type Answer =
  | { readonly kind: 'sent'; readonly key: MessageKey; readonly messageStatus: MessageStatus }
  /** The gateway did not accept the message, but may later. */
  | { readonly kind: 'not-now'; readonly error: string; readonly retryAfterSeconds?: number | undefined }
  /** The gateway rejects this message for good. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  /** Unknown whether the message was sent. */
  | { readonly kind: 'lost'; readonly error: string };

const LARGEST_BASE64_BYTES = 12 * 1024 * 1024;
/**
 * Our gateway's longest answer, beside the delay: 60 s for the network's rate, 60 s for earlier
 * messages, 30 s to prepare and send (src/gateway/outgoing.ts, start.ts), 15 s for the round trip.
 * Hanging up earlier would make a message in progress look lost.
 */
const ANSWER_MARGIN_MS = 165_000;
const NOT_NOW = new Set([429, 503]);
const LOST = new Set([500, 502, 504]);
/** A request with one of these errors never reached the gateway. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ENETUNREACH',
]);

/** Other servers omit fields or write them differently; these are the ones needed. */
const SentAnswer = z.object({ key: MessageKey, status: MessageStatus.catch('PENDING') });
const ErrorAnswer = z.object({
  code: z.string().optional().catch(undefined),
  error: z.unknown().optional(),
  message: z.unknown().optional(),
  response: z.object({ message: z.unknown().optional() }).optional().catch(undefined),
});

interface Sending {
  /** Trace headers. */
  readonly context?: Readonly<Record<string, string>>;
  /** Aborts the request; only for sends that are safe to repeat. */
  readonly signal?: AbortSignal;
}

/** @throws the reason of `signal` when it aborts */
export async function sendVoiceMessage(
  settings: GatewaySettings,
  request: VoiceMessageRequest,
  file: VoiceFile,
  idempotencyKey: string,
  { context = {}, signal }: Sending = {},
): Promise<SendAnswer> {
  const { instance, split: _split, trimSilence: _trim, ...fields } = request;
  const address = `${settings.url}/message/send${settings.brand}Audio/${encodeURIComponent(instance)}`;
  const { body, headers } = await encode(settings.kind, fields, file);
  // Node's own fetch keeps filling a body after a lost connection and throws uncaught (24.21).
  const { fetch } = await import('undici');
  using limit = deadline((request.delay ?? 0) + (settings.answerMarginMs ?? ANSWER_MARGIN_MS), { signal });
  let response: Response;
  try {
    response = await fetch(address, {
      method: 'POST',
      body,
      headers: { ...context, ...headers, apikey: settings.apiKey, 'idempotency-key': idempotencyKey },
      redirect: 'error',
      signal: limit.signal,
    });
  } catch (error) {
    signal?.throwIfAborted();
    return withoutAnswer(error);
  }
  const text = await beginningOf(response).catch(() => undefined);
  if (text === undefined) signal?.throwIfAborted();
  const { status: httpStatus, headers: answered } = response;
  const answer: Answer =
    text === undefined
      ? { kind: 'lost', error: 'the answer of the gateway broke off' }
      : classify(httpStatus, answered.get('retry-after'), text);
  return { ...answer, httpStatus };
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
  kind: GatewaySettings['kind'],
  fields: Omit<VoiceMessageRequest, 'instance' | 'split' | 'trimSilence'>,
  file: VoiceFile,
): Promise<{ body: FormData | string; headers: Record<string, string> }> {
  if (kind === 'soundpost') {
    const form = new (await import('undici')).FormData();
    for (const [name, value] of Object.entries(fields)) {
      if (value !== undefined) {
        form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
      }
    }
    form.append('file', await openAsBlob(file.path, { type: 'audio/ogg' }), 'voice.ogg');
    return { body: form, headers: {} };
  }
  const { mentioned, ...others } = fields;
  const audio = file.sizeBytes <= LARGEST_BASE64_BYTES ? await readFile(file.path, 'base64') : file.url;
  const body = {
    ...others,
    // The public server rejects an empty list, and re-encodes unless told not to.
    ...(mentioned?.length ? { mentioned } : {}),
    ...(file.isNote ? { encoding: false } : {}),
    audio,
  };
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

function withoutAnswer(error: unknown): Answer {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return NEVER_SENT.has(code)
    ? { kind: 'not-now', error: 'the gateway could not be reached' }
    : { kind: 'lost', error: 'the gateway did not answer' };
}

function classify(status: number, retryAfter: string | null, text: string): Answer {
  const json = readJson(text);
  if (status >= 200 && status < 300) {
    const sent = SentAnswer.safeParse(json);
    return sent.success
      ? { kind: 'sent', key: sent.data.key, messageStatus: sent.data.status }
      : { kind: 'lost', error: 'the answer of the gateway could not be read' };
  }
  const parsed = ErrorAnswer.safeParse(json);
  const code = parsed.success ? parsed.data.code : undefined;
  // Our gateway is still handling this key's first request: the next attempt gets its answer.
  if (NOT_NOW.has(status) || code === 'idempotency_in_progress') {
    return {
      kind: 'not-now',
      error: `the gateway answered ${status}`,
      retryAfterSeconds: retryAfter === null ? undefined : retryAfterSeconds({ 'retry-after': retryAfter }),
    };
  }
  if (LOST.has(status)) {
    return { kind: 'lost', error: `the gateway answered ${status}` };
  }
  const { response, message, error } = parsed.data ?? {};
  const said = [response?.message, message, error].map((one) => inWords(one)).find((words) => words !== '');
  return {
    kind: 'refused',
    code: code ?? `HTTP_${status}`,
    message: said ?? `the gateway answered ${status}`,
  };
}

function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const MOST_WORDS = 500;
/** Depth to which nested objects are searched for text. */
const MOST_DEPTH = 4;
/** What a program writes for an object printed as text. */
const LOST_OBJECT = /\[object \w+\]/g;

/**
 * A messaging server's error as text, in any form: the public one sends lines, objects such as
 * `{jid, exists: false, number}`, or a lost `[object Object]`. Empty if it says nothing.
 */
function inWords(said: unknown, depth = MOST_DEPTH): string {
  const lines = [said].flat(3).map((line) => {
    if (typeof line === 'string') return withoutLost(line);
    if (typeof line !== 'object' || line === null || depth === 0) return '';
    const { exists, number, jid, message, error } = line as Readonly<Record<string, unknown>>;
    if (exists === false) return `${nameOf(number) ?? nameOf(jid) ?? 'the number'} is not on the network`;
    return inWords(message, depth - 1) || inWords(error, depth - 1) || withoutLost(jsonOf(line));
  });
  return lines
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, MOST_WORDS);
}

/** Empty if nothing else remains. */
function withoutLost(text: string): string {
  const left = text.replace(LOST_OBJECT, '…').trim();
  return /^[…,;:\s]*$/.test(left) ? '' : left;
}

function nameOf(recipient: unknown): string | undefined {
  return typeof recipient === 'string' || typeof recipient === 'number' ? String(recipient) : undefined;
}

/** An object nested too deeply to serialize is dropped. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}
