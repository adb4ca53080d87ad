/** What views are made of: buttons that are busy while they work, errors, facts, badges, a question before what cannot be undone. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { isAborted, sentence } from './session.ts';
import { type ShownStatus, statusWord } from './words.ts';

/** @param name of a symbol in index.html */
export function Icon({ name }: { readonly name: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#icon-${name}`} />
    </svg>
  );
}

/**
 * Moves the focus once what was changed is drawn: what had it is gone, and it would begin at the top of the page again.
 * @param id of what can have it
 */
export function focusNext(id: string): void {
  requestAnimationFrame(() => document.getElementById(id)?.focus());
}

export function Fault({ text, id }: { readonly text: string; readonly id?: string }) {
  return (
    <p class="fault" role="alert" id={id}>
      {text}
    </p>
  );
}

/** Work that a person asked for: `run` does nothing while the one before goes on; what fails is a sentence in `fault`. */
export function useWork(): {
  readonly busy: boolean;
  readonly fault: string;
  readonly run: (work: () => Promise<void>) => Promise<void>;
  readonly setFault: (text: string) => void;
} {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState('');
  const running = useRef(false);
  return {
    busy,
    fault,
    setFault,
    async run(work) {
      if (running.current) return;
      running.current = true;
      setBusy(true);
      setFault('');
      try {
        await work();
      } catch (error) {
        if (!isAborted(error)) setFault(sentence(error));
      } finally {
        running.current = false;
        setBusy(false);
      }
    },
  };
}

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'icon'> & {
  readonly icon?: string;
  readonly busy?: boolean;
};

/** Busy, it keeps its place and its focus, and does nothing when it is pressed. */
export function Button({
  icon,
  busy = false,
  children,
  onClick,
  type = 'button',
  class: className = '',
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      class={`${className}${busy ? ' busy' : ''}`}
      aria-disabled={busy ? 'true' : undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Terms and what they are; those without a value are left out. */
export function Facts({
  rows,
  id,
}: {
  readonly rows: readonly (readonly [string, ComponentChildren])[];
  readonly id?: string;
}) {
  const known = rows.filter(
    ([, value]) => value !== null && value !== undefined && value !== '' && value !== false,
  );
  return (
    <dl class="facts" id={id}>
      {known.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function StatusBadge({ status, id }: { readonly status: ShownStatus; readonly id?: string }) {
  return (
    <span class={`status status-${status}`} id={id}>
      {statusWord(status)}
    </span>
  );
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** @param attributes belong to the input: its id, and what describes it */
  readonly children: (attributes: {
    readonly id: string;
    readonly 'aria-describedby'?: string;
  }) => ComponentChildren;
  readonly id?: string;
  readonly class?: string;
}

/** A label, its input, and a hint that belongs to it. */
export function Field({ label, hint, children, id: given, class: className = '' }: FieldProps) {
  const own = useId();
  const id = given ?? own;
  return (
    <div class={`field ${className}`}>
      <label for={id}>{label}</label>
      {children({ id, ...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }) })}
      {hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** The head of a view; its heading takes the focus when somebody comes here. */
export function ViewHead({
  id,
  title,
  children,
}: {
  readonly id: string;
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The script of a view may come after the view was opened.
    if (document.activeElement?.closest('main') == null) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header class="view-head">
      <h1 id={`${id}-title`} tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {children}
    </header>
  );
}

interface Question {
  readonly title: string;
  readonly text: string;
  /** The button that does it. */
  readonly yes: string;
  /** Nothing is lost by it. */
  readonly isSafe?: boolean;
}
let ask: (question: Question) => Promise<boolean> = async () => false;

/** Asks before something that cannot be undone. */
export const confirmed = (question: Question): Promise<boolean> => ask(question);

/** Stands once in the page, for {@link confirmed}. */
export function ConfirmDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [question, setQuestion] = useState<Question>();
  const answer = useRef<(yes: boolean) => void>(() => undefined);
  useEffect(() => {
    ask = (asked) => {
      setQuestion(asked);
      return new Promise((resolve) => {
        answer.current = resolve;
      });
    };
  }, []);
  useEffect(() => {
    if (question !== undefined && dialog.current !== null) {
      dialog.current.returnValue = '';
      dialog.current.showModal();
    }
  }, [question]);
  return (
    <dialog
      id="confirm"
      class="card"
      ref={dialog}
      aria-labelledby="confirm-title"
      aria-describedby="confirm-text"
      onClose={() => {
        answer.current(dialog.current?.returnValue === 'yes');
        setQuestion(undefined);
      }}
    >
      <form method="dialog">
        <h2 id="confirm-title">{question?.title ?? 'Are you sure?'}</h2>
        <p id="confirm-text" class="soft">
          {question?.text}
        </p>
        <div class="card-foot">
          <button type="submit" value="" class="plain">
            {question?.isSafe === true ? 'Not now' : 'Keep it'}
          </button>
          <button
            id="confirm-yes"
            type="submit"
            value="yes"
            class={question?.isSafe === true ? 'primary' : 'danger'}
          >
            {question?.yes}
          </button>
        </div>
      </form>
    </dialog>
  );
}
