/**
 * The network's own server: takes messages in, acknowledges them, and hands them to the devices they are for. What it
 * has taken lies in a Redis stream until it is delivered, so a restart delays a delivery and loses none; what is for an
 * instance that is logged out waits for it.
 */
import { z } from 'zod';
import { MessageContent } from '../../../contract/gateway.ts';
import type { MessageStatus } from '../../../contract/job.ts';
import type { Logger } from '../../../logger.ts';
import type { Redis } from '../../../queue/redis.ts';
import { RedisScript } from '../../../queue/script.ts';
import type { StreamEntry } from '../../event-stream.ts';
import type { Instances } from '../../instances.ts';
import { MessageRecord } from '../../message-record.ts';
import { gatewayKey } from '../../redis-keys.ts';
import { FencedScript } from '../../replicas/fenced-script.ts';
import type { Hold } from '../../replicas/hold.ts';
import { type OnDuty, StreamConsumer } from '../../stream-consumer.ts';
import type { IncomingMessage, TransportReports } from '../../transport.ts';
import { groupJid, personJid } from './addresses.ts';
import type { Archive } from './archive.ts';
import type { Directory } from './directory.ts';
import type { Groups } from './groups.ts';

export const Relayed = z.object({
  messageId: z.string(),
  /** An instance, or one of the people. */
  from: z.object({ instanceId: z.string().nullable(), digits: z.string(), name: z.string() }),
  to: z.object({ digits: z.string(), isGroup: z.boolean() }),
  timestampSeconds: z.int(),
  content: MessageContent,
  context: MessageRecord.shape.context,
  /** Whether this changes the text of the message that has the id. */
  isEdit: z.boolean().default(false),
  /** The only one it is still for; undefined for everybody. */
  only: z.string().optional(),
});
export type Relayed = z.infer<typeof Relayed>;

const WORK = gatewayKey('loopback', 'work');
/** Digits of instances that are logged out. */
const AWAY = gatewayKey('loopback', 'away');
const waitingKey = (digits: string): string => gatewayKey('loopback', 'waiting', digits);
/** How long the network knows a message again that is sent a second time. */
const REMEMBER_SECONDS = 48 * 60 * 60;
/** A delivery takes milliseconds and bears being done twice, so another process may take over soon. */
const CLAIM_IDLE_MS = 2000;

/** One message id of one sender is one message: the second time nothing happens. */
const acceptScript = new FencedScript(`
if redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[2]) then
  redis.call('XADD', KEYS[2], '*', 'message', ARGV[1])
end
return 1
`);

const changeScript = new FencedScript(`return redis.call('XADD', KEYS[1], '*', 'message', ARGV[1])`);

const keepForAwayScript = new RedisScript(`
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1
`);

/** Back on the network: what waited goes its way again, in the order in which it came. */
const returnScript = new RedisScript(`
if redis.call('SREM', KEYS[1], ARGV[1]) == 0 then return 0 end
for _, message in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  redis.call('XADD', KEYS[3], '*', 'message', message)
end
redis.call('DEL', KEYS[2])
return 1
`);

export interface RelayOptions {
  readonly redis: Redis;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly archive: Archive;
  readonly instances: Instances;
  /** A connection of its own, since reading the stream blocks it. */
  readonly blockingRedis: Redis;
  /** Resolves when this process may deliver. */
  readonly onDuty: OnDuty;
  readonly logger: Logger;
}

type Outcome = 'delivered' | 'waiting' | 'bounced';

export class Relay {
  readonly #options: RelayOptions;
  readonly #consumer: StreamConsumer;
  #reports: TransportReports | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#consumer = new StreamConsumer({
      redis: options.blockingRedis,
      stream: WORK,
      group: 'relay',
      from: '0',
      claimIdleMs: CLAIM_IDLE_MS,
      removeFinished: true,
      onDuty: options.onDuty,
      handle: (entry) => this.#deliver(entry),
      logger: options.logger,
    });
  }

  async start(reports: TransportReports): Promise<void> {
    this.#reports = reports;
    await this.#consumer.start();
  }

  close(): Promise<void> {
    return this.#consumer.close();
  }

  /**
   * Resolves when the network has the message, or the change of one, safely.
   * @param hold of the instance in whose session it is said, by whomever
   */
  async accept(hold: Hold, message: z.input<typeof Relayed>): Promise<void> {
    const { redis } = this.#options;
    const text = JSON.stringify(Relayed.parse(message));
    if (message.isEdit) {
      await changeScript.run(redis, hold, [WORK], [text]);
      return;
    }
    await acceptScript.run(
      redis,
      hold,
      [
        gatewayKey('loopback', 'taken', message.from.instanceId ?? message.from.digits, message.messageId),
        WORK,
      ],
      [text, REMEMBER_SECONDS],
    );
  }

  /** From now on messages for this number wait. */
  async leave(digits: string): Promise<void> {
    await this.#options.redis.sadd(AWAY, digits);
  }

  /** What has waited is delivered. Answers whether it was away. */
  async comeBack(digits: string): Promise<boolean> {
    const { redis } = this.#options;
    return (await returnScript.run(redis, [AWAY, waitingKey(digits), WORK], [digits])) === 1;
  }

  async isAway(digits: string): Promise<boolean> {
    return (await this.#options.redis.sismember(AWAY, digits)) === 1;
  }

  async forget(digits: string): Promise<void> {
    await this.#options.redis.multi().srem(AWAY, digits).del(waitingKey(digits)).exec();
  }

  async #deliver(entry: StreamEntry): Promise<void> {
    const message = Relayed.parse(JSON.parse(entry.fields.message ?? ''));
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

  /** The people's devices are always on and need no record of their own: their side of a chat is the sender's log. */
  async #handOver(message: Relayed, digits: string): Promise<Outcome> {
    const { directory, redis } = this.#options;
    const { from, to } = message;
    const recipient = await directory.member(digits);
    // In a group everybody hears everybody.
    if (recipient === undefined || (!to.isGroup && (await directory.apart(digits, from.digits)))) {
      return 'bounced';
    }
    if (recipient.instanceId === null) {
      return 'delivered';
    }
    const later = JSON.stringify({ ...message, only: digits });
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

  /** Only instances are told: the people see the log of the instance. */
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

/** A message as it comes to an instance. */
export function incoming(message: Relayed, more: Partial<IncomingMessage> = {}): IncomingMessage {
  const { to, from, content } = message;
  return {
    messageId: message.messageId,
    isGroup: to.isGroup,
    chatJid: to.isGroup ? groupJid(to.digits) : personJid(from.digits),
    authorJid: personJid(from.digits),
    authorName: from.name,
    timestampSeconds: message.timestampSeconds,
    content:
      'conversation' in content
        ? { kind: 'text', text: content.conversation }
        : { kind: 'voice', audio: content.audioMessage },
    context: message.context,
    ...more,
  };
}
