/**
 * The network's server: delivers messages one at a time, before it answers their sender. Messages
 * for a logged-out instance wait.
 */

import type { Instance, Instances } from 'soundpost-chat/instances';
import { type Lease, loadFencedScript } from 'soundpost-chat/lease/lease';
import { MessageRecord } from 'soundpost-chat/message-log';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { IncomingMessage, TransportReports } from 'soundpost-chat/transport';
import { MessageContent } from 'soundpost-contract/gateway';
import type { MessageStatus } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readable, readText, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { type Archive, type Directory, groupJid, personJid } from './directory.ts';
import type { Groups } from './groups.ts';

const Relayed = z.object({
  messageId: z.string(),
  /** An instance, or one of the people. */
  from: z.object({ instanceId: z.string().nullable(), digits: z.string(), name: z.string() }),
  to: z.object({ digits: z.string(), isGroup: z.boolean() }),
  timestampSeconds: z.int(),
  content: MessageContent,
  context: MessageRecord.shape.context,
  /** Whether this changes the text of the message with the id. */
  isEdit: z.boolean().default(false),
  /** The only remaining recipient; undefined for everyone. */
  only: z.string().optional(),
});
type Relayed = z.infer<typeof Relayed>;

/** Digits of instances that are logged out. */
const AWAY = gatewayKey('loopback', 'away');
const waitingKey = (digits: string): string => gatewayKey('loopback', 'waiting', digits);
/** How long the network recognizes a repeated message. */
const REMEMBER_SECONDS = 48 * 60 * 60;

const isKnownScript = loadFencedScript(new URL('./lua/message-is-taken.lua', import.meta.url));
const keepForAwayScript = loadScript(new URL('./lua/message-keep-for-away.lua', import.meta.url));

interface RelayOptions {
  readonly redis: Redis;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly archive: Archive;
  readonly instances: Instances;
  readonly lease: Lease;
}

type Outcome = 'delivered' | 'waiting' | 'bounced';

export class Relay {
  readonly #options: RelayOptions;
  #reports: TransportReports | undefined;
  /** The latest work: messages must not overtake one another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  start(reports: TransportReports): void {
    this.#reports = reports;
  }

  /**
   * Resolves once the message or edit is delivered, or waits for a logged-out instance. A sender's
   * repeated id is ignored. Repeat an interrupted message: recipients who have it keep it.
   */
  accept(message: z.input<typeof Relayed>): Promise<void> {
    const relayed = Relayed.parse(message);
    return this.#inOrder(() => this.#accept(relayed));
  }

  /** Makes messages for this number wait. */
  async leave(digits: string): Promise<void> {
    await this.#inOrder(() => this.#options.redis.sadd(AWAY, digits));
  }

