/** The first view: sources, what is to be made of them, and off they go. */
import { ViewHead } from '../../ui.tsx';

export function NewJob(_: { readonly isShown: boolean }) {
  return (
    <section id="view-new" class="view" aria-labelledby="new-title">
      <ViewHead id="new" title="New extraction" />
    </section>
  );
}

export function forgetNewJob(): void {}
