/**
 * Transcribes a part, on any server with OpenAI's `POST /v1/audio/transcriptions`. The operator's
 * address is unrestricted, but redirects are not followed: they would leak the key and the audio.
 */
import { openAsBlob } from 'node:fs';
import { deadline } from 'soundpost-base/deadline';
import { retryAfterSeconds } from 'soundpost-outbound/exchange';
import type { Response } from 'undici';
import { NonsenseAnswer, type PartHeard, readAnswer } from './answer.ts';
import { askedLanguage } from './language.ts';

export interface Transcriber {
  /** Base address with `/v1`, without trailing slash. */
  readonly url: string;
  /** Sent as a bearer token; undefined: none. */
  readonly apiKey: string | undefined;
  readonly model: string;
  /** Timeout for a part, from the connection to the end of the answer. */
  readonly timeoutMs: number;
}

interface Part {
  /** WAV, at most 25 MB, OpenAI's limit. */
  readonly path: string;
  readonly seconds: number;
  /** BCP 47; undefined: the transcriber detects it. */
  readonly language?: string | undefined;
  /** By `POST /v1/audio/translations`. Default: no translation. */
  readonly task?: 'translate' | undefined;
  readonly prompt?: string | undefined;
  readonly temperature?: number | undefined;
  /** Whether to ask for the time of each word. */
  readonly words?: boolean | undefined;
}

export type PartAnswer = Answer & {
  /** Undefined: no usable answer. */
  readonly httpStatus?: number;
};

type Answer =
  | { readonly kind: 'heard'; readonly heard: PartHeard }
  /** Worth a retry: it is down, busy or broken. `said`: its own words, for its operator. */
  | {
      readonly kind: 'not-now';
      readonly error: string;
      readonly said?: string;
      readonly retryAfterSeconds?: number | undefined;
    }
  /** Final: a retry would fail too. */
  | { readonly kind: 'refused'; readonly error: string; readonly said?: string };

/** For 13 minutes a few hundred kilobytes, with a token list for each segment; parsed in 50 ms. */
const LARGEST_ANSWER_BYTES = 4 * 1024 * 1024;
const MOST_WORDS_OF_ERROR = 300;
/** More of an error is not looked at. */
const LONGEST_ERROR = 8_192;
/** Faults of the request or its audio. A wrong key or address can be fixed while it is retried. */
const REFUSING = new Set([400, 413, 415, 422]);

/** @throws the reason of `signal` when it aborts */
export async function transcribePart(
  transcriber: Transcriber,
  { path, seconds, language, task, prompt, temperature, words }: Part,
  signal: AbortSignal,
): Promise<PartAnswer> {
  // Node's own fetch keeps filling a body after a lost connection and throws uncaught (24.21).
  const { Agent, FormData, fetch } = await import('undici');
  const form = new FormData();
  form.append('file', await openAsBlob(path, { type: 'audio/wav' }), 'part.wav');
  form.append('model', transcriber.model);
  form.append('response_format', 'verbose_json');
  form.append('timestamp_granularities[]', 'segment');
  if (words) form.append('timestamp_granularities[]', 'word');
  if (language !== undefined) form.append('language', askedLanguage(language));
  if (prompt !== undefined) form.append('prompt', prompt);
  if (temperature !== undefined) form.append('temperature', String(temperature));
  const operation = task === undefined ? 'transcriptions' : 'translations';
  // It answers only when finished: nothing but our own limit ends the wait.
  using limit = deadline(transcriber.timeoutMs, { signal });
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  try {
    const response = await fetch(`${transcriber.url}/audio/${operation}`, {
      method: 'POST',
      body: form,
      headers: transcriber.apiKey === undefined ? {} : { authorization: `Bearer ${transcriber.apiKey}` },
      redirect: 'manual',
      dispatcher,
      signal: limit.signal,
    });
    const answer = conclude(response, await textOf(response), seconds, transcriber);
    return { ...answer, httpStatus: response.status };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: 'not-now', error: inWords(error) };
  } finally {
    await dispatcher.destroy();
  }
}

function conclude(
  { status, headers }: Response,
  text: string,
  seconds: number,
  { apiKey }: Transcriber,
): Answer {
  if (status >= 200 && status < 300) return { kind: 'heard', heard: readAnswer(text, seconds) };
  const error =
    status >= 300 && status < 400
      ? `the transcriber answered ${status}: redirects are not followed`
      : `the transcriber answered ${status}`;
  const said = wordsOf(text, apiKey);
  if (REFUSING.has(status)) return { kind: 'refused', error, said };
  const retryAfter = headers.get('retry-after');
  return {
    kind: 'not-now',
    error,
    said,
    retryAfterSeconds: retryAfter === null ? undefined : retryAfterSeconds({ 'retry-after': retryAfter }),
  };
}

/** @throws NonsenseAnswer if it is too long */
async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > LARGEST_ANSWER_BYTES) throw new NonsenseAnswer('more than 4 MiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The start of its error message. Some servers repeat the key. */
function wordsOf(text: string, apiKey: string | undefined): string {
  const words = text
    .slice(0, LONGEST_ERROR)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  return (apiKey === undefined ? words : words.replaceAll(apiKey, '…')).slice(0, MOST_WORDS_OF_ERROR);
}

/** Without addresses, because callers see it. */
function inWords(error: unknown): string {
  if (error instanceof NonsenseAnswer) return `the answer of the transcriber is of no use: ${error.message}`;
  const { name, cause } = error instanceof Error ? error : new Error();
  if (name === 'TimeoutError') return 'the transcriber did not answer in time';
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN'
    ? 'the transcriber could not be reached'
    : 'the transcriber broke off';
}
