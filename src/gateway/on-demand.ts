/** A transport whose code and packages are loaded with the first instance on its network. */

import type { Transport, TransportReports } from 'soundpost-chat/transport';
import type { TransportKind } from 'soundpost-contract/gateway-instances';

export function onDemand(kind: TransportKind, load: () => Promise<Transport>): Transport {
  let reports: TransportReports | undefined;
  let loading: Promise<Transport> | undefined;
  const begin = async (): Promise<Transport> => {
    if (reports === undefined) {
      throw new Error(`the ${kind} transport was not started`);
    }
    const transport = await load();
    await transport.start(reports);
    return transport;
  };
  const loaded = (): Promise<Transport> => {
    loading ??= begin().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
  return {
    kind,
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    missing: async () => (await loaded()).missing?.(),
    open: async (opening) => (await loaded()).open(opening),
    remove: async (instance) => (await loaded()).remove(instance),
    close: async () => (await loading)?.close(),
  };
}
