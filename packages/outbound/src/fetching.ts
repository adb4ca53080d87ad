/** What goes by undici, which is loaded with it: an API that only checks addresses and posts webhooks never needs that. */
import { Agent, Dispatcher1Wrapper } from 'undici';
import { guardedConnector } from './connector.ts';
import { type Downloaded, type DownloadOptions, download } from './download.ts';
import type { Route } from './exchange.ts';
import type { FetchBytesOptions } from './fetch-bytes.ts';
import type { FetchPiece, PiecesOptions } from './pieces.ts';
import type { Policy } from './policy.ts';
import type { PartsDownloaded, PartsOptions } from './ranges.ts';

/** To one source at the same time, when parts of it are fetched. */
const MAX_PART_CONNECTIONS = 16;

type FetchPurpose = 'source' | 'service';

interface FetchingOptions {
  readonly policy: Policy;
  readonly userAgent: string;
  readonly keepAliveMs: number;
  readonly connectorFor: (purpose: FetchPurpose) => Parameters<typeof guardedConnector>[0];
}

/** As {@link Outbound} describes them. */
interface Fetching {
  download(options: DownloadOptions): Promise<Downloaded>;
  downloadParts(options: PartsOptions): Promise<PartsDownloaded>;
  fetchPieces<T>(options: PiecesOptions, run: (fetch: FetchPiece) => Promise<T>): Promise<T>;
  fetchBytes(options: FetchBytesOptions): Promise<Uint8Array>;
  /** Of an account's service, for Node's own fetch. */
  readonly dispatcher: Dispatcher1Wrapper;
  close(): Promise<void>;
}

export function createFetching({ policy, userAgent, keepAliveMs, connectorFor }: FetchingOptions): Fetching {
  const agentFor = (purpose: FetchPurpose, connections: number | null = null) =>
    new Agent({
      connections,
      allowH2: false,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      connect: guardedConnector(connectorFor(purpose)),
    });
  // One each: a connection that was checked for one purpose is never reused for another.
  const agents = { source: agentFor('source'), service: agentFor('service') };
  const route = (purpose: FetchPurpose): Route => ({ dispatcher: agents[purpose], policy, userAgent });
  /** Each source has its own connections, which end with the work: one cannot keep another waiting. */
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
    download: (options) => download(route('source'), options),
    downloadParts: async (options) => {
      const { downloadParts } = await import('./ranges.ts');
      return onConnectionsOfItsOwn((route) => downloadParts(route, options));
    },
    fetchPieces: async (options, run) => {
      const { fetchPieces } = await import('./pieces.ts');
      return onConnectionsOfItsOwn((route) => fetchPieces(route, options, run));
    },
    fetchBytes: async (options) => {
      const { fetchBytes } = await import('./fetch-bytes.ts');
      return fetchBytes(route('source'), options);
    },
    dispatcher: new Dispatcher1Wrapper(agents.service),
    close: async () => {
      await Promise.all([...Object.values(agents), ...partAgents].map((agent) => agent.destroy()));
    },
  };
}
