/** The gateway's own small chat network as a transport: for trying out, for tests, and for the voice inbox. */
import { GatewayError } from '../../../contract/gateway-errors.ts';
import type { Logger } from '../../../logger.ts';
import type { Redis } from '../../../queue/redis.ts';
import { type Address, mayMean } from '../../address.ts';
import type { Instance } from '../../instances.ts';
import type { MessageLog } from '../../message-log.ts';
import type {
  Chat,
  Contact,
  OtherSide,
  OutgoingVoice,
  Participant,
  Presence,
  Session,
  Transport,
  TransportReports,
} from '../../transport.ts';
import { Directory, digitsOf, groupJid, type Place, personJid, suffixes } from './directory.ts';
import { PeopleSide } from './people-side.ts';
import { Relay } from './relay.ts';

export interface LoopbackOptions {
  readonly redis: Redis;
  /** A connection that the network's deliveries may block. */
  readonly blockingRedis: Redis;
  readonly log: MessageLog;
  readonly logger: Logger;
}

export function createLoopbackTransport({ redis, blockingRedis, log, logger }: LoopbackOptions): Transport {
  const directory = new Directory(redis);
  const relay = new Relay({ redis, directory, blockingRedis, logger });
  let reports: TransportReports | undefined;
  return {
    kind: 'loopback',
    async open(instance) {
      if (reports === undefined) {
        throw new Error('the loopback network was not started');
      }
      const place = await directory.placeOf(instance);
      const otherSide = new PeopleSide({ instance, directory, log, reports });
      return new LoopbackSession({ instance, place, directory, relay, reports, otherSide });
    },
    remove: (instance) => directory.remove(instance),
    async start(to) {
      reports = to;
      await relay.start(to);
    },
    close: () => relay.close(),
  };
}

interface SessionParts {
  readonly instance: Instance;
  readonly place: Place;
  readonly directory: Directory;
  readonly relay: Relay;
  readonly reports: TransportReports;
  readonly otherSide: OtherSide;
}

class LoopbackSession implements Session {
  readonly #parts: SessionParts;
  readonly ownJid: string;
  readonly otherSide: OtherSide;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.ownJid = personJid(parts.place.digits);
    this.otherSide = parts.otherSide;
  }

  state(): 'open' {
    return 'open';
  }

  async connect(): Promise<void> {}

  async logout(): Promise<void> {}

  async resolve(address: Address, field: string): Promise<Chat> {
    const { directory, place } = this.#parts;
    if (mayMean(address, 'person', suffixes)) {
      const member = await directory.member(address.digits);
      if (member !== undefined) {
        return { jid: personJid(address.digits), name: member.name, isGroup: false };
      }
    }
    if (mayMean(address, 'group', suffixes) && place.groups.includes(address.digits)) {
      const group = await directory.group(address.digits);
      if (group !== undefined) {
        return { jid: groupJid(address.digits), name: group.subject, isGroup: true };
      }
    }
    throw new GatewayError('unknown_recipient', `${field}: nobody on the network has this number`);
  }

  async sendVoice(message: OutgoingVoice): Promise<void> {
    const { relay, instance, place } = this.#parts;
    await relay.accept({
      messageId: message.messageId,
      from: { instanceId: instance.id, digits: place.digits, name: instance.name },
      to: { digits: digitsOf(message.chat.jid), isGroup: message.chat.isGroup },
      timestampSeconds: Math.floor(Date.now() / 1000),
      content: message.content,
      context: message.context,
    });
  }

  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    await this.#parts.reports.presenceChanged(this.#parts.instance.id, chat.jid, presence);
  }

  async contacts(): Promise<Contact[]> {
    const { directory, place } = this.#parts;
    const contacts: Contact[] = [];
    for (const digits of place.contacts) {
      const member = await directory.member(digits);
      if (member !== undefined) {
        const { name } = member;
        contacts.push({ jid: personJid(digits), name, isGroup: false, isSaved: true, blocked: false });
      }
    }
    for (const digits of place.groups) {
      const group = await directory.group(digits);
      if (group !== undefined) {
        const { subject } = group;
        contacts.push({
          jid: groupJid(digits),
          name: subject,
          isGroup: true,
          isSaved: true,
          blocked: false,
        });
      }
    }
    return contacts;
  }

  async participants(address: Address): Promise<Participant[]> {
    const { directory, place } = this.#parts;
    const group = place.groups.includes(address.digits) ? await directory.group(address.digits) : undefined;
    if (group === undefined) {
      throw new GatewayError('group_not_found', 'groupJid: the instance is in no group with this JID');
    }
    return Promise.all(
      group.participants.map(async ({ digits, admin }) => ({
        jid: personJid(digits),
        name: (await directory.member(digits))?.name ?? digits,
        admin,
      })),
    );
  }
}
