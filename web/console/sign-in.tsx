/** Signing in with an API key, which the service gives a session for: it is kept nowhere in this browser. */
import { useEffect, useRef } from 'preact/hooks';
import { SoundpostError } from 'soundpost-client/error';
import appIcon from '../shared/icon.svg';
import { signIn } from './session.ts';
import { Button, Fault, useWork } from './ui.tsx';

const UNKNOWN_KEY =
  'The service does not accept this key. Check that you pasted all of it, from sp_ on, or create one with: soundpost keys create';

export function SignIn({ reason }: { readonly reason: string }) {
  useEffect(() => {
    document.title = 'Sign in · Soundpost';
  }, []);
  return (
    <main id="sign-in" class="sign-in">
      <div class="card sign-in-card">
        <img src={appIcon} width="56" height="56" alt="" />
        <h1>Soundpost</h1>
        <p class="soft">The audio of any video, in the format you need.</p>
        <KeyForm reason={reason} />
      </div>
    </main>
  );
}

/** In place, over what somebody was doing: it goes on as it was. */
export function SignInAgain({ reason }: { readonly reason: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => requestAnimationFrame(() => before instanceof HTMLElement && before.focus());
  }, []);
  return (
    <dialog
      id="sign-in-again"
      class="card sign-in-card"
      ref={dialog}
      aria-labelledby="sign-in-again-title"
      onCancel={(event) => event.preventDefault()}
      onClose={() => dialog.current?.showModal()}
    >
      <h2 id="sign-in-again-title">Sign in again</h2>
      <p class="soft">Your work is kept and continues after you sign in.</p>
      <KeyForm reason={reason} />
    </dialog>
  );
}

function KeyForm({ reason }: { readonly reason: string }) {
  const { busy, fault, run } = useWork();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);

  async function submit(): Promise<void> {
    try {
      await signIn(field.current?.value.trim() ?? '');
    } catch (error) {
      field.current?.select();
      const isUnknown = error instanceof SoundpostError && error.code === 'UNAUTHORIZED';
      throw isUnknown ? new Error(UNKNOWN_KEY) : error;
    }
  }

  return (
    <form
      class="sign-in-form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(submit);
      }}
    >
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
        The service printed a key on its first start. To create another, run{' '}
        <code>soundpost keys create</code>. You stay signed in for 12 hours, in all tabs of this browser. The
        browser does not store the key.
      </p>
    </form>
  );
}
