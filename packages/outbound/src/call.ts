/**
 * One request to an API of an account's service, on which the operator or an instance decides: JSON
 * or a form goes in, a short text or a file comes out. Redirects are not followed.
 */
import { openAsBlob } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import { FormData, request } from 'undici';
import { OutboundFailed, toBodyError, toOutboundError } from './errors.ts';
import { discard, headerOf, type Route, retryAfterSeconds, tooLarge } from './exchange.ts';
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
  readonly contentType: string | undefined;
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
    reset: method !== 'GET',
    signal,
  }).catch(outcome);
  const isSaved = saveTo !== undefined && status >= 200 && status < 300;
  const text = await (isSaved ? save(body, saveTo) : textOf(body)).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
  return {
    status,
    contentType: headerOf(headers, 'content-type'),
    retryAfterSeconds: retryAfterSeconds(headers),
    text,
  };
}

async function formOf(fields: NonNullable<CallOptions['form']>): Promise<FormData> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, await openAsBlob(value.path, { type: value.type }), value.name);
  }
  return form;
}

type Body = Awaited<ReturnType<typeof request>>['body'];

async function textOf(body: Body): Promise<string> {
  const chunks: Uint8Array[] = [];
  await eachChunk(body, MAX_TEXT_BYTES, async (chunk) => {
    chunks.push(chunk);
  });
  return Buffer.concat(chunks).toString();
}

async function save(body: Body, { path, maxBytes }: NonNullable<CallOptions['saveTo']>): Promise<''> {
  const file = await open(path, 'wx', 0o600);
  try {
    await eachChunk(body, maxBytes, (chunk) => file.writeFile(chunk));
    return '';
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

async function eachChunk(
  body: Body,
  maxBytes: number,
  take: (chunk: Uint8Array) => Promise<void>,
): Promise<void> {
  let bytes = 0;
  let ownError: unknown;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge();
      await take(chunk).catch((error: unknown) => {
        ownError = error;
      });
      if (ownError !== undefined) break;
    }
  } catch (error) {
    throw toBodyError(error);
  } finally {
    discard(body);
  }
  // Of the file system, not of the server.
  if (ownError !== undefined) throw ownError;
}
