/** What a notification said, and what is known of the receiver's answer. */
import type { WebhookDelivery } from 'soundpost-contract/answers';

export function DeliveryBody({ delivery }: { readonly delivery: WebhookDelivery }) {
  const { body, deliveryId } = delivery;
  return (
    <details class="more">
      <summary>Show payload</summary>
      <div class="delivery-body">
        <p class="hint">
          Signed JSON with <code>webhook-id: {deliveryId}</code>. Status and time of the response are above;
          its body is not stored.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
        <pre tabIndex={0}>{JSON.stringify(body, null, 2)}</pre>
      </div>
    </details>
  );
}
