/**
 * One request to an API of an account's service, on which the operator or an instance decides: JSON
 * or a form goes in, a short text or a file comes out. Redirects are not followed.
 */
import { openAsBlob } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { deadline } from 'soundpost-base/deadline';
import { FormData, request } from 'undici';
import { OutboundFailed, toOutboundError } from './errors.ts';
import { limitedBody, type Route, retryAfterSeconds } from './exchange.ts';
import { parseTarget } from './policy.ts';

interface FormFile {
  readonly path: string;
  readonly name: string;
  readonly type: string;
}

export interface CallOptions {
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Sent as multipart/form-data, in place of `json`. */
  readonly form?: Readonly<Record<string, string | FormFile>>;
  /** Writes a 2xx answer to a new file, which is removed on failure. */
  readonly saveTo?: { readonly path: string; readonly maxBytes: number };
  /** From the name lookup to the end of the answer. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface CallAnswer {
  /** Any status, including redirects. */
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  /** At most 1 MiB; empty if the answer was saved. */
  readonly text: string;
}

const MAX_TEXT_BYTES = 1024 * 1024;

/**
 * @throws OutboundRefused, OutboundFailed (see `neverSent`); file system errors; the reason of
 * `signal`
 */
export async function call(route: Route, options: CallOptions): Promise<CallAnswer> {
  const { method, saveTo, json } = options;
  const { url } = parseTarget(options.url, 'service', route.policy);
  const form = options.form && (await formOf(options.form));
  const reason = () => new OutboundFailed('timeout', 'the server took too long to answer', true);
  using limit = deadline(options.timeoutMs, { signal: options.signal, reason });
  const { signal } = limit;
  const outcome = (error: unknown): never => {
    signal.throwIfAborted();
    throw toOutboundError(error);
  };
  const {
    statusCode: status,
    headers,
    body,
  } = await request(url, {
    dispatcher: route.dispatcher,
    method,
    headers: {
      'user-agent': route.userAgent,
      'accept-encoding': 'identity',
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    body: form ?? (json === undefined ? null : JSON.stringify(json)),
    // A connection that the server is closing would leave it unknown whether it took a request.
    reset: true,
    signal,
  }).catch(outcome);
  const isSaved = saveTo !== undefined && status >= 200 && status < 300;
  const maxBytes = isSaved ? saveTo.maxBytes : MAX_TEXT_BYTES;
  // A slow sender is stopped by the deadline.
  const chunks = limitedBody(
    body,
    { maxBytes, minBytesPerSecond: 0, rateWindowMs: options.timeoutMs },
    signal,
  );
  const whole = await (isSaved ? save(chunks, saveTo.path) : buffer(chunks));
  return { status, retryAfterSeconds: retryAfterSeconds(headers), text: whole.toString() };
}

async function formOf(fields: NonNullable<CallOptions['form']>): Promise<FormData> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, await openAsBlob(value.path, { type: value.type }), value.name);
  }
  return form;
}

async function save(chunks: AsyncIterable<Uint8Array>, path: string): Promise<''> {
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of chunks) await file.writeFile(chunk);
    return '';
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
