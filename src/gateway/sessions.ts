/** The instances' sessions on their networks, while this process serves. */
import { EventEmitter, once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { type Instance, type Instances, instanceNotFound } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import {
  type Session,
  type Transport,
  type TransportReports,
  UnsupportedOperation,
  type WebhookCall,
} from 'soundpost-chat/transport';
import { GatewayError, gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import type { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import { SealBroken } from 'soundpost-kit/signing/sealer';

interface SessionsOptions {
  readonly instances: Instances;
  readonly transports: readonly Transport[];
  /** Once it is lost, nothing is opened or connected. */
  readonly lease: Lease;
  readonly logger: Logger;
}

/** How long a request waits for a connecting instance. */
const CONNECTING_MS = 10_000;

/** Delay before an instance that failed to open is retried: Redis may have been down. */
const REOPEN_AFTER_MS = 5000;

interface Open {
  /** As of when it was opened, connected or logged out. */
  instance: Instance;
  readonly transport: Transport;
  readonly session: Promise<Session>;
}

/** An instance, for display. */
interface InstanceState {
  readonly instance: Instance;
  readonly state: ConnectionState;
  /** Empty while unknown. */
  readonly ownJid: string;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #transports: ReadonlyMap<TransportKind, Transport>;
  readonly #open = new Map<string, Open>();
  /** Emits an instance's id when its connection changes. */
  readonly #changes = new EventEmitter().setMaxListeners(0);
  /** Ids. A report or a list may still hold such an instance, and would connect it again. */
  readonly #removed = new Set<string>();
  /** The networks' latest reasons why instances are not open. */
  readonly #reasons = new Map<string, string>();
  readonly #closing = new AbortController();

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#transports = new Map(options.transports.map((transport) => [transport.kind, transport]));
  }

  /** Resolves once the transports run; instances connect in the background. */
  async start(reports: TransportReports): Promise<void> {
    await Promise.all(this.#options.transports.map((transport) => transport.start(reports)));
    for (const { id, unreadable } of await this.#options.instances.list()) {
      if (unreadable === undefined) void this.#keepOpening(id);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#options.transports.map((transport) => transport.close()));
  }

  /** Throws unsupported. */
  #requireTransport(kind: TransportKind): Transport {
    const transport = this.#transports.get(kind);
    if (transport === undefined) {
      throw new UnsupportedOperation('creating an instance', kind);
    }
    return transport;
  }

  /** Checks that an instance of this kind can work here. Throws unsupported, or bad_request. */
  async requireUsable(kind: TransportKind): Promise<void> {
    const missing = await this.#requireTransport(kind).missing?.();
    if (missing !== undefined) throw new GatewayError('bad_request', `transport: ${missing}`);
  }

  /**
   * Passes a request of the network's server on; undefined if the network makes none, or the
   * instance cannot be opened.
   */
  async webhook(
    instance: Instance,
    call: WebhookCall,
  ): Promise<Awaited<ReturnType<NonNullable<Transport['webhook']>>> | undefined> {
    const transport = this.#transports.get(instance.transport);
    if (transport?.webhook === undefined) return undefined;
    const session = await this.of(instance).catch(() => undefined);
    return session && transport.webhook(instance, call);
  }

  hasOtherSide({ transport }: Instance): boolean {
    return this.#transports.get(transport)?.hasOtherSide ?? false;
  }

  /** Whether {@link remove} has ended, though its record may still be there. */
  isRemoved(instanceId: string): boolean {
    return this.#removed.has(instanceId);
  }

  /** The instance's session in any state. Throws standby once this process no longer serves. */
  async of(instance: Instance): Promise<Session> {
    this.#options.lease.assert();
    if (this.isRemoved(instance.id)) throw instanceNotFound();
    const known = this.#open.get(instance.id);
    if (known !== undefined) {
      return known.session;
    }
    if (instance.unreadable !== undefined) throw cannotBeRead(instance);
    const transport = this.#requireTransport(instance.transport);
    const session = transport.open({
      instance,
      connection: this.#options.instances.connectionOf(instance),
      connect: !instance.loggedOut,
    });
    this.#open.set(instance.id, { instance, transport, session });
    session.catch(() => {
      // The caller gets the error; the next caller tries again.
      if (this.#open.get(instance.id)?.session === session) {
        this.#open.delete(instance.id);
      }
    });
    return session;
  }

  /** The session, ready to send; waits briefly while it connects. Throws not_connected. */
  async connected(instance: Instance, signal?: AbortSignal): Promise<Session> {
    const session = await this.of(instance);
    using patience = deadline(CONNECTING_MS, { signal });
    while (this.stateOf(instance, session) === 'connecting' && !patience.signal.aborted) {
      await once(this.#changes, instance.id, { signal: patience.signal }).catch(() => undefined);
    }
    signal?.throwIfAborted();
    if (this.stateOf(instance, session) !== 'open') {
      const why = this.reason(instance);
      const message = `instance ${instance.name} is not connected to its network`;
      throw new GatewayError('not_connected', why === undefined ? message : `${message}: ${why}`);
    }
    return session;
  }

  /** A logged-out instance is closed, whatever its session reports. */
  stateOf(instance: Instance, session: Session): ConnectionState {
    return instance.loggedOut ? 'close' : session.state();
  }

  async state(instance: Instance): Promise<ConnectionState> {
    return this.stateOf(instance, await this.of(instance));
  }

  /** The open sessions; opens no others. */
  async present(): Promise<{ readonly transport: TransportKind; readonly state: ConnectionState }[]> {
    const found = await Promise.all(
      [...this.#open.values()].map(async (open) => {
        const session = await open.session.catch(() => undefined);
        return session && { transport: open.transport.kind, state: this.stateOf(open.instance, session) };
      }),
    );
    return found.filter((one) => one !== undefined);
  }

  /** State and own address of each, in the given order. */
  states(instances: readonly Instance[]): Promise<InstanceState[]> {
    return Promise.all(
      instances.map(async (instance) => {
        try {
          const session = await this.of(instance);
          return { instance, state: this.stateOf(instance, session), ownJid: session.ownJid };
        } catch (error) {
          // Its password is lost (`accept-secret`); the others are listed, and it can be deleted.
          if (!(error instanceof SealBroken || (instance.unreadable && error instanceof Error))) throw error;
          this.#reasons.set(instance.id, error.message);
          return { instance, state: 'close', ownJid: '' };
        }
      }),
    );
  }

  async ownJid(instance: Instance): Promise<string> {
    return (await this.of(instance)).ownJid;
  }

  /** Why the instance is not open; undefined if it is, or without a known reason. */
  reason(instance: Instance): string | undefined {
    return this.#reasons.get(instance.id);
  }

  /** Call when an instance's connection changes, with the reason it ended. */
  noteChange(instanceId: string, state: ConnectionState, reason: string | undefined): void {
    if (state === 'open') this.#reasons.delete(instanceId);
    else if (reason !== undefined) this.#reasons.set(instanceId, reason);
    this.#changes.emit(instanceId);
  }

  /** Starts connecting. Answers the instance as it is now. */
  async connect(instance: Instance, pairingNumber?: string): Promise<Instance> {
    const current = await this.#setLoggedOut(instance, false);
    await (await this.of(current)).connect(pairingNumber);
    return current;
  }

  async logout(instance: Instance): Promise<void> {
    const current = await this.#setLoggedOut(instance, true);
    await (await this.of(current)).logout();
  }

  /** Removes the instance from its network for good. */
  async remove(instance: Instance): Promise<void> {
    // An instance that cannot be opened can still be removed.
    await this.of(instance).catch(() => undefined);
    this.#options.lease.assert();
    if (instance.unreadable === undefined) await this.#requireTransport(instance.transport).remove(instance);
    this.#removed.add(instance.id);
    this.#open.delete(instance.id);
    this.#reasons.delete(instance.id);
  }

  async #setLoggedOut(instance: Instance, loggedOut: boolean): Promise<Instance> {
    const current = await this.#options.instances.setLoggedOut(instance, loggedOut);
    const open = this.#open.get(current.id);
    if (open !== undefined) {
      open.instance = current;
    }
    return current;
  }

  /** Never rejects: logs a failure, the first as an error, and retries while that may help. */
  async #keepOpening(id: string): Promise<void> {
    const { lease, logger } = this.#options;
    const ending = AbortSignal.any([lease.lost, this.#closing.signal]);
    for (let level: 'error' | 'debug' = 'error'; !ending.aborted; level = 'debug') {
      try {
        const instance = await this.#options.instances.find(id);
        if (instance !== undefined && this.#transports.has(instance.transport)) {
          await this.of(instance);
        }
        return;
      } catch (error) {
        logger[level]({ err: error, instance: id }, 'connecting failed');
        if (error instanceof GatewayError && !gatewayErrorCatalogue[error.code].retryable) {
          return;
        }
        await wait(REOPEN_AFTER_MS, undefined, { ref: false, signal: ending }).catch(() => undefined);
      }
    }
  }
}

function cannotBeRead({ name, unreadable }: Instance): GatewayError {
  return new GatewayError(
    'not_connected',
    `the record of instance ${name} cannot be read: ${unreadable}; delete the instance and make it again`,
  );
}
