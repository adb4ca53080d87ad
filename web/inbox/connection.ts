/** The data behind the page: requests with the key or session of this tab, and the live feed. */
import { readEvents } from 'soundpost-client/event-stream';
import type { InboxEvent, InboxSession, ReplyAnswer } from 'soundpost-contract/inbox';

const STORE = 'soundpost.inbox';
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;

/** The key or session is missing, wrong, or has run out. */
export class NotSignedIn extends Error {}

/** The gateway answered, and would not. */
export class Refused extends Error {}

type Credentials = { readonly apikey: string } | { readonly session: string };

function stored(): Credentials | null {
  return JSON.parse(sessionStorage.getItem(STORE) ?? 'null');
}

function store(credentials: Credentials): void {
  sessionStorage.setItem(STORE, JSON.stringify(credentials));
}

export function signOut(): void {
  sessionStorage.removeItem(STORE);
}

export function isSignedIn(): boolean {
  return stored() !== null;
}

export function signInWithKey(apikey: string): void {
  store({ apikey });
}

/** Exchanges the code of a one-time link. @returns whether it was good */
export async function signInWithCode(code: string): Promise<boolean> {
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
  const { session }: InboxSession = await response.json();
  store({ session });
  return true;
}

function headers(): Record<string, string> {
  const credentials = stored();
  if (credentials === null) {
    return {};
  }
  return 'session' in credentials
    ? { Authorization: `Bearer ${credentials.session}` }
    : { apikey: credentials.apikey };
}

interface Init {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyInit;
  readonly signal?: AbortSignal;
}

/** @param path below inbox/api/, its segments encoded */
async function request(path: string, init: Init = {}): Promise<Response> {
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

export async function get<Answer>(path: string): Promise<Answer> {
  return (await request(path)).json();
}

/** Posts what is answered with JSON. */
export async function ask<Answer>(path: string, body: object): Promise<Answer> {
  return (await postJson(path, body)).json();
}

/** Posts what is only taken note of. */
export async function tell(path: string, body?: object): Promise<void> {
  await (body === undefined ? request(path, { method: 'POST' }) : postJson(path, body));
}

function postJson(path: string, body: object): Promise<Response> {
  return request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

export async function askWithSound(path: string, sound: Blob): Promise<ReplyAnswer> {
  const response = await request(path, {
    method: 'POST',
    headers: { 'Content-Type': sound.type },
    body: sound,
  });
  return response.json();
}

export async function remove(path: string): Promise<void> {
  await request(path, { method: 'DELETE' });
}

/** Asks again, with pauses that grow, until the gateway answers. Throws {@link NotSignedIn} and {@link Refused}, which are answers, and the signal's reason. */
export async function untilAnswered<Answer>(
  question: () => Promise<Answer>,
  { onLost, signal }: { readonly onLost: () => void; readonly signal?: AbortSignal },
): Promise<Answer> {
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = longer(retryMs)) {
    try {
      const answer = await question();
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

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const longer = (retryMs: number): number => Math.min(retryMs * 2, LONGEST_RETRY_MS);

interface Following {
  readonly onEvent: (event: InboxEvent) => void;
  /** Called each time the feed stands again. */
  readonly onOpen: () => void;
  readonly onLost: () => void;
  readonly onSignedOut: () => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Follows what happens. EventSource cannot send a header, so the feed is read by hand. */
export async function follow({ onEvent, onOpen, onLost, onSignedOut, signal }: Following): Promise<void> {
  let lastId = '';
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      const response = await request('events', {
        signal,
        headers: lastId === '' ? {} : { 'Last-Event-ID': lastId },
      });
      onOpen();
      retryMs = FIRST_RETRY_MS;
      if (response.body === null) {
        throw new Error('the feed has nothing to read');
      }
      for await (const { id, data } of readEvents(response.body, () => undefined)) {
        lastId = id;
        onEvent(JSON.parse(data));
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
