/** The secret that the key's webhooks are signed with: fetched when somebody wants it. */
import { useState } from 'preact/hooks';
import type { WebhookSecret as Told } from 'soundpost-contract/answers';
import type { z } from 'zod';
import { shortTime } from '../../../shared/time.ts';
import { SecretValue } from '../../secret-value.tsx';
import { api } from '../../session.ts';
import { Button, confirmed, Fault, useWork } from '../../ui.tsx';

export function WebhookSecret() {
  const [told, setTold] = useState<z.infer<typeof Told>>();
  const [isNew, setNew] = useState(false);
  const { busy, fault, run } = useWork();

  async function rotate(): Promise<void> {
    const sure = await confirmed({
      title: 'Replace the webhook secret?',
      text: 'Webhooks are also signed with the old secret for another 24 hours. Update all receivers within that time.',
      yes: 'Replace secret',
    });
    if (!sure) return;
    await run(async () => {
      setTold(await api().rotateWebhookSecret());
      setNew(true);
    });
  }

  return (
    <section class="card" aria-labelledby="secret-title">
      <h2 id="secret-title">Secret</h2>
      <p class="soft">Receivers use it to verify webhooks (Standard Webhooks).</p>
      {told === undefined ? null : (
        <SecretValue key={told.secret} label="Webhook secret" value={told.secret} isShown />
      )}
      <p id="secret-note" class="note" role="status" hidden={!isNew && !told?.replacedUntil}>
        {isNew ? 'This is the new secret. ' : ''}
        {told?.replacedUntil ? `The old one works until ${shortTime(told.replacedUntil)}.` : ''}
      </p>
      <div class="actions">
        {told === undefined ? (
          <Button
            class="small"
            busy={busy}
            onClick={() => void run(async () => setTold(await api().webhookSecret()))}
          >
            Show secret
          </Button>
        ) : (
          <Button class="small" onClick={() => setTold(undefined)}>
            Hide secret
          </Button>
        )}
        <Button class="small" icon="retry" busy={busy} onClick={() => void rotate()}>
          Replace secret
        </Button>
      </div>
      <Fault text={fault} id="secret-error" />
    </section>
  );
}
