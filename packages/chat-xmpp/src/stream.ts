/**
 * The account's connection: kept open while wanted, resumed if the server remembers it (XEP-0198).
 * It knows when a stanza has reached the server.
 */
import { EventEmitter, once } from 'node:events';
import { type Deadline, deadline, untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Lease } from 'soundpost-chat/lease/lease';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState } from 'soundpost-contract/gateway-instances';
import { Acknowledgements, StanzaInDoubt } from './acknowledgements.ts';
import { type Element, xml } from './element.ts';
import { endpointsOf } from './endpoints.ts';
import { certificateTrouble, createGuardedClient, finalRefusal } from './guarded-client.ts';
import { ns } from './namespaces.ts';

type StreamOptions = Parameters<typeof createGuardedClient>[0] & {
  readonly service: string | undefined;
  readonly lease: Lease;
  readonly logger: Logger;
};

export interface StreamListener {
  /** Prepares a new session. The stream is open once this resolves. */
  prepare(): Promise<void>;
  /** Open, after `prepare` or after a resumption. */
  opened(): void;
  stateChanged(state: ConnectionState, reason?: string): void;
  /** Messages and presences, in order. */
  stanza(stanza: Element): void;
  /** A query of another entity; undefined: not supported. */
  query(query: IncomingQuery): Element | true | undefined;
}

interface IncomingQuery {
  readonly type: 'get' | 'set';
  readonly from: string | undefined;
  readonly child: Element;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 60_000;
/** From connecting to being online; a SCRAM login alone may take a second. */
const ONLINE_TIMEOUT_MS = 20_000;
const QUERY_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 1_000;

/** States of the library's client while it has a connection or makes one. */
const CONNECTED: ReadonlySet<string> = new Set(['connecting', 'connect', 'opening', 'open', 'online']);

/** A connection and its acknowledgements. */
type Line = ReturnType<typeof createGuardedClient> & {
  readonly acknowledgements: Acknowledgements;
};

export class Stream {
  readonly #options: StreamOptions;
  readonly #listener: StreamListener;
  readonly #events = new EventEmitter();
  #line: Line | undefined;
  #state: ConnectionState = 'close';
  #retry: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
  #opening: Deadline | undefined;
  #isAttempting = false;
  /** The certificate is not trusted: until it changes, the account is `close`, not `connecting`. */
  #isUntrusted = false;
  /** Of the attempts in this state. */
  #explained: string | undefined;
  /** Counts the sessions; events of an earlier one are ignored. */
  #session = 0;

