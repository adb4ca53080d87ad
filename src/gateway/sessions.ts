/** Which instance is on which network, from the start of the gateway to its end. */
import { EventEmitter, once } from 'node:events';
import { GatewayError } from '../contract/gateway-errors.ts';
import type { ConnectionState, TransportKind } from '../contract/gateway-instances.ts';
import type { Logger } from '../logger.ts';
import type { Instance, Instances } from './instances.ts';
import { type Session, type Transport, type TransportReports, UnsupportedOperation } from './transport.ts';

export interface SessionsOptions {
  readonly instances: Instances;
  readonly transports: readonly Transport[];
  readonly logger: Logger;
}

/** How long a request waits for an instance that is just connecting. */
const CONNECTING_MS = 10_000;

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #transports: ReadonlyMap<TransportKind, Transport>;
  readonly #open = new Map<string, Promise<Session>>();
  /** Emits an instance's id when its connection changed. */
  readonly #changes = new EventEmitter().setMaxListeners(0);

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#transports = new Map(options.transports.map((transport) => [transport.kind, transport]));
  }

  /** Resolves when the transports run; the instances connect meanwhile, so that what waits for them arrives. */
  async start(reports: TransportReports): Promise<void> {
    await Promise.all(this.#options.transports.map((transport) => transport.start(reports)));
    for (const instance of await this.#options.instances.list()) {
      if (this.#transports.has(instance.transport)) {
        this.of(instance).catch((error: unknown) =>
          this.#options.logger.error({ err: error, instance: instance.name }, 'connecting failed'),
        );
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#options.transports.map((transport) => transport.close()));
  }

  /** Whether instances can be made for this network at all. Throws unsupported. */
  requireTransport(kind: TransportKind): Transport {
    const transport = this.#transports.get(kind);
    if (transport === undefined) {
      throw new UnsupportedOperation('creating an instance', kind);
    }
    return transport;
  }

  /** The instance on its network, whatever its state. */
  of(instance: Instance): Promise<Session> {
    const known = this.#open.get(instance.id);
    if (known !== undefined) {
      return known;
    }
    const opening = this.requireTransport(instance.transport).open(
      instance,
      this.#options.instances.connectionOf(instance),
      !instance.loggedOut,
    );
    this.#open.set(instance.id, opening);
    // A failure is told to whoever asked, and tried again by whoever asks next.
    opening.catch(() => this.#open.delete(instance.id));
    return opening;
  }

  /** The instance on its network, ready to send; waits a little for one that is connecting. Throws not_connected. */
  async connected(instance: Instance, signal?: AbortSignal): Promise<Session> {
    const session = await this.of(instance);
    const patience = AbortSignal.any([AbortSignal.timeout(CONNECTING_MS), ...(signal ? [signal] : [])]);
    while (this.stateOf(instance, session) === 'connecting' && !patience.aborted) {
      await once(this.#changes, instance.id, { signal: patience }).catch(() => undefined);
    }
    signal?.throwIfAborted();
    if (this.stateOf(instance, session) !== 'open') {
      throw new GatewayError('not_connected', `instance ${instance.name} is not connected to its network`);
    }
    return session;
  }

  /** What was logged out is closed, whatever another process' session makes of it. */
  stateOf(instance: Instance, session: Session): ConnectionState {
    return instance.loggedOut ? 'close' : session.state();
  }

  async state(instance: Instance): Promise<ConnectionState> {
    return this.stateOf(instance, await this.of(instance));
  }

  /** To be told when an instance's connection changed. */
  noteChange(instanceId: string): void {
    this.#changes.emit(instanceId);
  }

  /** Begins to connect. Answers the instance as it is now. */
  async connect(instance: Instance, pairingNumber?: string): Promise<Instance> {
    const current = await this.#options.instances.setLoggedOut(instance, false);
    await (await this.of(current)).connect(pairingNumber);
    return current;
  }

  async logout(instance: Instance): Promise<void> {
    const current = await this.#options.instances.setLoggedOut(instance, true);
    await (await this.of(current)).logout();
  }

  async remove(instance: Instance): Promise<void> {
    const transport = this.requireTransport(instance.transport);
    this.#open.delete(instance.id);
    await transport.remove(instance);
  }
}
