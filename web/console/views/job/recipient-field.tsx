/** Whom it goes to: picked from a list by name, or typed as a number or a JID (ARIA Authoring Practices, "Combobox" with a list that is filtered). */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Field } from '../../ui.tsx';
import type { Recipient } from './senders.ts';

/** More are found by typing. */
const MOST_SHOWN = 50;

interface RecipientFieldProps {
  readonly recipients: readonly Recipient[];
  readonly value: string;
  readonly onValue: (typed: string) => void;
}

export function RecipientField({ recipients, value, onValue }: RecipientFieldProps) {
  const list = useList(recipients, value, onValue);
  const { isOpen, shown, active } = list;
  return (
    <Field label="To" id="recipient" class="combobox">
      {(attributes) => (
        <>
          <input
            {...attributes}
            role="combobox"
            required
            autocomplete="off"
            spellcheck={false}
            aria-autocomplete="list"
            aria-expanded={isOpen}
            aria-controls="recipients"
            aria-activedescendant={isOpen && active >= 0 ? optionId(active) : undefined}
            placeholder={
              recipients.length === 0
                ? 'Number with country code, or a JID'
                : 'Name, or number with country code'
            }
            value={value}
            onInput={({ currentTarget }) => {
              onValue(currentTarget.value);
              list.open();
            }}
            onClick={list.open}
            onBlur={list.close}
            onKeyDown={list.press}
          />
          {isOpen ? <Options shown={shown} active={active} onPick={list.pick} /> : null}
        </>
      )}
    </Field>
  );
}

const optionId = (index: number): string => `recipient-${index}`;

function useList(recipients: readonly Recipient[], value: string, onValue: (typed: string) => void) {
  const [isWanted, setWanted] = useState(false);
  const [active, setActive] = useState(-1);
  const shown = matching(recipients, value);
  const isOpen = isWanted && shown.length > 0;

  function show(isShown: boolean): void {
    setWanted(isShown);
    setActive(-1);
  }
  function pick({ label }: Recipient): void {
    onValue(label);
    show(false);
  }
  function move(by: 1 | -1): void {
    setWanted(true);
    setActive((at) => (at === -1 && by === -1 ? shown.length - 1 : (at + by + shown.length) % shown.length));
  }
  function press(event: KeyboardEvent): void {
    const picked = isOpen ? shown[active] : undefined;
    if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && shown.length > 0) {
      move(event.key === 'ArrowDown' ? 1 : -1);
    } else if (event.key === 'Enter' && picked !== undefined) {
      pick(picked);
    } else if (event.key === 'Escape' && isOpen) {
      show(false);
    } else {
      return;
    }
    event.preventDefault();
  }
  return { isOpen, shown, active, pick, press, open: () => show(true), close: () => show(false) };
}

/** All of them while nothing is typed, or after one was picked. */
function matching(recipients: readonly Recipient[], value: string): readonly Recipient[] {
  const typed = value.trim().toLowerCase();
  const number = typed.replace(/^\+/, '');
  const isPicked = recipients.some(({ label }) => label.toLowerCase() === typed);
  return recipients
    .filter(({ label, about }) => isPicked || label.toLowerCase().includes(typed) || about.startsWith(number))
    .slice(0, MOST_SHOWN);
}

interface OptionsProps {
  readonly shown: readonly Recipient[];
  readonly active: number;
  readonly onPick: (recipient: Recipient) => void;
}

function Options({ shown, active, onPick }: OptionsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: 'nearest' }), [active]);
  return (
    <div id="recipients" role="listbox" class="suggestions" aria-label="People and groups" ref={list}>
      {shown.map((recipient, index) => (
        // Keys go to the field, which keeps the focus (aria-activedescendant).
        // biome-ignore lint/a11y/useKeyWithClickEvents: see above
        // biome-ignore lint/a11y/useFocusableInteractive: see above
        <div
          key={recipient.to}
          id={optionId(index)}
          role="option"
          class="suggestion"
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onPick(recipient)}
        >
          <span>{recipient.label}</span>
          <span class="soft">{recipient.about}</span>
        </div>
      ))}
    </div>
  );
}
