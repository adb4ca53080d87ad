import { ViewHead } from '../ui.tsx';

export function Usage() {
  return (
    <section id="view-usage" class="view" aria-labelledby="usage-title">
      <ViewHead id="usage" title="Usage" />
    </section>
  );
}
