/** Copying a text, also where the browser does not let a page do it: then it stands there to be copied by hand. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../../announcements.ts';

interface Copied {
  readonly text: string;
  /** What is said once it is copied. */
  readonly note: string;
  readonly isCopied: boolean;
}

export function useCopy(): {
  readonly copied: Copied | undefined;
  readonly copy: (text: string, note: string) => Promise<void>;
} {
  const [copied, setCopied] = useState<Copied>();
  return {
    copied,
    async copy(text, note) {
      const isCopied = await toClipboard(text);
      setCopied({ text, note, isCopied });
      if (isCopied) announce(note);
    },
  };
}

/** Browsers have a clipboard only on pages that came by TLS, or from this machine. */
async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function CopyNote({ copied, id }: { readonly copied: Copied | undefined; readonly id: string }) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.select(), [copied]);
  if (copied === undefined) return null;
  return (
    <div class="note copy-note" id={id}>
      <p>{copied.isCopied ? copied.note : 'The browser blocked copying. Copy it by hand:'}</p>
      {copied.isCopied ? null : (
        <textarea ref={field} readOnly rows={3} aria-label="To copy" value={copied.text} />
      )}
    </div>
  );
}
