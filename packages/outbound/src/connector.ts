/**
 * The one place that resolves names and opens connections, except to the operator's proxy
 * (proxy.ts). It runs for every new connection, also to address literals (which skip a `lookup`
 * hook), and connects to checked addresses only. A name that changes its answer after the check
 * therefore gains nothing.
 */
import { promises as dns, type LookupAddress } from 'node:dns';
import type { ClientRequestArgs } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { within } from 'soundpost-base/deadline';
import { Agent } from 'soundpost-base/node-http';
import type { buildConnector } from 'undici';
import { parseAddress } from './address-table.ts';
import { OutboundFailed, OutboundRefused } from './errors.ts';
import { addressRefusal, isOpenedByRule, type Policy, type Purpose, parseTarget } from './policy.ts';

export interface ConnectTarget {
  readonly protocol: 'http:' | 'https:';
  /** The URL's host: the name that the certificate must have. */
  readonly hostname: string;
  readonly port: number;
  /** All checked; the connection goes to one of them. */
  readonly addresses: readonly string[];
  /** All are allowed by a rule of the operator, rather than for being public. */
  readonly isOpened: boolean;
  readonly timeoutMs: number;
}

/** Opens the connection, with TLS for `https:`. */
export type Connect = (target: ConnectTarget) => Promise<Socket>;

interface ConnectorOptions {
  readonly policy: Policy;
  readonly purpose: Purpose;
  readonly resolve: Resolve;
  readonly connect: Connect;
}

export const RESOLVE_AT_CONNECT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** If the first ones are silent, more would exceed the connect timeout. */
const MAX_ADDRESSES_TRIED = 4;
/** Node's default of 250 ms before the next address is too short for distant servers. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * All addresses of the target. One refused address refuses the name: its owner controls the order.
 * @throws OutboundRefused, OutboundFailed (dns)
 */
export async function checkedAddresses(
  target: ReturnType<typeof parseTarget>,
  policy: Policy,
  resolve: Resolve,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const { hostname } = target;
  const literal = parseAddress(hostname) !== undefined;
  const addresses = literal ? [hostname] : await resolveWithin(resolve, hostname, deadlineMs, signal);
  for (const address of addresses) {
    const reason = addressRefusal(target, address, policy);
    if (reason !== undefined) throw new OutboundRefused(literal ? reason : `${hostname}: ${reason}`);
  }
  return addresses;
}

/** A connector for an undici Agent. */
export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  return ({ protocol, host, hostname, port }, callback) => {
    const authority = host ?? `${hostname}:${port}`;
    open(options, `${protocol}//${authority}/`).then(
      (socket) => callback(null, socket),
      (error) => callback(error, null),
    );
  };
}

/** For Node's client, which skips 1xx answers (RFC 9110, 15.2); undici rejects a stray 100. */
export class GuardedAgent extends Agent {
  readonly #protocol: 'http:' | 'https:';
  readonly #connector: ConnectorOptions;

  constructor(protocol: 'http:' | 'https:', connector: ConnectorOptions, keepAliveMs: number) {
    super({ keepAlive: true, timeout: keepAliveMs });
    // Node's client checks the agent by this property, which its types lack.
    Object.assign(this, { protocol });
    this.#protocol = protocol;
    this.#connector = connector;
  }

  override createConnection(
    { host, port }: ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const name = host?.includes(':') ? `[${host}]` : host;
    open(this.#connector, `${this.#protocol}//${name}:${port}/`).then(
      (socket) => callback?.(null, socket),
      // Node reads no socket if there is an error.
      (error) => callback?.(error, new Socket()),
    );
  }
}

async function open(
  { policy, purpose, resolve, connect }: ConnectorOptions,
  origin: string,
): Promise<Socket> {
  const target = parseTarget(origin, purpose, policy);
  const addresses = await checkedAddresses(target, policy, resolve, RESOLVE_AT_CONNECT_MS);
  const isOpened = addresses.every((address) => isOpenedByRule(target, address, policy));
  return connect({
    isOpened,
    protocol: target.url.protocol === 'https:' ? 'https:' : 'http:',
    hostname: target.hostname,
    port: target.port,
    addresses: addresses.slice(0, MAX_ADDRESSES_TRIED),
    timeoutMs: CONNECT_TIMEOUT_MS,
  });
}

/**
 * A TCP socket for libraries of protocols other than HTTP, which call `connect({ host, port })`. It
 * asks for checked addresses before each connection, and connects to one of them.
 */
