/** Which instance is on which network, and what the networks report back. */
import { GatewayError } from '../contract/gateway-errors.ts';
import type { ConnectionState, TransportKind } from '../contract/gateway-instances.ts';
import type { Logger } from '../logger.ts';
import type { Redis } from '../queue/redis.ts';
import { appendEvent, envelope } from './event-stream.ts';
import type { Instance, Instances } from './instances.ts';
import type { MessageLog } from './message-log.ts';
import {
  type IncomingMessage,
  type Presence,
  type Session,
  type Transport,
  type TransportReports,
  UnsupportedOperation,
} from './transport.ts';

export interface SessionsOptions {
  readonly redis: Redis;
  readonly instances: Instances;
  readonly log: MessageLog;
  readonly transports: readonly Transport[];
  readonly logger: Logger;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #transports: ReadonlyMap<TransportKind, Transport>;
  readonly #open = new Map<string, Promise<Session>>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#transports = new Map(options.transports.map((transport) => [transport.kind, transport]));
  }

  async start(): Promise<void> {
    const reports: TransportReports = {
      statusChanged: async (instanceId, messageId, status) => {
        await this.#options.log.advance(instanceId, messageId, status);
      },
      messageArrived: (instanceId, message) => this.#arrived(instanceId, message),
      messageEdited: async () => undefined,
      presenceChanged: (instanceId, chatJid, presence) => this.#presence(instanceId, chatJid, presence),
      connectionChanged: async () => undefined,
      callChanged: async () => undefined,
      participantsChanged: async () => undefined,
    };
    await Promise.all(this.#options.transports.map((transport) => transport.start(reports)));
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
    const opening = this.requireTransport(instance.transport).open(instance, undefined, true);
    this.#open.set(instance.id, opening);
    // A failure is told to whoever asked, and tried again by whoever asks next.
    opening.catch(() => this.#open.delete(instance.id));
    return opening;
  }

  /** The instance on its network, ready to send. Throws not_connected. */
  async connected(instance: Instance): Promise<Session> {
    const session = await this.of(instance);
    if (session.state() !== 'open') {
      throw new GatewayError('not_connected', `instance ${instance.name} is not connected to its network`);
    }
    return session;
  }

  async state(instance: Instance): Promise<ConnectionState> {
    return (await this.of(instance)).state();
  }

  async remove(instance: Instance): Promise<void> {
    this.#open.delete(instance.id);
    await this.requireTransport(instance.transport).remove(instance);
  }

  async #arrived(instanceId: string, incoming: IncomingMessage): Promise<void> {
    const { log, instances } = this.#options;
    const instance = await instances.find(instanceId);
    const { content } = incoming;
    if (instance === undefined || content.kind !== 'voice') {
      return;
    }
    const record = await log.intend(
      {
        instanceId,
        instanceName: instance.name,
        ownJid: (await this.of(instance)).ownJid,
        key: { remoteJid: incoming.chatJid, fromMe: false, id: incoming.messageId },
        authorJid: incoming.authorJid,
        authorName: incoming.authorName,
        timestampSeconds: incoming.timestampSeconds,
        message: { audioMessage: content.audio },
        context: incoming.context,
      },
      'DELIVERY_ACK',
    );
    await log.settle(record);
  }

  async #presence(instanceId: string, chatJid: string, presence: Presence): Promise<void> {
    const { redis, instances } = this.#options;
    const instance = await instances.find(instanceId);
    if (instance === undefined) {
      return;
    }
    const { ownJid } = await this.of(instance);
    const data = { id: chatJid, presences: { [ownJid]: { lastKnownPresence: presence } } };
    const event = 'presence.update';
    await appendEvent(redis, { instanceId, event, envelope: envelope(instance, ownJid, event, data) });
  }
}
