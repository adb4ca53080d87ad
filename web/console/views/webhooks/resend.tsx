/** Sending again what failed while a receiver was away. */
import { useState } from 'preact/hooks';
import { api } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

const DAY_MS = 24 * 60 * 60 * 1000;

export function Resend({ onResent }: { readonly onResent: () => void }) {
  const [since, setSince] = useState(() => localTime(Date.now() - DAY_MS));
  const [result, setResult] = useState('');
  const { busy, fault, run } = useWork();

  async function resend(): Promise<void> {
    setResult('');
    const { resent } = await api().resendDeliveries(new Date(since).toISOString());
    setResult(wordsOf(resent));
    if (resent > 0) onResent();
  }

  return (
    <section class="card" aria-labelledby="resend-title">
      <h2 id="resend-title">Resend what failed</h2>
      <form
        id="resend-form"
        class="one-line"
        onSubmit={(event) => {
          event.preventDefault();
          void run(resend);
        }}
      >
        <Field label="Failed since" id="resend-since">
          {(attributes) => (
            <input
              {...attributes}
              type="datetime-local"
              required
              value={since}
              onInput={({ currentTarget }) => setSince(currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" icon="retry" busy={busy}>
          Resend
        </Button>
      </form>
      <p id="resend-result" class="note" role="status" hidden={result === ''}>
        {result}
      </p>
      <Fault text={fault} id="resend-error" />
    </section>
  );
}

function wordsOf(resent: number): string {
  if (resent === 0) return 'Nothing has failed since then.';
  return resent === 1
    ? '1 notification is being sent again.'
    : `${resent} notifications are being sent again.`;
}

/** As a field for date and time has it: of this place, to the minute. */
function localTime(timeMs: number): string {
  const ofThisPlace = timeMs - new Date(timeMs).getTimezoneOffset() * 60_000;
  return new Date(ofThisPlace).toISOString().slice(0, 16);
}
