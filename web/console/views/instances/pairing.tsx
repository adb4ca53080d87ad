/** Pairing with a phone: the picture that it scans, renewed until it has, or a code that is typed on it. Whoever opens it gives its heading the focus. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../../announcements.ts';
import { connectInstance, type InstanceState, instanceState, type Pairing } from '../../gateway.ts';
import { isAborted, sentence } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';
import { NotConnected } from './not-connected.tsx';
import { troubleOf } from './trouble.ts';

const LOOK_MS = 1000;
/** The network replaces a picture after 20 seconds; each request for it is a line in the audit log. */
const RENEW_EVERY = 4;

type Shown =
  | { readonly at: 'waiting' }
  | { readonly at: 'pairing'; readonly pairing: Pairing }
  | { readonly at: 'joining' }
  | { readonly at: 'connected' }
  /** As the gateway says it; undefined: it said nothing. */
  | { readonly at: 'ended'; readonly reason: string | undefined }
  /** It could not be asked. */
  | { readonly at: 'away'; readonly fault: string };

export function PairingPanel({
  instance,
  onConnected,
  onClose,
}: {
  readonly instance: string;
  readonly onConnected: () => void;
  readonly onClose: () => void;
}) {
  const [turn, setTurn] = useState(0);
  const shown = usePairing(instance, turn, onConnected);
  const titleId = `pairing-${instance}`;
  return (
    <section class="instance-part" aria-labelledby={titleId}>
      <h3 id={titleId} tabIndex={-1}>
        {shown.at === 'connected' ? 'Connected' : 'Pair your phone'}
      </h3>
      {shown.at === 'pairing' ? <Picture instance={instance} pairing={shown.pairing} /> : null}
      {shown.at === 'waiting' ? <p role="status">Getting a QR code from WhatsApp…</p> : null}
      {shown.at === 'joining' ? <p role="status">Connecting. This takes a few seconds.</p> : null}
      {shown.at === 'connected' ? (
        <p role="status">
          {instance} is paired. To send, open a finished job in the <a href="#/jobs">history</a>, choose{' '}
          {instance} and pick a recipient.
        </p>
      ) : null}
      {shown.at === 'ended' ? <NotConnected reason={shown.reason} role="alert" /> : null}
      {shown.at === 'away' ? <Fault text={shown.fault} /> : null}
      <div class="card-foot">
        <Button class="small" onClick={onClose}>
          {shown.at === 'connected' ? 'Done' : 'Not now'}
        </Button>
        {shown.at === 'away' || (shown.at === 'ended' && !troubleOf(shown.reason).lasts) ? (
          <Button class="small primary" icon="retry" onClick={() => setTurn(turn + 1)}>
            Show new QR code
          </Button>
        ) : null}
      </div>
    </section>
  );
}

/** @param turn another one begins anew */
function usePairing(instance: string, turn: number, onConnected: () => void): Shown {
  const [shown, setShown] = useState<Shown>({ at: 'waiting' });
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    let timer: ReturnType<typeof setTimeout> | undefined;
    setShown({ at: 'waiting' });
    async function look(times: number): Promise<void> {
      const next = await lookAt(instance, times, signal);
      if (signal.aborted) return;
      if (next !== undefined) setShown(next);
      if (next?.at === 'connected') {
        announce(`${instance} is connected`);
        onConnected();
      }
      if (next === undefined || next.at === 'pairing' || next.at === 'joining') {
        timer = setTimeout(look, LOOK_MS, times + 1);
      }
    }
    void look(0);
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [instance, turn]);
  return shown;
}

/** Undefined while nothing has changed. */
async function lookAt(instance: string, times: number, signal: AbortSignal): Promise<Shown | undefined> {
  try {
    if (times % RENEW_EVERY === 0) {
      const answer = await connectInstance(instance);
      return 'pairing' in answer ? { at: 'pairing', pairing: answer.pairing } : shownOf(answer.state);
    }
    const state = await instanceState(instance, { signal });
    return state.state === 'connecting' ? undefined : shownOf(state);
  } catch (error) {
    return isAborted(error) ? undefined : { at: 'away', fault: sentence(error) };
  }
}

function shownOf({ state, reason }: InstanceState): Shown {
  switch (state) {
    case 'open':
      return { at: 'connected' };
    case 'connecting':
      return { at: 'joining' };
    case 'close':
      return { at: 'ended', reason };
  }
}

function Picture({ instance, pairing }: { readonly instance: string; readonly pairing: Pairing }) {
  const { base64, pairingCode, count } = pairing;
  return (
    <div class="pairing-ways">
      <img class="qr" src={base64} alt="QR code for WhatsApp on your phone" data-count={count} />
      <div class="pairing-steps">
        <ol>
          <li>Open WhatsApp on the phone.</li>
          <li>
            Go to <strong>Settings</strong>, <strong>Linked devices</strong>, <strong>Link a device</strong>.
          </li>
          <li>Scan this QR code. It refreshes until you have scanned it.</li>
        </ol>
        {pairingCode === null ? (
          <CodeForm instance={instance} />
        ) : (
          <p role="status">
            Or choose <strong>Link with phone number instead</strong> on the phone and enter{' '}
            <code class="pairing-code">{pairingCode}</code>
          </p>
        )}
      </div>
    </div>
  );
}

/** The code comes with the next look at the pairing. */
function CodeForm({ instance }: { readonly instance: string }) {
  const [number, setNumber] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const { busy, fault, run } = useWork();

  async function ask(): Promise<void> {
    const answer = await connectInstance(instance, number);
    if ('pairing' in answer && answer.pairing.pairingCode === null) {
      throw new Error('WhatsApp gave no code for this number. Scan the QR code instead.');
    }
  }

  return (
    <details class="more" onToggle={({ currentTarget }) => currentTarget.open && field.current?.focus()}>
      <summary>Pair by phone number</summary>
      <form
        class="more-body"
        onSubmit={(event) => {
          event.preventDefault();
          void run(ask);
        }}
      >
        <Field label="Phone number" hint="With country code. You get a code to enter on the phone.">
          {(attributes) => (
            <input
              {...attributes}
              ref={field}
              type="tel"
              required
              autocomplete="off"
              value={number}
              placeholder="+49 151 12345678"
              onInput={({ currentTarget }) => setNumber(currentTarget.value)}
            />
          )}
        </Field>
        <Fault text={fault} />
        <Button type="submit" class="small" busy={busy}>
          Get code
        </Button>
      </form>
    </details>
  );
}
