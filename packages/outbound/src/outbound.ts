/** The only way to addresses that callers chose: sources, webhooks, audio URLs and accounts. */
import type { Agent } from 'node:http';
import type { Logger } from 'soundpost-base/logger';
import type { Dispatcher1Wrapper } from 'undici';
import type { parseAllowRules } from './allow-rules.ts';
import type { CallAnswer, CallOptions } from './call.ts';
import {
  type Connect,
  checkedAddresses,
  connectSocket,
  GuardedAgent,
  RESOLVE_AT_CONNECT_MS,
  systemResolver,
} from './connector.ts';
import type { Downloaded, DownloadLimits, DownloadOptions } from './download.ts';
import { OutboundFailed, OutboundRefused } from './errors.ts';
import type { createFetching } from './fetching.ts';
import type { FetchBytesOptions, FetchPiece, PiecesOptions } from './pieces.ts';
import { type Policy, type Purpose, parseTarget } from './policy.ts';
import type { PartsDownloaded, PartsOptions } from './ranges.ts';
import { type PostAnswer, type PostOptions, type PutOptions, post, put } from './send.ts';

interface OutboundOptions {
  /** Rules that open more than public addresses on `ports`; from `parseAllowRules`. */
  readonly allow: Readonly<ReturnType<typeof parseAllowRules>>;
  /** Ports open on every public address, for instance 80, 443, 8080 and 8443. */
  readonly ports: readonly number[];
  readonly logger: Logger;
  readonly userAgent: string;
  /** Defaults for downloads that set no limits of their own. */
  readonly downloadLimits?: Partial<DownloadLimits>;
  /** A forward proxy (http URL) for everything that no rule opens. XMPP accounts do not use it. */
  readonly proxy?: URL | undefined;
  /** Default: DNS. Tests pass a table. */
  readonly resolve?: ReturnType<typeof systemResolver>;
  /** Default: TCP and TLS. Tests pass a recorder, to see what was connected to. */
  readonly connect?: Connect;
}

interface ServiceAgents {
  /** For Node's https client and libraries on it, such as WebSockets. */
  readonly agent: Agent;
  /** For Node's own fetch. */
  readonly dispatcher: Dispatcher1Wrapper;
}

export interface Outbound {
  /**
   * Whether a URL may be requested, by its text and, if resolved within 2 s, its addresses. A name
   * without an answer passes; the request itself checks again.
   * @throws OutboundRefused
   */
  checkUrl(raw: string, purpose: Purpose, signal?: AbortSignal): Promise<void>;

  /** Streams a source to a new file. @throws OutboundRefused, OutboundFailed, file system errors */
  download(options: DownloadOptions): Promise<Downloaded>;

  /** Like `download`, but only the wanted parts if that is faster. @throws also as `choose` */
  downloadParts(options: PartsOptions): Promise<PartsDownloaded>;

  /** Fetches a source of many files, over as many connections as parts have. @throws as `run` */
  fetchPieces<T>(options: PiecesOptions, run: (fetch: FetchPiece) => Promise<T>): Promise<T>;

  /** Reads a small file into memory: one try, 60 s. @throws OutboundRefused, OutboundFailed */
  fetchBytes(options: FetchBytesOptions): Promise<Uint8Array>;

  /** Posts to a webhook; returns any status. @throws OutboundRefused, OutboundFailed */
  post(options: PostOptions): Promise<PostAnswer>;

  /** Calls an account's service; returns any status. @throws OutboundRefused, OutboundFailed */
  call(options: CallOptions): Promise<CallAnswer>;

  /** Puts a file; returns any status. @throws OutboundRefused, OutboundFailed, the body's error */
  put(options: PutOptions): Promise<PostAnswer>;

  /**
   * Checked addresses of an account's server, for protocols other than HTTP. Connect to one of
   * them, not to the name.
   * @param withoutTls asks whether clear text is allowed, which only a rule of `allow` opens
   * @throws OutboundRefused, OutboundFailed (dns)
   */
  serviceAddresses(hostname: string, port: number, withoutTls?: boolean): Promise<readonly string[]>;

  /** For libraries that connect to an account's service themselves: checked; TLS unless opened. */
  service(): Promise<ServiceAgents>;

  /** Aborts what is still running and closes all connections. */
  close(): Promise<void>;
}

const RESOLVE_AT_SUBMISSION_MS = 2_000;
/** Short, because an address that was checked minutes ago no longer counts as checked. */
const KEEP_ALIVE_MS = 4_000;

