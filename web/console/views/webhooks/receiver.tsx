/** Trying a receiver: one signed notification, and what it answered. */
import { useEffect, useState } from 'preact/hooks';
import { api } from '../../session.ts';
import { Button, Fault, Field, focusNext, useWork } from '../../ui.tsx';

export function Receiver() {
  const [url, setUrl] = useState('');
  const [result, setResult] = useState('');
  const { busy, fault, run } = useWork();

  useEffect(() => {
    // As the addresses of sources are: anywhere on the page.
    function paste(event: ClipboardEvent): void {
      const text = event.clipboardData?.getData('text/plain').trim() ?? '';
      if (event.target instanceof HTMLInputElement || !/^https?:\/\/\S+$/.test(text)) return;
      event.preventDefault();
      setUrl(text);
      focusNext('test-url');
    }
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  }, []);

  async function test(): Promise<void> {
    setResult('');
    const { status, latencyMs } = await api().testWebhook(url.trim());
    setResult(`HTTP ${status} in ${latencyMs} ms.`);
  }

  return (
    <section class="card" aria-labelledby="test-title">
      <h2 id="test-title">Test an endpoint</h2>
      <form
        id="test-form"
        class="one-line"
        onSubmit={(event) => {
          event.preventDefault();
          void run(test);
        }}
      >
        <Field
          label="URL"
          id="test-url"
          hint="We POST one signed test here. You can paste a URL anywhere on this page."
        >
          {(attributes) => (
            <input
              {...attributes}
              type="url"
              inputMode="url"
              required
              maxLength={2048}
              autocomplete="off"
              spellcheck={false}
              placeholder="https://example.com/hooks"
              value={url}
              onInput={({ currentTarget }) => setUrl(currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" busy={busy}>
          Send test
        </Button>
      </form>
      <p id="test-result" class="note" role="status" hidden={result === ''}>
        {result}
      </p>
      <Fault text={fault} id="test-error" />
    </section>
  );
}
