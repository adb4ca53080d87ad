/**
 * The API with the session of this browser (decisions A6): a cookie that no script can read stands for the key. Addresses are relative to the page, so
 * that a proxy may put both anywhere.
 */
import { createClient, type SoundpostClient } from 'soundpost-client/client';
import { SoundpostError } from 'soundpost-client/error';
import { errorCatalogue } from 'soundpost-contract/errors';

/** Who is signed in, for all tabs; nothing secret. */
const STORE = 'soundpost.console.session';
const AWAY =
  'The service does not respond. Check that it is running and that you are online, then try again.';
const SIGNED_OUT_HERE =
  'You are signed out, but the service did not respond: the session may last up to 12 hours in this browser. To end it, sign in and out again.';

interface SessionWatcher {
  readonly onSignedIn: () => void;
  /** Here or in another tab. @param reason empty where somebody wanted it */
  readonly onSignedOut: (reason: string) => void;
  /** It expired, or its key was replaced: requests wait until somebody has signed in again. */
  readonly onEnded: (reason: string) => void;
}

let watcher: SessionWatcher | undefined;
let signingOut: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;
/** Requests that go on once somebody has signed in again. */
const waiting = new Set<() => void>();

const client: SoundpostClient = createClient({
  baseUrl: new URL('.', document.baseURI).href,
  fetch: watched,
});

/** Its errors are sentences by {@link sentence}. */
export const api = (): SoundpostClient => client;

/** The id of the key that is signed in; undefined if nobody is. */
export const keyId = (): string | undefined => idIn(localStorage.getItem(STORE));
export const isSignedIn = (): boolean => keyId() !== undefined;
/** For requests without the client. */
export const sessionHeaders = (): Record<string, string> => ({ 'Soundpost-Console': '1' });

const idIn = (stored: string | null): string | undefined =>
  stored === null ? undefined : JSON.parse(stored).id;

/** @throws SoundpostError UNAUTHORIZED for an unknown key */
export async function signIn(key: string): Promise<void> {
  // Late, it would end the new session.
  signingOut?.stop.abort();
  await signingOut?.done;
  const before = keyId();
  const { key: signedIn, expiresAt } = await client.session.begin(key);
  // Other tabs are told of a change alone, so each session differs.
  localStorage.setItem(STORE, JSON.stringify({ id: signedIn.id, expiresAt }));
  took(before, signedIn.id);
}

/** Ends the session in all tabs. */
export async function signOut(): Promise<void> {
  leave('');
  const stop = new AbortController();
  const { signal } = stop;
  const done = client.session.end({ signal }).then(
    () => undefined,
    () => (signal.aborted ? undefined : leave(SIGNED_OUT_HERE)),
  );
  signingOut = { stop, done };
  await done;
}

function leave(reason: string): void {
  localStorage.removeItem(STORE);
  waiting.clear();
  watcher?.onSignedOut(reason);
}

function took(before: string | undefined, after: string): void {
  // What is shown and typed belongs to the key before.
  if (before !== undefined && before !== after) {
    watcher?.onSignedOut('');
    location.reload();
    return;
  }
  watcher?.onSignedIn();
  for (const goOn of waiting) goOn();
  waiting.clear();
}

export function watchSession(watching: SessionWatcher): void {
  watcher = watching;
  addEventListener('storage', ({ key, oldValue, newValue }) => {
    if (key !== STORE && key !== null) return;
    const after = idIn(newValue);
    if (after === undefined) leave('');
    else took(idIn(oldValue), after);
  });
}

/** A 401 means that the session has ended: the request is sent again when there is another one. */
async function watched(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const session = localStorage.getItem(STORE);
    const response = await fetch(input, { cache: 'no-store', ...init });
    const isSigningIn = String(input).endsWith('/v1/session');
    if (response.status !== 401 || isSigningIn || !isSignedIn()) return response;
    // There is another one by now.
    if (localStorage.getItem(STORE) !== session) continue;
    const { error } = await response.json().catch(() => ({ error: undefined }));
    await signedInAgain(sentence(error ?? {}), init?.signal);
  }
}

/**
 * Has the sign-in shown, and waits for it.
 * @param reason why, for people
 * @throws the signal's reason when it is aborted
 */
export async function signedInAgain(reason: string, signal?: AbortSignal | null): Promise<void> {
  signal?.throwIfAborted();
  watcher?.onEnded(reason);
  return new Promise((resolve, reject) => {
    waiting.add(resolve);
    signal?.addEventListener('abort', () => {
      waiting.delete(resolve);
      reject(signal.reason);
    });
  });
}

/** Whether the service makes transcripts. */
export const hasTranscriber = (): boolean =>
  document.querySelector<HTMLMetaElement>('meta[name="soundpost-transcriber"]')?.content === 'yes';

/** An address of the API as this page reaches it, whatever the service believes its own to be. @param address absolute or a path, with `/v1/` in it */
export function reachable(address: string): string {
  return new URL(address.slice(address.indexOf('/v1/') + 1), document.baseURI).href;
}

interface Told {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly details?: string | undefined;
}

/** What is wrong and what to do, as one text: of an error of the API, of a job that has failed, and of anything else that was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof SoundpostError && error.code === 'NETWORK_ERROR') return AWAY;
  const { code, details } = (error ?? {}) as Told;
  const message = messageOf((error ?? {}) as Told);
  if (message === undefined || message === '') return 'The service gave no reason. Try again in a moment.';
  const remedy = code === 'UNAUTHORIZED' ? undefined : remedyOf(code);
  return [message, details, remedy]
    .filter((part) => part !== undefined && part !== null && part !== '')
    .map((part) => `${capital(String(part)).replace(/\.$/, '')}.`)
    .join(' ');
}

/** An error of the client says its code and details in its message too. */
function messageOf(error: Told): string | undefined {
  if (!(error instanceof SoundpostError)) return error.message;
  return error.message.replace(`${error.code}: `, '').replace(` (${error.details})`, '');
}

/** What helps against an error, in the words of the catalogue. */
function remedyOf(code: string | undefined): string | undefined {
  return code !== undefined && Object.hasOwn(errorCatalogue, code)
    ? errorCatalogue[code as keyof typeof errorCatalogue].remedy
    : undefined;
}

/** Not of the name of a field: `source.url: …` */
function capital(part: string): string {
  return /^[\w.[\]]+:/.test(part) ? part : `${part.charAt(0).toUpperCase()}${part.slice(1)}`;
}

/** Whether somebody aborted it on purpose. */
export const isAborted = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError';

/** Whether the same request may succeed later. */
export const isPassing = (error: unknown): boolean =>
  error instanceof SoundpostError && (error.httpStatus === 0 || error.httpStatus >= 429);
