/** A value that outlives the components that show it. */
import { useLayoutEffect, useState } from 'preact/hooks';

export interface Store<State> {
  get(): State;
  set(change: (state: State) => State): void;
  /** @returns ends it */
  listen(listener: () => void): () => void;
}

export function createStore<State extends object>(initial: State): Store<State> {
  let state = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => state,
    set(change) {
      state = change(state);
      for (const listener of [...listeners]) listener();
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<State extends object>(store: Store<State>): State {
  const [state, setState] = useState(store.get);
  useLayoutEffect(() => {
    const show = (): void => setState(store.get());
    show();
    return store.listen(show);
  }, [store]);
  return state;
}
