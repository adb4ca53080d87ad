/** Whom it goes to: picked from a list by name, or typed as a number or a JID. */
import { Field } from '../../ui.tsx';
import type { Recipient } from './senders.ts';

interface RecipientFieldProps {
  readonly recipients: readonly Recipient[];
  readonly value: string;
  readonly onValue: (typed: string) => void;
}

export function RecipientField({ recipients, value, onValue }: RecipientFieldProps) {
  return (
    <Field label="To" id="recipient">
      {(attributes) => (
        <>
          <input
            {...attributes}
            required
            autocomplete="off"
            spellcheck={false}
            list="recipients"
            placeholder={
              recipients.length === 0
                ? 'Number with country code, or a JID'
                : 'Name, or number with country code'
            }
            value={value}
            onInput={({ currentTarget }) => onValue(currentTarget.value)}
          />
          <datalist id="recipients">
            {recipients.map(({ label, about, to }) => (
              <option key={to} value={label} label={about === '' ? label : `${label} · ${about}`} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
