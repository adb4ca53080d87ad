/** Sending again what failed while a receiver was away. */
import { useState } from 'preact/hooks';
import { shortTime } from '../../../shared/time.ts';
import { api } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

const DAY_MS = 24 * 60 * 60 * 1000;

interface ResendProps {
  /** Default: all of the key's. */
  readonly endpoint?: string;
  /** When it began to fail, ISO 8601. */
  readonly failedSince?: string | undefined;
  readonly onResent?: () => void;
}

export function Resend({ endpoint, failedSince, onResent }: ResendProps) {
  const [since, setSince] = useState(() => localTime(Date.now() - DAY_MS));
  const [result, setResult] = useState('');
  const { busy, fault, run } = useWork();
  const noon = lastNoon().toISOString();
  const Heading = endpoint === undefined ? 'h2' : 'h3';

  async function resend(from: string): Promise<void> {
    setResult('');
    const only = endpoint === undefined ? {} : { endpoint };
    const { resent } = await api().resendDeliveries(new Date(from).toISOString(), only);
    setResult(wordsOf(resent));
    if (resent > 0) onResent?.();
  }

  const quick: readonly (readonly [string, string | undefined])[] = [
    ['noon', noon],
    ['failed', failedSince],
  ];
  return (
    <section class={endpoint === undefined ? 'card' : 'instance-part'} aria-labelledby="resend-title">
      <Heading id="resend-title">
        {endpoint === undefined ? 'Resend failed deliveries' : 'Resend missed deliveries'}
      </Heading>
      <div class="actions">
        {quick.map(([name, from]) =>
          from === undefined ? null : (
            <Button
              key={name}
              class="small"
              icon="retry"
              data-since={name}
              busy={busy}
              onClick={() => void run(() => resend(from))}
            >
              {name === 'failed' ? `Since the first failure, ${shortTime(from)}` : `Since ${shortTime(from)}`}
            </Button>
          ),
        )}
      </div>
      <form
        id="resend-form"
        class="one-line"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => resend(since));
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
  return resent === 1 ? 'Resending 1 delivery.' : `Resending ${resent} deliveries.`;
}

function lastNoon(): Date {
  const noon = new Date();
  noon.setHours(12, 0, 0, 0);
  if (noon.getTime() > Date.now()) noon.setDate(noon.getDate() - 1);
  return noon;
}

/** As a field for date and time has it: of this place, to the minute. */
function localTime(timeMs: number): string {
  const ofThisPlace = timeMs - new Date(timeMs).getTimezoneOffset() * 60_000;
  return new Date(ofThisPlace).toISOString().slice(0, 16);
}
