/** The API with the key of this tab. Addresses are relative to the page, so that a proxy may put both anywhere. */
import { createClient, type SoundpostClient } from 'soundpost-client/client';
import { SoundpostError } from 'soundpost-client/error';
import { errorCatalogue } from 'soundpost-contract/errors';

const STORE = 'soundpost.console.key';
const AWAY = 'The service does not answer. See that it runs and that you are online, then try again.';

let current: { readonly key: string; readonly client: SoundpostClient } | undefined;
let onRefused: (reason: string) => void = () => undefined;

export const isSignedIn = (): boolean => sessionStorage.getItem(STORE) !== null;
export const keyHeaders = (): Record<string, string> => ({
  'X-API-Key': sessionStorage.getItem(STORE) ?? '',
});
export const signIn = (key: string): void => sessionStorage.setItem(STORE, key);

/** Nothing of the key stays in this tab. */
export function signOut(): void {
  sessionStorage.removeItem(STORE);
  current = undefined;
}

/** @param listener called when the key of the tab is no longer good */
export function whenKeyIsRefused(listener: (reason: string) => void): void {
  onRefused = listener;
}

/** The client with the key that is signed in. Its errors are sentences by {@link sentence}. */
export function api(): SoundpostClient {
  const key = sessionStorage.getItem(STORE) ?? '';
  if (current?.key !== key) {
    current = {
      key,
      client: createClient({ baseUrl: new URL('.', document.baseURI).href, apiKey: key, fetch: watched }),
    };
  }
  return current.client;
}

/** A 401 to any request means that the key was revoked meanwhile. */
async function watched(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, { cache: 'no-store', ...init });
  if (response.status === 401 && isSignedIn()) {
    const { error } = await response
      .clone()
      .json()
      .catch(() => ({ error: undefined }));
    onRefused(sentence(error ?? {}));
  }
  return response;
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
