// The data behind the page: requests with the key or session of this tab, and the live feed.
import { readEvents } from './shared/event-stream.js';

const STORE = 'soundpost.inbox';
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;

/** The key or session is missing, wrong, or has run out. */
export class NotSignedIn extends Error {}

/** The gateway answered, and would not. */
export class Refused extends Error {}

/** @returns {{ apikey?: string, session?: string } | null} */
function stored() {
  return JSON.parse(sessionStorage.getItem(STORE) ?? 'null');
}

export function signOut() {
  sessionStorage.removeItem(STORE);
}

export function isSignedIn() {
  return stored() !== null;
}

/** @param {string} apikey */
export function signInWithKey(apikey) {
  sessionStorage.setItem(STORE, JSON.stringify({ apikey }));
}

/** Exchanges the code of a one-time link. @param {string} code @returns whether it was good */
export async function signInWithCode(code) {
  const response = await fetch('inbox/api/session', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (response.status >= 400 && response.status < 500) {
    return false;
  }
  if (!response.ok) {
    throw new Error(`the gateway answered ${response.status}`);
  }
  const { session } = await response.json();
  sessionStorage.setItem(STORE, JSON.stringify({ session }));
  return true;
}

function headers() {
  const { apikey, session } = stored() ?? {};
  if (session !== undefined) {
    return { Authorization: `Bearer ${session}` };
  }
  return apikey === undefined ? {} : { apikey };
}

/** @param {string} path below inbox/api/, its segments encoded */
async function request(path, init = {}) {
  const response = await fetch(`inbox/api/${path}`, {
    ...init,
    headers: { ...headers(), ...init.headers },
  });
  if (response.status === 401) {
    throw new NotSignedIn();
  }
  if (response.status >= 400 && response.status < 500) {
    throw new Refused(`the gateway answered ${response.status}`);
  }
  if (!response.ok) {
    throw new Error(`the gateway answered ${response.status}`);
  }
  return response;
}

export async function get(path) {
  return (await request(path)).json();
}

/** @param {object} [body] sent as JSON @returns the answer's JSON; undefined where it has none */
export async function post(path, body) {
  const response = await request(path, {
    method: 'POST',
    ...(body === undefined
      ? {}
      : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return response.status === 204 ? undefined : response.json();
}

/** @param {Blob} sound */
export async function postSound(path, sound) {
  const headers = { 'Content-Type': sound.type };
  return (await request(path, { method: 'POST', headers, body: sound })).json();
}

export async function remove(path) {
  await request(path, { method: 'DELETE' });
}

/**
 * Asks again, with pauses that grow, until the gateway answers. Throws {@link NotSignedIn} and {@link Refused}, which are answers, and the signal's reason.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {{ onLost: () => void, signal?: AbortSignal }} options
 */
export async function untilAnswered(ask, { onLost, signal }) {
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = longer(retryMs)) {
    try {
      const answer = await ask();
      signal?.throwIfAborted();
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof NotSignedIn || error instanceof Refused) {
        throw error;
      }
    }
    onLost();
    await pause(retryMs);
    signal?.throwIfAborted();
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const longer = (retryMs) => Math.min(retryMs * 2, LONGEST_RETRY_MS);

/**
 * Follows what happens until the signal ends it. EventSource cannot send a header, so the feed is read by hand.
 * `onOpen` is called each time the feed stands again; `resumed` is false when events may have been missed.
 */
export async function follow({ onEvent, onOpen, onLost, onSignedOut, signal }) {
  let lastId = '';
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      const response = await request('events', {
        signal,
        headers: lastId ? { 'Last-Event-ID': lastId } : {},
      });
      onOpen({ resumed: lastId !== '' });
      retryMs = FIRST_RETRY_MS;
      for await (const event of readEvents(response.body)) {
        lastId = event.id;
        onEvent(event.name, JSON.parse(event.data));
      }
    } catch (error) {
      if (error instanceof NotSignedIn) {
        onSignedOut();
        return;
      }
    }
    if (!signal.aborted) {
      onLost();
      await pause(retryMs);
      retryMs = longer(retryMs);
    }
  }
}
