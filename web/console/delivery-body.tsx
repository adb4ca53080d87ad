/** What a notification said, and what is known of the receiver's answer. */
import type { WebhookDelivery } from 'soundpost-contract/answers';

export function DeliveryBody({ delivery }: { readonly delivery: WebhookDelivery }) {
  const { body, deliveryId } = delivery;
  return (
    <details class="more">
      <summary>What was sent</summary>
      <div class="delivery-body">
        <p class="hint">
          Posted as JSON, signed, with <code>webhook-id: {deliveryId}</code>. Of the receiver’s answer the
          status and the time are above; its text is not kept.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
        <pre tabIndex={0}>{JSON.stringify(body, null, 2)}</pre>
      </div>
    </details>
  );
}
