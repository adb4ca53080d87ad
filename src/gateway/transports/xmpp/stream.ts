/**
 * The account's connection: kept up for as long as it is wanted, resumed where the server remembers it (XEP-0198), and
 * the place where a stanza is known to have reached the server.
 */
import { EventEmitter, once } from 'node:events';
import { GatewayError } from '../../../contract/gateway-errors.ts';
import type { ConnectionState } from '../../../contract/gateway-instances.ts';
import type { Logger } from '../../../logger.ts';
import { type Element, xml } from './element.ts';
import { endpointsOf } from './endpoints.ts';
import {
  ConnectionRefused,
  createGuardedClient,
  type GuardedClient,
  type GuardedClientOptions,
} from './guarded-client.ts';
import { ns } from './namespaces.ts';

export interface StreamOptions extends GuardedClientOptions {
  readonly service: string | undefined;
  readonly logger: Logger;
}

export interface StreamListener {
  /** A new session: what the account needs before it may be used. The stream counts as open when this resolves. */
  prepare(): Promise<void>;
  /** Open, after `prepare` or after a resumption, which needs none. */
  opened(): void;
  stateChanged(state: ConnectionState, reason?: string): void;
  /** Messages and presences, in their order. */
  stanza(stanza: Element): void;
  /** A query of another entity; undefined answers that there is no such thing. */
  query(query: IncomingQuery): Element | true | undefined;
}

export interface IncomingQuery {
  readonly type: 'get' | 'set';
  readonly from: string | undefined;
  readonly child: Element;
}

/** The session ended before the server had said that it has the stanza: it may have it or not. */
export class StanzaInDoubt extends Error {}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 60_000;
/** From connecting to being online; a login by SCRAM alone may take a second. */
const ONLINE_TIMEOUT_MS = 20_000;
const QUERY_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 1_000;
/** A connection on which the server stays silent for longer is given up. */
const SILENCE_MS = 20_000;

/** What the types do not say of the library's stream management: it is an emitter since 0.14. */
type StreamManagement = EventEmitter & {
  enabled: boolean;
  requestAckDebounce: number;
  timeout: number;
};

interface Wait {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class Stream {
  readonly #options: StreamOptions;
  readonly #listener: StreamListener;
  readonly #events = new EventEmitter();
  #guarded: GuardedClient | undefined;
  #state: ConnectionState = 'close';
  #retry: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
  #onlineTimer: NodeJS.Timeout | undefined;
  /** Counts the sessions: what belongs to an earlier one has no say any more. */
  #session = 0;
  #managementOffered = false;
  readonly #waits = new WeakMap<Element, Wait>();