export function createOutbound(options: OutboundOptions): Outbound {
  const { logger, userAgent } = options;
  const policy: Policy = { allow: options.allow, ports: options.ports };
  const ruleHosts = new Set(options.allow.flatMap(({ host }) => (host === undefined ? [] : [host])));
  const resolve = options.resolve ?? systemResolver(ruleHosts);
  const connect = options.connect ?? (options.proxy === undefined ? connectSocket : through(options.proxy));
  const connectorFor = (purpose: Purpose) => ({ policy, purpose, resolve, connect });
  const agentsFor = (purpose: Purpose) => ({
    'http:': new GuardedAgent('http:', connectorFor(purpose), KEEP_ALIVE_MS),
    'https:': new GuardedAgent('https:', connectorFor(purpose), KEEP_ALIVE_MS),
  });
  // Separate agents: a connection checked for one purpose is never reused for another.
  const agents = {
    webhook: agentsFor('webhook'),
    service: agentsFor('service'),
    destination: agentsFor('destination'),
  };
  let fetching: Promise<ReturnType<typeof createFetching>> | undefined;
  const loaded = (): Promise<ReturnType<typeof createFetching>> => {
    fetching ??= import('./fetching.ts').then(({ createFetching }) =>
      createFetching({ policy, userAgent, keepAliveMs: KEEP_ALIVE_MS, connectorFor }),
    );
    return fetching;
  };

  const logged = refusalLog(logger);
  const limited = <T extends { readonly limits?: Partial<DownloadLimits> }>(request: T): T => ({
    ...request,
    limits: { ...options.downloadLimits, ...request.limits },
  });

  return {
    checkUrl: (raw, purpose, signal) =>
      logged(purpose, raw, async () => {
        const target = parseTarget(raw, purpose, policy);
        try {
          await checkedAddresses(target, policy, resolve, RESOLVE_AT_SUBMISSION_MS, signal);
        } catch (error) {
          signal?.throwIfAborted();
          if (!(error instanceof OutboundFailed)) throw error;
        }
      }),
    download: (request) =>
      logged('source', request.url, async () => (await loaded()).download(limited(request))),
    downloadParts: (request) =>
      logged('source', request.url, async () => (await loaded()).downloadParts(limited(request))),
    fetchPieces: async (request, run) =>
      (await loaded()).fetchPieces(limited(request), (fetch) =>
        run((piece, take) => logged('source', piece.url, () => fetch(piece, take))),
      ),
    fetchBytes: (request) => logged('source', request.url, async () => (await loaded()).fetchBytes(request)),
    post: (request) =>
      logged('webhook', request.url, () => post({ agents: agents.webhook, policy, userAgent }, request)),
    call: (request) => logged('service', request.url, async () => (await loaded()).call(request)),
    put: (request) => {
      const route = { agents: agents[request.purpose], policy, userAgent };
      return logged(request.purpose, request.url, () => put(route, request));
    },
    serviceAddresses: (hostname, port, withoutTls = false) => {
      const host = hostname.includes(':') ? `[${hostname}]` : hostname;
      const url = `${withoutTls ? 'http' : 'https'}://${host}:${port}/`;
      return logged('service', url, async () => {
        const target = parseTarget(url, 'service', policy);
        return checkedAddresses(target, policy, resolve, RESOLVE_AT_CONNECT_MS);
      });
    },
    service: async () => ({ agent: agents.service['https:'], dispatcher: (await loaded()).dispatcher }),
    close: async () => {
      for (const agent of Object.values(agents).flatMap((both) => Object.values(both))) agent.destroy();
      await (await fetching)?.close();
    },
  };
}

/** Logs the exact reason of every refusal, which remote callers do not see. */
function refusalLog(logger: Logger) {
  return async <T>(purpose: Purpose, url: string, run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      const reason = error instanceof OutboundRefused ? error.reason : undefined;
      if (reason !== undefined)
        logger.warn({ purpose, host: hostForLog(url), reason }, 'outbound request refused');
      throw error;
    }
  };
}

function through(proxy: URL): Connect {
  return async (target) => (await import('./proxy.ts')).connectThrough(proxy, target);
}

/** Host and port only: paths and queries of others' URLs may have secrets. */
function hostForLog(url: string): string {
  return URL.parse(url)?.host ?? '(unreadable)';
}