  constructor(options: StreamOptions, listener: StreamListener) {
    this.#options = options;
    this.#listener = listener;
    this.#events.setMaxListeners(0);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Starts connecting; does nothing while connected or connecting. */
  start(): void {
    if (this.#line !== undefined) {
      if (this.#retry !== undefined && this.#state === 'close') {
        clearTimeout(this.#retry);
        this.#tryAgain(this.#line);
      }
      return;
    }
    const guarded = createGuardedClient(this.#options);
    const acknowledgements = new Acknowledgements(guarded.client, () => this.#open(line));
    const line: Line = { ...guarded, acknowledgements };
    this.#line = line;
    this.#retryMs = FIRST_RETRY_MS;
    this.#isUntrusted = false;
    this.#listen(line);
    this.#setState('connecting');
    void this.#attempt(line);
  }

  /** Disconnects. */
  async stop(reason?: string): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    clearTimeout(this.#retry);
    this.#opening?.[Symbol.dispose]();
    this.#retry = undefined;
    this.#session++;
    this.#setState('close', reason);
    if (line !== undefined) {
      line.client.timeout = STOP_TIMEOUT_MS;
      await line.client.stop().catch(() => undefined);
    }
  }

  /** @throws the library's StanzaError for an error answer; GatewayError not_connected */
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

  /** Sends a stanza without waiting for an acknowledgement; it may get lost. */
  async send(stanza: Element): Promise<void> {
    await this.#online().client.send(stanza);
  }

  /**
   * Resolves when the server has the stanza. After a failure the same element may be passed again.
   * @throws StanzaInDoubt; GatewayError not_connected; the reason of `signal`
   */
  async deliver(stanza: Element, signal: AbortSignal): Promise<void> {
    const line = this.#online();
    const { client, acknowledgements } = line;
    signal.throwIfAborted();
    const acknowledged = acknowledgements.of(stanza);
    const { isOn } = acknowledgements;
    await client.send(stanza).catch((cause: unknown) => {
      line.cut();
      throw new StanzaInDoubt('the connection broke', { cause });
    });
    // A server handles a client's stanzas in order, so any later answer acknowledges this one too.
    await untilAborted(isOn ? acknowledged : this.#answer(), signal);
  }

  /** @throws the reason of `signal`; GatewayError not_connected if the stream is closed */
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

  /** Everything sent goes through here. Throws standby if another process has the lease. */
  #online(): Line {
    this.#options.lease.assert();
    if (this.#line?.client.status !== 'online') {
      throw notConnected();
    }
    return this.#line;
  }

  /** Resolves at the server's next answer; rejects if the connection breaks first. */
  async #answer(): Promise<void> {
    const lost = new AbortController();
    const onLost = (): void => lost.abort(new StanzaInDoubt('the connection broke'));
    this.#events.once('lost', onLost);
    try {
      const asked = this.query('get', xml('ping', { xmlns: ns.ping }), { to: this.#options.domain });
      await untilAborted(asked, lost.signal);
    } catch (cause) {
      // A refusal is an answer too.
      if (!(cause instanceof Error && cause.name === 'StanzaError')) {
        throw new StanzaInDoubt('the connection broke', { cause });
      }
    } finally {
      this.#events.off('lost', onLost);
    }
  }

  #listen(line: Line): void {
    const { client } = line;
    client.on('error', (error) => this.#failed(line, error));
    client.on('stanza', (stanza) => {
      if (stanza.name !== 'iq') {
        this.#listener.stanza(stanza);
      }
    });
    client.on('online', () => void this.#begin(line));
    client.on('disconnect', () => this.#lost(line));
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

  async #attempt(line: Line): Promise<void> {
    this.#isAttempting = true;
    const failure = await this.#tryEndpoints(line);
    this.#isAttempting = false;
    if (this.#line !== line) {
      // It was stopped during the attempt.
      line.cut();
    } else if (failure !== undefined) {
      this.#failed(line, failure);
      this.#lost(line);
    }
  }

  /** @returns why no endpoint could be connected; undefined if one was */
  async #tryEndpoints(line: Line): Promise<unknown> {
    const { domain, service, lease } = this.#options;
    let failure: unknown = new Error('the domain names no server');
    try {
      for (const endpoint of await endpointsOf(domain, service)) {
        lease.assert();
        // It was stopped during the attempt.
        if (this.#line !== line) return undefined;
        this.#expectOnline(line);
        const opened = await line.open(endpoint).then(
          () => true,
          (error: unknown) => {
            failure = error;
            return false;
          },
        );
        if (opened) return undefined;
      }
    } catch (error) {
      return error;
    }
    return failure;
  }

  /** For a server that accepts the connection but then stays silent. */
  #expectOnline(line: Line): void {
    this.#opening?.[Symbol.dispose]();
    this.#opening = deadline(ONLINE_TIMEOUT_MS);
    this.#opening.signal.addEventListener('abort', () => {
      if (this.#line === line && this.#state !== 'open') {
        line.cut();
      }
    });
  }

  /** A new session, as opposed to a resumed one. */
  async #begin(line: Line): Promise<void> {
    const session = ++this.#session;
    try {
      await line.acknowledgements.ready();
      if (this.#line === line) {
        await this.#listener.prepare();
      }
      if (session === this.#session) {
        this.#open(line);
      }
    } catch (error) {
      if (session === this.#session) {
        this.#options.logger.warn({ err: error }, 'the XMPP session could not be prepared');
        line.cut();
      }
    }
  }

  #open(line: Line): void {
    if (this.#line === line) {
      this.#retryMs = FIRST_RETRY_MS;
      this.#isUntrusted = false;
      this.#setState('open');
      this.#listener.opened();
    }
  }

  #failed(line: Line, error: unknown): void {
    const refusal = finalRefusal(error);
    if (refusal !== undefined && this.#line === line) {
      this.#options.logger.warn({ err: error }, 'the XMPP server will not be tried again');
      void this.stop(refusal);
      return;
    }
    this.#options.logger.info({ err: error }, 'XMPP connection trouble');
    const untrusted = certificateTrouble(error);
    if (untrusted !== undefined && this.#line === line) {
      this.#isUntrusted = true;
      this.#setState('close', untrusted);
    }
    if (this.#line === line && this.#state === 'connecting') this.#explain(error);
    // An error before the session is open ends it; the library would leave it as it is.
    if (this.#state !== 'open' && !this.#isAttempting) {
      line.cut();
    }
  }

  #lost(line: Line): void {
    // All endpoints are tried before the next wait.
    if (this.#line !== line || this.#isAttempting) {
      return;
    }
    if (!this.#isUntrusted) this.#setState('connecting');
    this.#events.emit('lost');
    if (this.#retry !== undefined) {
      return;
    }
    // Jitter: many instances lose a server at once and must not all reconnect at once.
    const waitMs = (this.#isUntrusted ? LONGEST_RETRY_MS : this.#retryMs) * (0.5 + Math.random() / 2);
    this.#retry = setTimeout(() => this.#tryAgain(line), waitMs);
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }

  #tryAgain(line: Line): void {
    this.#retry = undefined;
    // The library may be following the server's redirect; a later `disconnect` comes here too.
    if (!CONNECTED.has(line.client.status)) void this.#attempt(line);
  }

  /** While attempts go on; each reason once. */
  #explain(error: unknown): void {
    const reason = `the server cannot be reached (${causeOf(error)}); the gateway keeps trying`;
    if (reason === this.#explained) return;
    this.#explained = reason;
    this.#listener.stateChanged('connecting', reason);
  }

  #setState(state: ConnectionState, reason?: string): void {
    if (this.#state === state) {
      return;
    }
    this.#state = state;
    this.#explained = undefined;
    this.#events.emit('state');
    this.#listener.stateChanged(state, reason);
  }
}

/** OpenSSL's messages begin with addresses in its memory and its sources, but it has a reason too. */
function causeOf(error: unknown): string {
  const { reason, code, message } = Object(error);
  return String(reason ?? code ?? message);
}

function notConnected(): GatewayError {
  return new GatewayError('not_connected', 'the instance is not connected to its network');
}
