/**
 * Hands a voice rendition to the messaging gateway (messaging-gateway.md "Send audio message"; decisions C). To our own it travels as a
 * multipart file, to another server as base64 or, above 12 MiB, as a signed address.
 */
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { retryAfterSeconds } from 'soundpost-outbound/exchange';
import type { FormData, Response } from 'undici';
import { z } from 'zod';

export interface GatewaySettings {
  /** Base address, without a slash at the end. */
  readonly url: string;
  readonly kind: 'soundpost' | 'other';
  /** Brand segment of the send path. */
  readonly brand: string;
  readonly apiKey: string;
  /** How long its answer is waited for, besides the delay of the message. Default 165 s. */
  readonly answerMarginMs?: number;
}

interface VoiceFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Whether it has the form of a voice note; else it is the job's output, of whatever format. */
  readonly isNote: boolean;
  /** An address under which the gateway could fetch the same file. */
  readonly url: string;
}

export type SendAnswer = Answer & {
  /** Undefined: no answer came. */
  readonly httpStatus?: number;
};

type Answer =
  | { readonly kind: 'sent'; readonly key: MessageKey; readonly messageStatus: MessageStatus }
  /** The gateway did not take the message, and may later. */
  | { readonly kind: 'not-now'; readonly error: string; readonly retryAfterSeconds?: number | undefined }
  /** The gateway will not take this message. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  /** Nobody knows whether the message was sent. */
  | { readonly kind: 'lost'; readonly error: string };

const LARGEST_BASE64_BYTES = 12 * 1024 * 1024;
/**
 * What our gateway may take besides the delay: 60 s for the network's rate, 60 s more for messages before this one, 30 s to
 * prepare and send it (src/gateway/outgoing.ts, start.ts), and 15 s for the way there and back. Who
 * hangs up earlier takes a message that is on its way for one whose answer was lost.
 */
const ANSWER_MARGIN_MS = 165_000;
const NOT_NOW = new Set([429, 503]);
const LOST = new Set([500, 502, 504]);
/** A request that failed with one of these never reached the gateway. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ENETUNREACH',
]);

/** Other servers with the interface leave fields out or write them differently; these are the ones that matter. */
const SentAnswer = z.object({ key: MessageKey, status: MessageStatus.catch('PENDING') });
const ErrorAnswer = z.object({
  code: z.string().optional().catch(undefined),
  error: z.unknown().optional(),
  message: z.unknown().optional(),
  response: z.object({ message: z.unknown().optional() }).optional().catch(undefined),
});

interface Sending {
  /** Headers of the trace that this is part of. */
  readonly context?: Readonly<Record<string, string>>;
  /** Breaks it off, which nobody may do who is to know whether it was sent. */
  readonly signal?: AbortSignal;
}

/** @throws the reason of `signal` when that aborts */
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
  // Node's own fetch goes on filling a body whose connection is gone, and throws where nobody catches it (Node 24.21, `extractBody`).
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

/** Answers are a few kilobytes long. */
const LONGEST_ANSWER_BYTES = 256 * 1024;

/** Of a body that is longer nobody can read the JSON; its status still says what became of the message. */
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
    // The public server refuses a list without entries, and encodes again what it is not told to leave as it is.
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
  const json = parseJson(text);
  if (status >= 200 && status < 300) {
    const sent = SentAnswer.safeParse(json);
    return sent.success
      ? { kind: 'sent', key: sent.data.key, messageStatus: sent.data.status }
      : { kind: 'lost', error: 'the answer of the gateway could not be read' };
  }
  const parsed = ErrorAnswer.safeParse(json);
  const code = parsed.success ? parsed.data.code : undefined;
  // Our gateway is still at the first request with this key: the next try gets its answer.
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MOST_WORDS = 500;
/** Objects inside of objects that are looked through for words. */
const MOST_DEPTH = 4;
/** What a program writes that took an object for a text. */
const LOST_OBJECT = /\[object \w+\]/g;

/**
 * What a messaging server says of an error, whatever its shape: the public one answers lines, objects such as `{jid, exists: false, number}`, and
 * `[object Object]` where it lost what it wanted to say. Empty where nothing was said.
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

/** Empty where nothing else was said. */
function withoutLost(text: string): string {
  const left = text.replace(LOST_OBJECT, '…').trim();
  return /^[…,;:\s]*$/.test(left) ? '' : left;
}

function nameOf(recipient: unknown): string | undefined {
  return typeof recipient === 'string' || typeof recipient === 'number' ? String(recipient) : undefined;
}

/** What is nested too deeply to be written is not worth it. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}
