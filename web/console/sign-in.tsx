/** Signing in with an API key. Which one it is is asked of the service, so that a wrong key is said at once. */
import { useEffect, useRef } from 'preact/hooks';
import { SoundpostError } from 'soundpost-client/error';
import appIcon from '../shared/icon.svg';
import { api, signIn, signOut } from './session.ts';
import { Button, Fault, useWork } from './ui.tsx';

const UNKNOWN_KEY =
  'The service does not know this key. Check that all of it was pasted, from sp_ on, or have a new one made with: soundpost keys create';

export function SignIn({ reason, onSignedIn }: { readonly reason: string; readonly onSignedIn: () => void }) {
  const { busy, fault, run } = useWork();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Soundpost';
    field.current?.focus();
  }, []);

  async function submit(): Promise<void> {
    const key = field.current?.value.trim() ?? '';
    try {
      await tryKey(key);
    } catch (error) {
      field.current?.select();
      throw error;
    }
    onSignedIn();
  }

  return (
    <main id="sign-in" class="sign-in">
      <form
        class="card sign-in-card"
        onSubmit={(event) => {
          event.preventDefault();
          void run(submit);
        }}
      >
        <img src={appIcon} width="56" height="56" alt="" />
        <h1>Soundpost</h1>
        <p class="soft">The audio of any video, in the format you need.</p>
        <div class="field">
          <label for="key">API key</label>
          <input
            id="key"
            name="key"
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            placeholder="sp_…"
            aria-describedby="key-hint sign-in-error"
            ref={field}
          />
        </div>
        <Fault text={fault || reason} id="sign-in-error" />
        <Button type="submit" class="primary wide" busy={busy}>
          Sign in
        </Button>
        <p id="key-hint" class="hint">
          The first start of the service printed one. Others are made with <code>soundpost keys create</code>.
          The key stays in this tab and is forgotten when you close it.
        </p>
      </form>
    </main>
  );
}

async function tryKey(key: string): Promise<void> {
  // A header carries no other signs: fetch would fail as if nobody answered.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error(UNKNOWN_KEY);
  signIn(key);
  try {
    await api().usage();
  } catch (error) {
    const status = error instanceof SoundpostError ? error.httpStatus : undefined;
    // A key may lack the scope `read` and still be good for something.
    if (status === 403) return;
    signOut();
    throw status === 401 ? new Error(UNKNOWN_KEY) : error;
  }
}