  /** Delivers waiting messages in their order. */
  async comeBack(digits: string): Promise<void> {
    const { redis } = this.#options;
    await this.#inOrder(async () => {
      await redis.srem(AWAY, digits);
      const waiting = await redis.lrange(waitingKey(digits), 0, -1);
      for (const message of readable(waiting, (text) => readText(Relayed, text))) {
        await this.#deliver(message);
      }
      await redis.del(waitingKey(digits));
    });
  }

  async isAway(digits: string): Promise<boolean> {
    return (await this.#options.redis.sismember(AWAY, digits)) === 1;
  }

  /** `syncFullHistory`: reports kept messages of an instance and its groups; known ones stay. */
  async reportHistory(instance: Instance, digits: string): Promise<void> {
    const { archive, directory } = this.#options;
    const { groups } = await directory.placeOf(instance);
    for (const owner of [digits, ...groups]) {
      for (const message of await archive.of(owner, Relayed)) {
        const fromMe = message.from.digits === digits;
        const chatJid = fromMe && !message.to.isGroup ? { chatJid: personJid(message.to.digits) } : {};
        const reported = incoming(message, { ...chatJid, fromMe, isHistory: true });
        await this.#required().messageArrived(instance.id, reported);
      }
    }
  }

  async forget(digits: string): Promise<void> {
    await this.#options.redis.multi().srem(AWAY, digits).del(waitingKey(digits)).exec();
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #accept(message: Relayed): Promise<void> {
    const { redis, lease } = this.#options;
    const { from, messageId } = message;
    const taken = gatewayKey('loopback', 'taken', from.instanceId ?? from.digits, messageId);
    const isKnown = (await isKnownScript.run(redis, lease, [taken], [])) === 1;
    if (message.isEdit || !isKnown) {
      await this.#deliver(message);
    }
    if (!message.isEdit) {
      await redis.set(taken, '1', 'EX', REMEMBER_SECONDS);
    }
  }

  async #deliver(message: Relayed): Promise<void> {
    const isNew = message.only === undefined && !message.isEdit;
    if (isNew) {
      await this.#status(message, 'SERVER_ACK');
      const { to, from } = message;
      await this.#options.archive.keep(to.isGroup ? [to.digits] : [to.digits, from.digits], message);
    }
    const outcomes: Outcome[] = [];
    for (const digits of await this.#recipients(message)) {
      outcomes.push(await this.#handOver(message, digits));
    }
    if (outcomes.includes('delivered')) {
      await this.#status(message, 'DELIVERY_ACK');
    } else if (!outcomes.includes('waiting')) {
      await this.#status(message, 'ERROR');
    }
  }

  async #recipients({ to, from, only }: Relayed): Promise<string[]> {
    if (only !== undefined) {
      return [only];
    }
    if (!to.isGroup) {
      return [to.digits];
    }
    const group = await this.#options.groups.find(to.digits);
    return (group?.participants ?? []).map(({ digits }) => digits).filter((digits) => digits !== from.digits);
  }

  /** The people need no record of their own: their side of a chat is the sender's log. */
  async #handOver(message: Relayed, digits: string): Promise<Outcome> {
    const { directory, redis, lease } = this.#options;
    const { from, to } = message;
    lease.assert();
    const recipient = await directory.member(digits);
    // In a group everyone hears everyone.
    if (recipient === undefined || (!to.isGroup && (await directory.apart(digits, from.digits)))) {
      return 'bounced';
    }
    if (recipient.instanceId === null) {
      return 'delivered';
    }
    const later = JSON.stringify(withEdition({ ...message, only: digits }));
    if ((await keepForAwayScript.run(redis, [AWAY, waitingKey(digits)], [digits, later])) === 1) {
      return 'waiting';
    }
    await this.#handToInstance(message, recipient.instanceId);
    return 'delivered';
  }

  async #handToInstance(message: Relayed, instanceId: string): Promise<void> {
    const reports = this.#required();
    if (message.isEdit) {
      const { content } = message;
      await reports.messageEdited(instanceId, {
        messageId: message.messageId,
        authorJid: personJid(message.from.digits),
        text: 'conversation' in content ? content.conversation : '',
      });
      return;
    }
    await reports.messageArrived(instanceId, incoming(message));
    const settings = (await this.#options.instances.find(instanceId))?.settings;
    if (settings?.readMessages && !(message.to.isGroup && settings.groupsIgnore)) {
      await reports.statusChanged(instanceId, message.messageId, 'READ');
      if (!message.to.isGroup) {
        await this.#status(message, 'READ');
      }
    }
  }

  /** Only instances get statuses: the people see the instance's log. */
  async #status({ from, messageId, isEdit }: Relayed, status: MessageStatus): Promise<void> {
    if (from.instanceId !== null && !isEdit) {
      await this.#required().statusChanged(from.instanceId, messageId, status);
    }
  }

  #required(): TransportReports {
    if (this.#reports === undefined) {
      throw new Error('the relay was not started');
    }
    return this.#reports;
  }
}

/** A message as its receiving instance sees it. */
function incoming(message: Relayed, more: Partial<IncomingMessage> = {}): IncomingMessage {
  const { to, from, content } = message;
  return {
    messageId: message.messageId,
    isGroup: to.isGroup,
    chatJid: to.isGroup ? groupJid(to.digits) : personJid(from.digits),
    authorJid: personJid(from.digits),
    authorName: from.name,
    timestampSeconds: message.timestampSeconds,
    content: { kind: 'kept', message: content },
    context: message.context,
    ...more,
  };
}
