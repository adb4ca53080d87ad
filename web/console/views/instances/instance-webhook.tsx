/** Where the events of an instance go: messages that arrive, connections, calls. */
import { useEffect, useState } from 'preact/hooks';
import { announce } from '../../announcements.ts';
import { setWebhook, webhookOf } from '../../gateway.ts';
import { SecretValue } from '../../secret-value.tsx';
import { isAborted, sentence } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

type Webhook = Awaited<ReturnType<typeof setWebhook>>;

export function InstanceWebhook({ instance }: { readonly instance: string }) {
  /** Null: there is none. */
  const [webhook, setKnown] = useState<Webhook | null>();
  const [away, setAway] = useState('');
  const [url, setUrl] = useState('');
  const { busy, fault, run } = useWork();
  useEffect(() => {
    const ending = new AbortController();
    webhookOf(instance, { signal: ending.signal }).then(
      (found) => {
        setKnown(found ?? null);
        setUrl(found?.enabled ? found.url : '');
      },
      (error: unknown) => {
        if (!isAborted(error)) setAway(sentence(error));
      },
    );
    return () => ending.abort();
  }, [instance]);

  async function save(): Promise<void> {
    const { headers, events, url: before = '' } = webhook ?? {};
    const enabled = url !== '';
    setKnown(await setWebhook(instance, { url: enabled ? url : before, enabled, headers, events }));
    announce('Saved');
  }

  if (webhook === undefined) return <Fault text={away} />;
  const shown = webhook?.enabled ? webhook.url : '';
  return (
    <form
      class="settings"
      onSubmit={(event) => {
        event.preventDefault();
        void run(save);
      }}
    >
      <div class="one-line">
        <Field
          label="URL"
          hint="We POST incoming messages, message states and connection changes here. Leave empty for none."
        >
          {(attributes) => (
            <input
              {...attributes}
              type="url"
              maxLength={2048}
              autocomplete="off"
              spellcheck={false}
              placeholder="https://example.com/hooks/messages"
              value={url}
              onInput={({ currentTarget }) => setUrl(currentTarget.value.trim())}
            />
          )}
        </Field>
        <Button type="submit" busy={busy} disabled={url === shown}>
          Save
        </Button>
      </div>
      <Fault text={fault} />
      {webhook?.enabled ? <SecretValue label="Signing secret" value={webhook.secret} /> : null}
    </form>
  );
}
