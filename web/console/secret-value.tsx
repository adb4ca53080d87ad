/** Secrets: hidden until somebody wants to see one, or shown once in their life; to be copied without being seen. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Button } from './ui.tsx';
import { CopyNote, useCopy } from './views/job/copy.tsx';

interface SecretProps {
  readonly label: string;
  readonly value: string;
  /** Whether it is seen from the beginning. */
  readonly isShown?: boolean;
}

export function SecretValue({ label, value, isShown = false }: SecretProps) {
  const [shown, setShown] = useState(isShown);
  const { copied, copy } = useCopy();
  const id = useId();
  return (
    <div class="secret">
      <span class="secret-label" id={id}>
        {label}
      </span>
      <output class="secret-value" aria-labelledby={id}>
        {shown ? value : '•'.repeat(24)}
      </output>
      <div class="actions">
        {isShown ? null : (
          <Button class="small" onClick={() => setShown(!shown)}>
            {shown ? 'Hide' : 'Show'}
          </Button>
        )}
        <Button class="small" icon="copy" onClick={() => void copy(value, `${label} copied`)}>
          Copy
        </Button>
      </div>
      <CopyNote copied={copied} id={`${id}-note`} />
    </div>
  );
}

interface ShownOnceProps {
  readonly title: string;
  readonly label: string;
  readonly value: string;
  /** What it is for, and that it is not shown again. */
  readonly children: ComponentChildren;
  readonly onKept: () => void;
  /** Whether it stands within a card, below its heading. */
  readonly isInCard?: boolean;
}

/** A secret that nobody can ask for again. Takes the focus. */
export function ShownOnce({ title, label, value, children, onKept, isInCard = false }: ShownOnceProps) {
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [value]);
  const Heading = isInCard ? 'h3' : 'h2';
  return (
    <section class={`${isInCard ? 'instance-part' : 'card'} shown-once`} aria-labelledby={id}>
      <Heading id={id} tabIndex={-1} ref={heading}>
        {title}
      </Heading>
      <p class="soft" role="status">
        {children}
      </p>
      <SecretValue key={value} label={label} value={value} isShown />
      <div class="card-foot">
        <Button class="small" onClick={onKept}>
          Done
        </Button>
      </div>
    </section>
  );
}
