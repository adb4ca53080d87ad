import { ViewHead } from '../ui.tsx';

export function Keys() {
  return (
    <section id="view-keys" class="view" aria-labelledby="keys-title">
      <ViewHead id="keys" title="Keys" />
    </section>
  );
}
