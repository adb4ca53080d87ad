/** The instances as they are, the newest first, asked for often while something moves. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type GatewayInstance, gatewayInstances, instanceState, isKeyRefused } from '../../gateway.ts';
import { isAborted, sentence } from '../../session.ts';

const MOVING_MS = 1500;
const RESTING_MS = 10_000;

export interface ShownInstance extends GatewayInstance {
  /** Why it is not connected, where that is known. */
  readonly reason?: string | undefined;
}

/** @param onRefused called when the gateway no longer takes the key */
export function useInstances(onRefused: (reason: string) => void): {
  /** Undefined until they are known. */
  readonly instances: readonly ShownInstance[] | undefined;
  readonly fault: string;
  /** Asks at once. */
  readonly refresh: () => void;
  /** Puts one that was just made on top, before the gateway lists it. */
  readonly add: (instance: ShownInstance) => void;
} {
  const [instances, setInstances] = useState<readonly ShownInstance[]>();
  const [fault, setFault] = useState('');
  const [turn, setTurn] = useState(0);
  const refused = useRef(onRefused);
  refused.current = onRefused;
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function look(): Promise<void> {
      let isMoving = false;
      try {
        const listed = (await gatewayInstances({ signal: ending.signal })).reverse();
        const found = await withReasons(listed, ending.signal);
        if (ending.signal.aborted) return;
        isMoving = found.some(({ status }) => status === 'connecting');
        setInstances((shown) => (JSON.stringify(shown) === JSON.stringify(found) ? shown : found));
        setFault('');
      } catch (error) {
        if (isAborted(error)) return;
        if (isKeyRefused(error)) refused.current(sentence(error));
        else setFault(sentence(error));
      }
      timer = setTimeout(look, isMoving ? MOVING_MS : RESTING_MS);
    }
    void look();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [turn]);
  const refresh = (): void => setTurn((turns) => turns + 1);
  return {
    instances,
    fault,
    refresh,
    add(instance) {
      setInstances((shown = []) => [instance, ...shown.filter(({ name }) => name !== instance.name)]);
      refresh();
    },
  };
}

function withReasons(instances: readonly GatewayInstance[], signal: AbortSignal): Promise<ShownInstance[]> {
  return Promise.all(
    instances.map(async (instance) => {
      if (instance.status === 'open') return instance;
      // One that was deleted meanwhile is gone from the next list.
      const state = await instanceState(instance.name, { signal }).catch((error: unknown) => {
        if (isAborted(error)) throw error;
        return undefined;
      });
      return { ...instance, reason: state?.reason };
    }),
  );
}
