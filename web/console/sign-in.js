// Signing in with an API key. Which one it is is asked of the service, so that a wrong key is said at once.
import * as connection from './connection.js';
import { byId, during } from './page.js';

const UNKNOWN_KEY =
  'The service does not know this key. Check that all of it was pasted, from sp_ on, or have a new one made with: keys create';

let onSignedIn = () => undefined;

/** @param {{ onSignedIn: (byHand: boolean) => void }} listeners */
export function begin(listeners) {
  ({ onSignedIn } = listeners);
  if (connection.isSignedIn()) {
    onSignedIn(false);
  } else {
    askForKey('');
  }
}

export function askForKey(fault) {
  connection.signOut();
  document.title = 'Sign in · Soundpost';
  byId('app').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = fault;
  byId('key').value = '';
  byId('key').focus();
}

byId('sign-in-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const field = byId('key');
  await during(byId('sign-in-button'), byId('sign-in-error'), async () => {
    const key = field.value.trim();
    // A header carries no other signs: fetch would fail as if nobody answered.
    if (!/^[\x21-\x7e]+$/.test(key)) {
      field.select();
      throw new Error(UNKNOWN_KEY);
    }
    connection.signIn(key);
    try {
      await connection.request('v1/usage');
    } catch (error) {
      // A key may lack the scope `read` and still be good for something.
      if (error.status !== 403) {
        connection.signOut();
        field.select();
        throw error.status === 401 ? new Error(UNKNOWN_KEY) : error;
      }
    }
    field.value = '';
    onSignedIn(true);
  });
});
