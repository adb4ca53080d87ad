/** Which instance is on which network, and of those that this replica has, their sessions from taking them to letting them go. */
import { EventEmitter, once } from 'node:events';
import { GatewayError } from '../contract/gateway-errors.ts';
import type { ConnectionState, TransportKind } from '../contract/gateway-instances.ts';
import type { Logger } from '../logger.ts';
import type { Instance, Instances } from './instances.ts';
import { type Hold, moved } from './replicas/hold.ts';
import type { HoldListener } from './replicas/holds.ts';
import type { Placement } from './replicas/placement.ts';
import { type PublishedState, type PublishedStates, unpublished } from './replicas/published-states.ts';
import { whileHeld } from './replicas/while-held.ts';
import { type Session, type Transport, type TransportReports, UnsupportedOperation } from './transport.ts';

export interface SessionsOptions {
  readonly instances: Instances;
  readonly transports: readonly Transport[];
  readonly placement: Placement;
  readonly states: PublishedStates;
  readonly logger: Logger;
}

/** How long a request waits for an instance that is just connecting. */
const CONNECTING_MS = 10_000;

interface Open {
  /** As it was when it was opened, connected or logged out. */
  instance: Instance;
  readonly hold: Hold;
  readonly transport: Transport;
  readonly session: Promise<Session>;
}

