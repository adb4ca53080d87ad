/** Which stanzas the other end has (XEP-0198): the library's stream management, with what it gets wrong put right. */
import { EventEmitter } from 'node:events';
import type { Client } from '@xmpp/client';
import type { Element } from './element.ts';
import { ns } from './namespaces.ts';

/** The session ended before the server had said that it has the stanza: it may have it or not. */
export class StanzaInDoubt extends Error {}

/** What the types do not say of the library's stream management: it is an emitter since 0.14. */
type StreamManagement = EventEmitter & {
  enabled: boolean;
  inbound: number;
  requestAckDebounce: number;
  timeout: number;
};

/** A connection on which the server stays silent for longer is given up. */
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

  /** @param onResumed the session goes on where it was cut */
  constructor(client: Client, onResumed: () => void) {
    const management = client.streamManagement as unknown as StreamManagement;
    this.#management = management;
    // A caller waits for each acknowledgement, so it is asked for at once.
    management.requestAckDebounce = 0;
    management.timeout = SILENCE_MS;
    countReceived(client, management);
    client.on('nonza', (nonza) => this.#notice(nonza));
    client.on('disconnect', () => this.#events.emit('answered'));
    management.on('ack', (stanza: Element) => this.#waits.get(stanza)?.resolve());
    management.on('fail', (stanza: Element) =>
      this.#waits.get(stanza)?.reject(new StanzaInDoubt('the session ended')),
    );
    // The library calls itself online only after it has told of the resumption.
    management.on('resumed', () => setImmediate(onResumed));
  }

  /** Whether acknowledgements come in this session. */
  get isOn(): boolean {
    return this.#management.enabled;
  }

  /**
   * Resolves when a new session has them, or is known to have none. The library answers wrongly to what arrives between
   * "online" and <enabled/>, and the server then ends the stream.
   */
  async ready(): Promise<void> {
    if (this.#isOffered && !this.isOn) {
      await new Promise<void>((resolve) => this.#events.once('answered', () => resolve()));
    }
  }

  /** To be called before the stanza is sent. @returns rejects with StanzaInDoubt */
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
      // The library takes note of it a few turns later.
      setImmediate(() => this.#events.emit('answered'));
    }
  }
}

/**
 * The library does not count the answers to its own queries. Told a number that is too small the server keeps for good
 * what has long arrived, sends it again after a resumption, and at the end of the session returns it to its authors as
 * undelivered.
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
