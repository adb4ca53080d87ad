import { ViewHead } from '../ui.tsx';

export function Webhooks() {
  return (
    <section id="view-webhooks" class="view" aria-labelledby="webhooks-title">
      <ViewHead id="webhooks" title="Webhooks" />
    </section>
  );
}
