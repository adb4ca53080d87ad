import { ViewHead } from '../../ui.tsx';

export function Instances() {
  return (
    <section id="view-instances" class="view" aria-labelledby="instances-title">
      <ViewHead id="instances" title="Instances" />
    </section>
  );
}
