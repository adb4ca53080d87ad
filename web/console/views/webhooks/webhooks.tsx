/** Where webhooks go: all endpoints, or one with what was sent to it. Which one stands in the address. */
import { ViewHead } from '../../ui.tsx';
import { EndpointDetails } from './endpoint.tsx';
import { Endpoints } from './endpoints.tsx';
import { Receiver } from './receiver.tsx';
import { Resend } from './resend.tsx';
import { WebhookSecret } from './webhook-secret.tsx';

export function Webhooks({ query }: { readonly query: URLSearchParams }) {
  const endpoint = query.get('endpoint');
  return (
    <section id="view-webhooks" class="view" aria-labelledby="webhooks-title">
      <ViewHead id="webhooks" title="Webhooks">
        <p class="soft">Inspect endpoints and deliveries, resend failures, test an endpoint.</p>
      </ViewHead>
      {endpoint === null ? (
        <Endpoints query={query}>
          <div class="cards">
            <Receiver />
            <WebhookSecret />
            <Resend />
          </div>
        </Endpoints>
      ) : (
        <EndpointDetails endpoint={endpoint} query={query} />
      )}
    </section>
  );
}