export class ServiceSocket extends Socket {
  readonly #addressesOf: (hostname: string, port: number) => Promise<readonly string[]>;

  /** @param addressesOf returns checked addresses only, or rejects, which destroys the socket */
  constructor(addressesOf: (hostname: string, port: number) => Promise<readonly string[]>) {
    super();
    this.#addressesOf = addressesOf;
  }

  override connect(target: unknown): this {
    const { host, port } = target as { readonly host: string; readonly port: number };
    const connectTo = (addresses: readonly string[]): void => {
      if (this.destroyed) return;
      const answers = addresses.slice(0, MAX_ADDRESSES_TRIED).map(asLookedUp);
      super.connect({
        // Node calls `lookup` only for names, so a literal is replaced by one too.
        host: 'checked.invalid',
        port,
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
        lookup: (_name, _options, callback) => callback(null, answers),
      });
    };
    this.#addressesOf(host.replace(/^\[|\]$/g, ''), port)
      .then(connectTo)
      .catch((error: Error) => this.destroy(error));
    return this;
  }
}

function asLookedUp(address: string): LookupAddress {
  return { address, family: address.includes(':') ? 6 : 4 };
}

/** Connects over TCP to the first address that answers. */
export async function connectSocket({
  protocol,
  hostname,
  port,
  addresses,
  timeoutMs,
}: ConnectTarget): Promise<Socket> {
  const [first = '', ...others] = addresses;
  const answers = addresses.map(asLookedUp);
  // Loaded with the first connection, so that a process without one does not load it.
  const { buildConnector } = await import('undici');
  const connector = buildConnector({
    allowH2: false,
    timeout: timeoutMs,
    maxCachedSessions: 0,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    lookup: (_name, _options, callback) => callback(null, answers),
  });
  const servername = parseAddress(hostname) === undefined ? hostname : undefined;
  return new Promise((resolve, reject) => {
    connector(
      { protocol, hostname: others.length === 0 ? first : hostname, port: String(port), servername },
      (error, socket) => {
        if (error !== null) return reject(error);
        const remote = parseAddress(socket.remoteAddress ?? '')?.toNormalizedString();
        if (addresses.some((address) => parseAddress(address)?.toNormalizedString() === remote))
          return resolve(socket);
        socket.destroy();
        reject(new OutboundRefused(`connected to ${remote}, which was not checked`));
      },
    );
  });
}

/** All addresses of a name. `signal` aborts at the deadline. */
type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** DNS codes that mean that the name has no address; other failures may be temporary. */
const noSuchName = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * Queries DNS directly, without hosts file and local name services: a silent name server then
 * blocks nobody, unlike with `dns.lookup`, which Node runs two at a time. Only names in the
 * operator's rules use `lookup`, since they may be in a hosts file.
 * @param servers addresses of name servers, each with an optional port; default: the system's
 */
export function systemResolver(ruleHosts: ReadonlySet<string>, servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    if (ruleHosts.has(hostname))
      return (await dns.lookup(hostname, { all: true })).map(({ address }) => address);
    // Both tries (1 s, then 2 s) fit the deadline at connect, even if a server drops AAAA queries.
    const resolver = new dns.Resolver({ timeout: 1_000, tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel);
    try {
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const addresses = [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      if (addresses.length > 0) return addresses;
      throw firstReason([v4, v6]);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** Prefers a temporary reason: a name is gone only if both queries say so. */
function firstReason(answers: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  return reasons.find((reason) => !noSuchName.has(reason?.code)) ?? reasons[0];
}

/**
 * @throws OutboundFailed (`dns`), retryable unless there is no such name; an abort during the
 * lookup is its cause, an earlier one is thrown as it is
 */
export async function resolveWithin(
  resolve: Resolve,
  hostname: string,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  signal?.throwIfAborted();
  const reason = () => new Error('no answer in time');
  try {
    const ask = (giveUp: AbortSignal) => resolve(hostname, giveUp);
    const addresses = await within(deadlineMs, ask, { signal, reason });
    if (addresses.length === 0) throw Object.assign(new Error('empty answer'), { code: 'ENODATA' });
    return addresses;
  } catch (cause) {
    const gone = cause instanceof Error && 'code' in cause && noSuchName.has(String(cause.code));
    throw new OutboundFailed('dns', 'the server could not be reached', !gone, { cause });
  }
}
