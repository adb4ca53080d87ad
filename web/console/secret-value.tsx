/** A secret: hidden until somebody wants to see it, and to be copied without being seen. */
import { useState } from 'preact/hooks';
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
  const id = `secret-${label.toLowerCase().replaceAll(/\W+/g, '-')}`;
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
