/** What was sent when jobs ended, of all jobs that name a webhook; trying a receiver, the secret, and sending again what failed. */
import { useState } from 'preact/hooks';
import { ViewHead } from '../../ui.tsx';
import { JobsDeliveries } from './jobs-deliveries.tsx';
import { Receiver } from './receiver.tsx';
import { Resend } from './resend.tsx';
import { WebhookSecret } from './webhook-secret.tsx';

export function Webhooks() {
  /** Asks for the list anew. */
  const [turn, setTurn] = useState(0);
  return (
    <section id="view-webhooks" class="view" aria-labelledby="webhooks-title">
      <ViewHead id="webhooks" title="Webhooks">
        <p class="soft">What was sent when jobs ended, and to try a receiver. The list updates itself.</p>
      </ViewHead>
      <div class="cards">
        <Receiver />
        <Resend onResent={() => setTurn(turn + 1)} />
        <WebhookSecret />
      </div>
      <JobsDeliveries key={turn} />
    </section>
  );
}
