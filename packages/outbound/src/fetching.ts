/** undici's agents and what uses them, loaded with the first fetch. */
import { Agent, Dispatcher1Wrapper } from 'undici';
import { type CallOptions, call } from './call.ts';
import { guardedConnector } from './connector.ts';
import { type DownloadOptions, download } from './download.ts';
import type { Route } from './exchange.ts';
import type { FetchBytesOptions, FetchPiece, PiecesOptions } from './pieces.ts';
import type { Policy } from './policy.ts';
import type { PartsOptions } from './ranges.ts';

/** Connections to one source while its parts are fetched. */
const MAX_PART_CONNECTIONS = 16;

type FetchPurpose = 'source' | 'service';

interface FetchingOptions {
  readonly policy: Policy;
  readonly userAgent: string;
  readonly keepAliveMs: number;
  readonly connectorFor: (purpose: FetchPurpose) => Parameters<typeof guardedConnector>[0];
}

/** Its methods are as {@link Outbound} describes them. */
export function createFetching({ policy, userAgent, keepAliveMs, connectorFor }: FetchingOptions) {
  const agentFor = (purpose: FetchPurpose, connections: number | null = null) =>
    new Agent({
      connections,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      connect: guardedConnector(connectorFor(purpose)),
    });
  // Separate agents: a connection checked for one purpose is never reused for another.
  const agents = { source: agentFor('source'), service: agentFor('service') };
  const route = (purpose: FetchPurpose): Route => ({ dispatcher: agents[purpose], policy, userAgent });
  /** Each source has its own connections until its work ends, so none waits for another. */
  const partAgents = new Set<Agent>();
  const onConnectionsOfItsOwn = async <T>(run: (route: Route) => Promise<T>): Promise<T> => {
    const dispatcher = agentFor('source', MAX_PART_CONNECTIONS);
    partAgents.add(dispatcher);
    try {
      return await run({ dispatcher, policy, userAgent });
    } finally {
      partAgents.delete(dispatcher);
      await dispatcher.destroy();
    }
  };
  return {
    download: (options: DownloadOptions) => download(route('source'), options),
    downloadParts: async (options: PartsOptions) => {
      const { downloadParts } = await import('./ranges.ts');
      return onConnectionsOfItsOwn((route) => downloadParts(route, options));
    },
    fetchPieces: async <T>(options: PiecesOptions, run: (fetch: FetchPiece) => Promise<T>) => {
      const { fetchPieces } = await import('./pieces.ts');
      return onConnectionsOfItsOwn((route) => fetchPieces(route, options, run));
    },
    fetchBytes: async (options: FetchBytesOptions) => {
      const { fetchBytes } = await import('./pieces.ts');
      return fetchBytes(route('source'), options);
    },
    call: (options: CallOptions) => call(route('service'), options),
    /** To an account's service, for Node's own fetch. */
    dispatcher: new Dispatcher1Wrapper(agents.service),
    close: async () => {
      await Promise.all([...Object.values(agents), ...partAgents].map((agent) => agent.destroy()));
    },
  };
}