  constructor(options: StreamOptions, listener: StreamListener) {
    this.#options = options;
    this.#listener = listener;
    this.#events.setMaxListeners(0);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Begins to connect; does nothing while connected or connecting. */
  start(): void {
    if (this.#guarded !== undefined) {
      return;
    }
    const guarded = createGuardedClient(this.#options);
    this.#guarded = guarded;
    this.#retryMs = FIRST_RETRY_MS;
    this.#listen(guarded);
    this.#setState('connecting');
    void this.#attempt(guarded);
  }

  /** Leaves the network. */
  async stop(reason?: string): Promise<void> {
    const guarded = this.#guarded;
    this.#guarded = undefined;
    clearTimeout(this.#retry);
    clearTimeout(this.#onlineTimer);
    this.#retry = undefined;
    this.#session++;
    this.#setState('close', reason);
    if (guarded !== undefined) {
      guarded.client.timeout = STOP_TIMEOUT_MS;
      await guarded.client.stop().catch(() => undefined);
    }
  }

  /** @throws the library's StanzaError for an answer that is an error; GatewayError not_connected */
  async query(
    type: 'get' | 'set',
    child: Element,
    { to, timeoutMs = QUERY_TIMEOUT_MS }: { to?: string; timeoutMs?: number } = {},
  ): Promise<Element> {
    const { client } = this.#online();
    return client.iqCaller.request(
      xml('iq', { type, ...(to === undefined ? {} : { to }) }, child),
      timeoutMs,
    );
  }

  /** Hands a stanza to the connection, for what may get lost. */
  async send(stanza: Element): Promise<void> {
    await this.#online().client.send(stanza);
  }

  /**
   * Resolves when the server has the stanza. The same element may be handed in again after a failure.
   * @throws StanzaInDoubt; GatewayError not_connected; the reason of `signal`
   */
  async deliver(stanza: Element, signal: AbortSignal): Promise<void> {
    const { client } = this.#online();
    const managed = management(client).enabled;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#waits.set(stanza, { resolve, reject });
    try {
      signal.throwIfAborted();
      await client.send(stanza).catch((cause: unknown) => {
        throw new StanzaInDoubt('the connection broke', { cause });
      });
      // A server works off what one client sends in its order, so an answer to anything later is an acknowledgement.
      await (managed ? promise : Promise.race([promise, this.#ping()]));
    } finally {
      signal.removeEventListener('abort', abort);
      this.#waits.delete(stanza);
      promise.catch(() => undefined);
    }
  }

  /** @throws the reason of `signal`; GatewayError not_connected when nobody connects any more */
  async untilOpen(signal: AbortSignal): Promise<void> {
    while (this.#state !== 'open') {
      if (this.#state === 'close') {
        throw notConnected();
      }
      await once(this.#events, 'state', { signal }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    }
  }

  #online(): GuardedClient {
    if (this.#guarded?.client.status !== 'online') {
      throw notConnected();
    }
    return this.#guarded;
  }

  async #ping(): Promise<void> {
    try {
      await this.query('get', xml('ping', { xmlns: ns.ping }), { to: this.#options.domain });
    } catch (cause) {
      // A refusal is an answer too.
      if (!(cause instanceof Error && cause.name === 'StanzaError')) {
        throw new StanzaInDoubt('the connection broke', { cause });
      }
    }
  }

  #listen(guarded: GuardedClient): void {
    const { client } = guarded;
    const sm = management(client);
    // A caller waits for each acknowledgement, so it is asked for at once.
    sm.requestAckDebounce = 0;
    sm.timeout = SILENCE_MS;
    client.on('error', (error) => this.#failed(guarded, error));
    client.on('nonza', (nonza) => this.#noticeManagement(nonza));
    client.on('stanza', (stanza) => {
      if (stanza.name !== 'iq') {
        this.#listener.stanza(stanza);
      }
    });
    client.on('online', () => void this.#begin(guarded));
    client.on('disconnect', () => this.#lost(guarded));
    sm.on('ack', (stanza: Element) => this.#waits.get(stanza)?.resolve());
    sm.on('fail', (stanza: Element) =>
      this.#waits.get(stanza)?.reject(new StanzaInDoubt('the session ended')),
    );
    // The library calls itself online only after it has told of the resumption.
    sm.on('resumed', () => setImmediate(() => this.#open(guarded)));
    client.middleware.use(async (context, next) => {
      const { stanza } = context;
      const child = stanza.getChildElements()[0];
      const { type } = stanza.attrs;
      if (stanza.name !== 'iq' || child === undefined || (type !== 'get' && type !== 'set')) {
        return next();
      }
      return this.#listener.query({ type, from: stanza.attrs.from, child }) ?? next();
    });
  }

  #noticeManagement(nonza: Element): void {
    if (nonza.is('features', 'http://etherx.jabber.org/streams')) {
      this.#managementOffered = nonza.getChild('sm', ns.streamManagement) !== undefined;
    } else if (nonza.is('enabled', ns.streamManagement) || nonza.is('failed', ns.streamManagement)) {
      // The library takes note of it a few turns later.
      setImmediate(() => this.#events.emit('management'));
    }
  }

  async #attempt(guarded: GuardedClient): Promise<void> {
    let reason: unknown;
    try {
      for (const endpoint of await endpointsOf(this.#options.domain, this.#options.service)) {
        try {
          await guarded.open(endpoint);
          this.#expectOnline(guarded);
          return;
        } catch (error) {
          reason = error;
        }
      }
    } catch (error) {
      reason = error;
    }
    this.#options.logger.info({ err: reason }, 'the XMPP server could not be connected to');
    this.#lost(guarded);
  }

  /** Not for a server that takes the connection and then says nothing, nor for one that nobody wants any more. */
  #expectOnline(guarded: GuardedClient): void {
    if (this.#guarded !== guarded) {
      cut(guarded);
      return;
    }
    clearTimeout(this.#onlineTimer);
    this.#onlineTimer = setTimeout(() => {
      if (this.#guarded === guarded && this.#state !== 'open') {
        cut(guarded);
      }
    }, ONLINE_TIMEOUT_MS);
    this.#onlineTimer.unref();
  }

  /** A new session, as opposed to a resumed one. */
  async #begin(guarded: GuardedClient): Promise<void> {
    const session = ++this.#session;
    try {
      // The library answers wrongly to what arrives between "online" and <enabled/>, and the server then ends the stream.
      if (this.#managementOffered && !management(guarded.client).enabled) {
        await Promise.race([this.#once('management'), this.#once('lost')]);
      }
      if (this.#guarded === guarded) {
        await this.#listener.prepare();
      }
      if (session === this.#session) {
        this.#open(guarded);
      }
    } catch (error) {
      if (session === this.#session) {
        this.#options.logger.warn({ err: error }, 'the XMPP session could not be prepared');
        cut(guarded);
      }
    }
  }

  #once(event: 'management' | 'lost'): Promise<void> {
    return new Promise((resolve) => this.#events.once(event, () => resolve()));
  }

  #open(guarded: GuardedClient): void {
    if (this.#guarded === guarded) {
      this.#retryMs = FIRST_RETRY_MS;
      this.#setState('open');
      this.#listener.opened();
    }
  }

  #failed(guarded: GuardedClient, error: Error): void {
    const refusal = finalRefusal(error);
    if (refusal !== undefined && this.#guarded === guarded) {
      this.#options.logger.warn({ err: error }, 'the XMPP server will not be tried again');
      void this.stop(refusal);
      return;
    }
    this.#options.logger.info({ err: error }, 'XMPP connection trouble');
    if (this.#state !== 'open') {
      cut(guarded);
    }
  }

  #lost(guarded: GuardedClient): void {
    this.#events.emit('lost');
    if (this.#guarded !== guarded) {
      return;
    }
    this.#setState('connecting');
    if (this.#retry !== undefined) {
      return;
    }
    // Many instances lose one server at the same moment, and shall not come back at the same moment.
    const waitMs = this.#retryMs * (0.5 + Math.random() / 2);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#attempt(guarded);
    }, waitMs);
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }

  #setState(state: ConnectionState, reason?: string): void {
    if (this.#state === state) {
      return;
    }
    this.#state = state;
    this.#events.emit('state');
    this.#listener.stateChanged(state, reason);
  }
}

function management(client: GuardedClient['client']): StreamManagement {
  return client.streamManagement as unknown as StreamManagement;
}

/**
 * Ends the connection at once. The library's own way waits for the server, and if the next connection has begun by
 * then it closes that one.
 */
function cut({ client }: GuardedClient): void {
  const socket = client.socket as (Partial<Cuttable> & { socket?: Cuttable | null }) | null;
  // The library's TLS socket holds Node's.
  (socket?.socket ?? socket)?.destroy?.();
}

interface Cuttable {
  destroy(): void;
}

function notConnected(): GatewayError {
  return new GatewayError('not_connected', 'the instance is not connected to its network');
}

/** Failures of a login that pass by themselves (RFC 6120 §6.5). */
const passing = new Set(['temporary-auth-failure', 'aborted']);

/** @returns what to tell of a failure that only the operator can mend */
function finalRefusal(error: Error): string | undefined {
  if (error instanceof ConnectionRefused) {
    return error.message;
  }
  const condition = error.name === 'SASLError' && 'condition' in error ? String(error.condition) : undefined;
  return condition === undefined || passing.has(condition)
    ? undefined
    : `the server refused the login (${condition})`;
}