export class Sessions implements HoldListener {
  readonly #options: SessionsOptions;
  readonly #transports: ReadonlyMap<TransportKind, Transport>;
  readonly #open = new Map<string, Open>();
  /** Of instances that were lost: until it is through, the instance is not opened again. */
  readonly #ending = new Map<string, Promise<void>>();
  /** Emits an instance's id when its connection changed. */
  readonly #changes = new EventEmitter().setMaxListeners(0);

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#transports = new Map(options.transports.map((transport) => [transport.kind, transport]));
  }

  /** Resolves when the transports run; instances connect when this replica takes them. */
  async start(reports: TransportReports): Promise<void> {
    await Promise.all(this.#options.transports.map((transport) => transport.start(reports)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#options.transports.map((transport) => transport.close()));
  }

  /** Connects meanwhile, so that what waits for the instance arrives. */
  taken(hold: Hold): void {
    const { logger } = this.#options;
    void whileHeld(hold, () => this.#take(hold.what), logger.child({ instance: hold.what }));
  }

  lost({ what: id, holder }: Hold): void {
    const open = this.#open.get(id);
    if (open?.hold.holder !== holder) {
      return;
    }
    this.#open.delete(id);
    this.#options.logger.info({ instance: id }, 'an instance goes to another replica');
    const ended = open.session
      .then(() => open.transport.letGo(id))
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error, instance: id }, 'a session was not closed'),
      )
      .finally(() => this.#ending.get(id) === ended && this.#ending.delete(id));
    this.#ending.set(id, ended);
  }

  /** Whether instances can be made for this network at all. Throws unsupported. */
  requireTransport(kind: TransportKind): Transport {
    const transport = this.#transports.get(kind);
    if (transport === undefined) {
      throw new UnsupportedOperation('creating an instance', kind);
    }
    return transport;
  }

  hasOtherSide({ transport }: Instance): boolean {
    return this.#transports.get(transport)?.hasOtherSide ?? false;
  }

  /** The instance on its network, whatever its state. Throws service_unavailable when another replica has it. */
  of(instance: Instance): Promise<Session> {
    return this.#of(instance, this.holdOf(instance));
  }

  /** Takes an instance that was just made, and opens it, unless another replica was quicker. */
  async begin(instance: Instance): Promise<void> {
    if ((await this.#options.placement.claim(instance.id)) !== undefined) {
      await this.of(instance);
    }
  }

  /** Throws service_unavailable when another replica has the instance. */
  holdOf({ id }: Instance): Hold {
    const hold = this.#options.placement.holdOf(id);
    if (hold === undefined) {
      throw moved();
    }
    return hold;
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

  /** What was logged out is closed, whatever its session makes of it. */
  stateOf(instance: Instance, session: Session): ConnectionState {
    return instance.loggedOut ? 'close' : session.state();
  }

  async state(instance: Instance): Promise<ConnectionState> {
    return this.stateOf(instance, await this.of(instance));
  }

  /** Those that this process has on their networks, without asking for any other. */
  async present(): Promise<{ readonly transport: TransportKind; readonly state: ConnectionState }[]> {
    const found = await Promise.all(
      [...this.#open.values()].map(async (open) => {
        const session = await open.session.catch(() => undefined);
        return session && { transport: open.transport.kind, state: this.stateOf(open.instance, session) };
      }),
    );
    return found.filter((one) => one !== undefined);
  }

  /** State and own address of each, in the order given, whichever replicas have them. */
  async anywhere(instances: readonly Instance[]): Promise<(PublishedState & { instance: Instance })[]> {
    const { placement, states } = this.#options;
    const all = instances.map((instance) => ({ instance, hold: placement.holdOf(instance.id) }));
    const elsewhere = all.filter(({ hold }) => hold === undefined);
    const published = await states.of(elsewhere.map(({ instance }) => instance.id));
    return Promise.all(
      all.map(async ({ instance, hold }) => {
        if (hold !== undefined) {
          const session = await this.#of(instance, hold);
          return { instance, state: this.stateOf(instance, session), ownJid: session.ownJid };
        }
        const { state, ownJid } = published.get(instance.id) ?? unpublished;
        return { instance, state: instance.loggedOut ? 'close' : state, ownJid };
      }),
    );
  }

  /** For what a network tells of an instance, be it in this replica or another. */
  async ownJid(instance: Instance): Promise<string> {
    const hold = this.#options.placement.holdOf(instance.id);
    const known =
      hold === undefined ? await this.#transports.get(instance.transport)?.ownJid?.(instance) : undefined;
    return known ?? (await this.of(instance)).ownJid;
  }

  /** To be told when an instance's connection changed. */
  noteChange(instanceId: string): void {
    this.#changes.emit(instanceId);
    this.#publish(instanceId);
  }

  /** Begins to connect. Answers the instance as it is now. */
  async connect(instance: Instance, pairingNumber?: string): Promise<Instance> {
    const current = await this.#setLoggedOut(instance, false);
    await (await this.of(current)).connect(pairingNumber);
    return current;
  }

  async logout(instance: Instance): Promise<void> {
    const current = await this.#setLoggedOut(instance, true);
    await (await this.of(current)).logout();
  }

  /** Takes the instance off its network for good. Throws service_unavailable when another replica has it. */
  async remove(instance: Instance): Promise<void> {
    const hold = this.holdOf(instance);
    // What cannot be opened can still be removed.
    await this.#of(instance, hold).catch(() => undefined);
    hold.assert();
    this.#open.delete(instance.id);
    await this.requireTransport(instance.transport).remove(instance);
  }

  /** The last thing that is done to an instance. */
  async forget(instance: Instance): Promise<void> {
    await this.#options.placement.release(instance.id);
    await this.#options.states.forget(instance.id);
  }

  async #setLoggedOut(instance: Instance, loggedOut: boolean): Promise<Instance> {
    const current = await this.#options.instances.setLoggedOut(instance, loggedOut);
    const open = this.#open.get(current.id);
    if (open !== undefined) {
      open.instance = current;
    }
    return current;
  }

  async #take(id: string): Promise<void> {
    const instance = await this.#options.instances.find(id);
    if (instance !== undefined && this.#transports.has(instance.transport)) {
      await this.of(instance);
    }
  }

  #of(instance: Instance, hold: Hold): Promise<Session> {
    const known = this.#open.get(instance.id);
    if (known?.hold.holder === hold.holder) {
      return known.session;
    }
    const transport = this.requireTransport(instance.transport);
    const session = this.#begin(instance, hold, transport);
    this.#open.set(instance.id, { instance, hold, transport, session });
    session.then(
      () => this.#publish(instance.id),
      () => {
        // A failure is told to whoever asked, and tried again by whoever asks next.
        if (this.#open.get(instance.id)?.session === session) {
          this.#open.delete(instance.id);
        }
      },
    );
    return session;
  }

  async #begin(instance: Instance, hold: Hold, transport: Transport): Promise<Session> {
    await this.#ending.get(instance.id);
    hold.assert();
    return transport.open({
      instance,
      connection: this.#options.instances.connectionOf(instance),
      connect: !instance.loggedOut,
      hold,
    });
  }

  #publish(instanceId: string): void {
    const open = this.#open.get(instanceId);
    if (open === undefined) {
      return;
    }
    void this.#options.states.publish(open.hold, async () => {
      if (this.#open.get(instanceId) !== open) {
        return undefined;
      }
      const session = await open.session;
      return { state: session.state(), ownJid: session.ownJid };
    });
  }
}
