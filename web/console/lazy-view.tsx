/** A view whose script is fetched when it is first opened; one that does not come says so. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** @param fetchView gives the view's component */
export function lazyView<Props extends object>(
  fetchView: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let known: ComponentType<Props> | undefined;
  return function LazyView(props: Props) {
    const [, setLoaded] = useState(known !== undefined);
    const [fault, setFault] = useState(false);
    useEffect(() => {
      if (known !== undefined) return;
      fetchView().then(
        (view) => {
          known = view;
          setLoaded(true);
        },
        () => setFault(true),
      );
    }, []);
    if (known !== undefined) {
      const View = known;
      return <View {...props} />;
    }
    return fault ? (
      <p class="card fault" role="alert">
        Part of this page did not load. Check your connection and any extension that blocks scripts, then
        reload the page.
      </p>
    ) : (
      <p class="soft" role="status">
        Loading…
      </p>
    );
  };
}
