/** Requests to the service: key, envelope, errors and safe retries. */
import type { ErrorBody } from 'soundpost-contract/errors';
import { delay } from './delay.ts';
import { SoundpostError } from './error.ts';

export interface ClientOptions {
  /** URL of the service, such as `https://audio.example.com`; a path is kept. */
  readonly baseUrl: string;
  /** Leave out on the service's own pages, which have a session cookie. */
  readonly apiKey?: string;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
  /**
   * How often to retry a request that got no answer or a retryable error. Requests that create
   * something carry an Idempotency-Key, so that a retry does not repeat them. Default 2.
   */
  readonly retries?: number;
}

export interface Sending {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly json?: unknown;
  readonly form?: FormData;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Sends the request with this Idempotency-Key, or with a new one. */
  readonly idempotent?: { readonly key?: string | undefined };
  /** Overrides the connection's number of retries. */
  readonly retries?: number;
}

const FIRST_PAUSE_MS = 500;
/** For longer waits, the caller decides. */
const LONGEST_PAUSE_SECONDS = 30;

export class Connection {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #retries: number;

  constructor({ baseUrl, apiKey, fetch: ownFetch, retries = 2 }: ClientOptions) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    // A browser's fetch works only as a method of its window.
    this.#fetch = ownFetch ?? ((input, init) => fetch(input, init));
    this.#retries = retries;
  }

  /** The `data` of a successful answer. Throws SoundpostError. */
  data<Data>(path: string, sending: Sending = {}): Promise<Data> {
    return this.#ask(path, sending, async (response) => (await dataOf(response)) as Data);
  }

  /** A file or stream, whose body the caller reads. Throws SoundpostError. */
  response(path: string, sending: Sending = {}): Promise<Response> {
    return this.#ask(path, sending, async (response) => {
      // A job that has failed or is not ready answers 200 or 202 with an error, and a file may be
      // JSON.
      const isFile = !isJson(response) || response.headers.has('content-disposition');
      if (!isFile) await dataOf(response.clone());
      return response;
    });
  }

  /** @param read reads the answer; if that fails, the request is retried */
  async #ask<Answer>(
    path: string,
    sending: Sending,
    read: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const headers = this.#headersOf(sending);
    const repeatable = (sending.method ?? 'GET') !== 'POST' || headers['Idempotency-Key'] !== undefined;
    const { retries = this.#retries } = sending;
    for (let tried = 0; ; tried++) {
      try {
        return await this.#once(path, sending, headers, read);
      } catch (error) {
        const pauseMs = repeatable && tried < retries ? pauseAfter(error, tried) : undefined;
        if (pauseMs === undefined) {
          throw error;
        }
        await delay(pauseMs, sending.signal);
      }
    }
  }

  #headersOf({ json, headers, idempotent }: Sending): Record<string, string> {
    return {
      ...(this.#apiKey === undefined ? { 'Soundpost-Console': '1' } : { 'X-API-Key': this.#apiKey }),
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(idempotent ? { 'Idempotency-Key': idempotent.key ?? randomKey() } : {}),
      ...headers,
    };
  }

  async #once<Answer>(
    path: string,
    sending: Sending,
    headers: Record<string, string>,
    read: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const { method = 'GET', json, form, signal } = sending;
    let message = 'the service did not answer';
    try {
      const response = await this.#fetch(`${this.#baseUrl}${path}`, {
        method,
        headers,
        body: form ?? (json === undefined ? null : JSON.stringify(json)),
        signal: signal ?? null,
        // A redirect would send the key to another address.
        redirect: 'error',
      });
      message = `the connection broke inside the answer ${response.status}`;
      if (response.ok) return await read(response);
      await dataOf(response);
      throw unexpected(response);
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof SoundpostError) throw cause;
      throw new SoundpostError({ code: 'NETWORK_ERROR', message }, { httpStatus: 0, cause });
    }
  }
}

type Envelope = { success: true; data: unknown } | { success: false; error: ErrorBody };

/**
 * Throws the error of the envelope, UNEXPECTED_ANSWER without one, or what reading the body threw.
 */
async function dataOf(response: Response): Promise<unknown> {
  const body = await envelopeOf(response);
  if (body === undefined) throw unexpected(response);
  if (body.success) return body.data;
  throw new SoundpostError(body.error, { httpStatus: response.status, ...aboutAnswer(response) });
}

/** Undefined if the body is not an envelope. */
async function envelopeOf(response: Response): Promise<Envelope | undefined> {
  const body = isJson(response) ? parsed(await response.text()) : undefined;
  if (typeof body !== 'object' || body === null || !('success' in body)) {
    return undefined;
  }
  const hasContent = body.success === true ? 'data' in body : 'error' in body;
  return hasContent ? (body as Envelope) : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isJson(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('application/json') ?? false;
}

function aboutAnswer({ headers }: Response): {
  requestId: string | undefined;
  retryAfterSeconds: number | undefined;
} {
  const retryAfter = Number.parseInt(headers.get('retry-after') ?? '', 10);
  return {
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: Number.isNaN(retryAfter) ? undefined : retryAfter,
  };
}

function unexpected(response: Response): SoundpostError {
  return new SoundpostError(
    { code: 'UNEXPECTED_ANSWER', message: `the address answered ${response.status} without an envelope` },
    { httpStatus: response.status, ...aboutAnswer(response) },
  );
}

/** Temporary statuses: the first request still runs, a rate limit, service or proxy unavailable. */
const PASSING = new Set([0, 409, 429, 502, 503, 504]);

/** Undefined if a retry would not help, or would take too long. */
function pauseAfter(error: unknown, tried: number): number | undefined {
  if (!(error instanceof SoundpostError) || !PASSING.has(error.httpStatus)) {
    return undefined;
  }
  const { retryAfterSeconds = 0 } = error;
  return retryAfterSeconds > LONGEST_PAUSE_SECONDS
    ? undefined
    : Math.max(retryAfterSeconds * 1000, FIRST_PAUSE_MS * 2 ** tried);
}

/** Not randomUUID: browsers have it only on secure pages. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
