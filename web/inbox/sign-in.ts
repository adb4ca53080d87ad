/** Signing in with a key, a token or the code of a one-time link; and what happens when none of them is good any more. */
import * as connection from './connection.ts';
import { byId } from './state.ts';

interface Listeners {
  readonly onSignedIn: () => void;
  readonly onSignedOut: () => void;
}

let listeners: Listeners = { onSignedIn: () => undefined, onSignedOut: () => undefined };
const keyField = byId('key', HTMLInputElement);

/** Signs in with what the address or the tab has, or asks. */
export async function begin(whoListens: Listeners): Promise<void> {
  listeners = whoListens;
  const address = new URL(location.href);
  const code = address.searchParams.get('code');
  let fault = '';
  if (code !== null) {
    // The code is used up at once; it should not stay in the address or in the history either.
    address.searchParams.delete('code');
    history.replaceState(null, '', address);
    const exchange = (): Promise<boolean> => connection.signInWithCode(code);
    if (!(await connection.untilAnswered(exchange, { onLost: showLost }))) {
      fault = 'That link was used already or is older than 10 minutes.';
    }
  }
  if (connection.isSignedIn()) {
    listeners.onSignedIn();
  } else {
    askForKey(fault);
  }
}

export function askForKey(fault: string): void {
  listeners.onSignedOut();
  connection.signOut();
  byId('inbox').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = fault;
  keyField.value = '';
  keyField.focus();
}

/** Shows the inbox in place of the question. */
export function showInbox(): void {
  byId('sign-in').hidden = true;
  byId('inbox').hidden = false;
}

/** Where the page opens while the gateway is away, that is all that there is to show. */
export function showLost(): void {
  showInbox();
  showConnection('lost', 'The gateway does not respond, retrying…');
}

/** Runs what a click or an event asked for; a key that is no longer good leads back to the question for one. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof connection.NotSignedIn) {
      askForKey('This key does not open the inbox.');
    } else if (!(error instanceof DOMException && error.name === 'AbortError')) {
      showConnection('lost', 'The gateway does not respond');
    }
  }
}

export function showConnection(kind: 'live' | 'lost', text: string): void {
  const node = byId('connection');
  node.className = `connection ${kind}`;
  node.textContent = text;
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  connection.signInWithKey(keyField.value.trim());
  listeners.onSignedIn();
});

byId('sign-out').addEventListener('click', () => askForKey(''));
