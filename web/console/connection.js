// Requests to the API with the key of this tab. Addresses are relative to the page, so that a proxy may put both anywhere.
import { errors } from './contract.js';
import { readEvents } from './shared/event-stream.js';

const STORE = 'soundpost.console.key';
const LONGEST_RETRY_MS = 10_000;
const AWAY = 'The service does not answer. See that it runs and that you are online, then try again.';

/** What the API would not do, with what to do about it. */
export class Refused extends Error {
  /** @param {{ code?: string, message?: string, details?: string }} error of the envelope @param {number} status */
  constructor(error, status) {
    super(sentence(error, status));
    this.code = error.code ?? '';
    this.status = status;
  }
}

/** The API could not be reached. */
export class Away extends Error {
  constructor() {
    super(AWAY);
  }
}

let onKeyRefused = () => undefined;

/** @param {(reason: Refused) => void} listener called when the key of the tab is no longer good */
export function whenKeyIsRefused(listener) {
  onKeyRefused = listener;
}

export const signIn = (key) => sessionStorage.setItem(STORE, key);
export const signOut = () => sessionStorage.removeItem(STORE);
export const isSignedIn = () => sessionStorage.getItem(STORE) !== null;
export const keyHeaders = () => ({ 'X-API-Key': sessionStorage.getItem(STORE) ?? '' });

/** An address of the API as this page reaches it, whatever the service believes its own to be. @param {string} address absolute or a path, with `/v1/` in it */
export function reachable(address) {
  return new URL(address.slice(address.indexOf('/v1/') + 1), document.baseURI).href;
}

/** @param {string} path such as `v1/usage`; @returns the `data` of the answer */
export async function request(path, { method = 'GET', json, headers = {}, signal } = {}) {
  const response = await send(path, {
    method,
    signal,
    headers: {
      ...keyHeaders(),
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: json === undefined ? undefined : JSON.stringify(json),
  });
  return (await answerOf(response)).data;
}

/** For requests that must not be done twice: sent again where no answer came, under one key. */
export async function once(path, json) {
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join('');
  const ask = () => request(path, { method: 'POST', json, headers: { 'Idempotency-Key': key } });
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Away)) {
      throw error;
    }
    return ask();
  }
}

/**
 * Follows a job to its end, or until the signal. After a break it goes on with what has come meanwhile.
 * @param {{ onJob: (job: object) => void, onLive: (live: boolean) => void, signal: AbortSignal }} listeners
 */
export async function follow(jobId, { onJob, onLive, signal }) {
  const seen = { lastId: '', ended: false };
  let retryMs = 500;
  while (!signal.aborted && !seen.ended) {
    try {
      for await (const job of jobEvents(jobId, seen, { onLive, signal })) {
        retryMs = 500;
        onJob(job);
      }
    } catch (error) {
      // Too many requests are over in a minute at most; what else is refused stays so.
      if (error instanceof Refused && error.status < 500 && error.status !== 429) {
        throw error;
      }
    }
    if (!signal.aborted && !seen.ended) {
      onLive(false);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    }
  }
}

/** One connection's events. @param {{ lastId: string, ended: boolean }} seen what of the job is known already; is kept up to date */
async function* jobEvents(jobId, seen, { onLive, signal }) {
  const headers = { ...keyHeaders(), ...(seen.lastId === '' ? {} : { 'Last-Event-ID': seen.lastId }) };
  const response = await send(`v1/jobs/${jobId}/events`, { headers, signal });
  if (response.status === 204) {
    seen.ended = true;
    return;
  }
  if (!response.ok) {
    await answerOf(response);
  }
  onLive(true);
  for await (const { id, data } of readEvents(response.body)) {
    const job = JSON.parse(data);
    seen.lastId = id;
    seen.ended = isSettled(job);
    yield job;
  }
}

/** Whether nothing more becomes of it: it has ended, its transcripts too, and its files are put where they were to be put. */
function isSettled({ status, destination, outputFiles, transcripts = [] }) {
  const isPending = [destination, ...outputFiles.map((file) => file.destination), ...transcripts].some(
    (one) => one?.status === 'pending',
  );
  return status === 'failed' || (status === 'completed' && !isPending);
}

async function send(path, init) {
  try {
    return await fetch(new URL(path, document.baseURI), { cache: 'no-store', ...init });
  } catch (error) {
    throw error.name === 'AbortError' ? error : new Away();
  }
}

async function answerOf(response) {
  const envelope = await response.json().catch(() => ({}));
  if (response.ok && envelope.success !== false) {
    return envelope;
  }
  const refused = new Refused(envelope.error ?? {}, response.status);
  if (response.status === 401) {
    onKeyRefused(refused);
  }
  throw refused;
}

/** An error of the API as one text: what is wrong, and what to do. Also of a job that has failed. */
export function sentence({ code, message, details }, status) {
  if (message === undefined) {
    return `The service answered ${status}. Try again in a moment.`;
  }
  const parts = [message, details, code === 'UNAUTHORIZED' ? undefined : errors[code]?.remedy];
  return (
    parts
      .filter((part) => part !== undefined && part !== null && part !== '')
      // Not the name of a field: `source.url: …`
      .map((part) =>
        (/^[\w.]+:/.test(part) ? part : part[0].toUpperCase() + part.slice(1)).replace(/\.$/, ''),
      )
      .map((part) => `${part}.`)
      .join(' ')
  );
}
