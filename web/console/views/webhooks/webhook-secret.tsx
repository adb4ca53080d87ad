/** The secret that the key's webhooks are signed with: fetched when somebody wants it. */
import { useState } from 'preact/hooks';
import { SecretValue } from '../../secret-value.tsx';
import { api } from '../../session.ts';
import { Button, confirmed, Fault, useWork } from '../../ui.tsx';

export function WebhookSecret() {
  const [secret, setSecret] = useState<string>();
  const [note, setNote] = useState('');
  const { busy, fault, run } = useWork();

  async function rotate(): Promise<void> {
    const sure = await confirmed({
      title: 'Replace the webhook secret?',
      text: 'For 24 hours every webhook is signed with the old secret, too. Until then all receivers have to know the new one.',
      yes: 'Replace it',
    });
    if (!sure) return;
    await run(async () => {
      setSecret((await api().rotateWebhookSecret()).secret);
      setNote('This is the new secret. The old one signs for 24 hours more.');
    });
  }

  return (
    <section class="card" aria-labelledby="secret-title">
      <h2 id="secret-title">Secret</h2>
      <p class="soft">Receivers check with it that a webhook comes from here (Standard Webhooks).</p>
      {secret === undefined ? null : (
        <SecretValue key={secret} label="Webhook secret" value={secret} isShown />
      )}
      <p class="note" role="status" hidden={note === ''}>
        {note}
      </p>
      <div class="actions">
        {secret === undefined ? (
          <Button
            class="small"
            busy={busy}
            onClick={() => void run(async () => setSecret((await api().webhookSecret()).secret))}
          >
            Show the secret
          </Button>
        ) : (
          <Button class="small" onClick={() => setSecret(undefined)}>
            Hide the secret
          </Button>
        )}
        <Button class="small" icon="retry" busy={busy} onClick={() => void rotate()}>
          Replace it
        </Button>
      </div>
      <Fault text={fault} id="secret-error" />
    </section>
  );
}
