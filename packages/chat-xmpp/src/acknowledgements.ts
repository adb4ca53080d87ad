/** Stanza acknowledgements (XEP-0198), with fixes for the library's stream management. */
import { EventEmitter } from 'node:events';
import type { Client } from '@xmpp/client';
import type { Element } from './element.ts';
import { ns } from './namespaces.ts';

/** The session ended before the acknowledgement: the server may have the stanza or not. */
export class StanzaInDoubt extends Error {}

/** The library's stream management, with what its types lack: it is an emitter since 0.14. */
type StreamManagement = EventEmitter & {
  enabled: boolean;
  inbound: number;
  requestAckDebounce: number;
  timeout: number;
};

/** If the server stays silent for longer, the connection is closed, ms. */
const SILENCE_MS = 20_000;

interface Wait {
  readonly resolve: () => void;
  readonly reject: (reason: StanzaInDoubt) => void;
}

export class Acknowledgements {
  readonly #management: StreamManagement;
  readonly #waits = new WeakMap<Element, Wait>();
  readonly #events = new EventEmitter();
  #isOffered = false;

  /** @param onResumed called when the session continues after a break */
  constructor(client: Client, onResumed: () => void) {
    const management = client.streamManagement as unknown as StreamManagement;
    this.#management = management;
    // A caller waits for each acknowledgement, so request it at once.
    management.requestAckDebounce = 0;
    management.timeout = SILENCE_MS;
    countReceived(client, management);
    client.on('nonza', (nonza) => this.#notice(nonza));
    client.on('disconnect', () => this.#events.emit('answered'));
    management.on('ack', (stanza: Element) => this.#waits.get(stanza)?.resolve());
    management.on('fail', (stanza: Element) =>
      this.#waits.get(stanza)?.reject(new StanzaInDoubt('the session ended')),
    );
    // The library goes online only after it has emitted `resumed`.
    management.on('resumed', () => setImmediate(onResumed));
  }

  /** Whether this session has acknowledgements. */
  get isOn(): boolean {
    return this.#management.enabled;
  }

  /**
   * Resolves when a new session has acknowledgements, or is known to have none. The library
   * miscounts what arrives between "online" and <enabled/>, and the server then ends the stream.
   */
  async ready(): Promise<void> {
    if (this.#isOffered && !this.isOn) {
      await new Promise<void>((resolve) => this.#events.once('answered', () => resolve()));
    }
  }

  /** Call this before sending the stanza. @returns rejects with StanzaInDoubt */
  of(stanza: Element): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waits.set(stanza, { resolve, reject });
    promise.catch(() => undefined);
    return promise;
  }

  #notice(nonza: Element): void {
    if (nonza.is('features', 'http://etherx.jabber.org/streams')) {
      this.#isOffered = nonza.getChild('sm', ns.streamManagement) !== undefined;
    } else if (nonza.is('enabled', ns.streamManagement) || nonza.is('failed', ns.streamManagement)) {
      // The library handles it a few ticks later.
      setImmediate(() => this.#events.emit('answered'));
    }
  }
}

/**
 * The library does not count the answers to its own queries. If the count is too low, the server
 * keeps stanzas that have arrived, sends them again after a resumption, and at the end of the
 * session returns them to their authors as undelivered.
 */
function countReceived(client: Client, management: StreamManagement): void {
  let received = 0;
  client.on('stanza', () => {
    received++;
  });
  client.on('nonza', (nonza) => {
    if (nonza.is('enabled', ns.streamManagement)) received = 0;
  });
  Object.defineProperty(management, 'inbound', { get: () => received, set: () => undefined });
}
