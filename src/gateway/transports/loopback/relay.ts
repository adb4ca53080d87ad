/**
 * The network's own server: takes messages in, acknowledges them, and hands them to the devices they are for. What it
 * has taken lies in a Redis stream until it is delivered, so a restart delays a delivery and loses none.
 */
import { z } from 'zod';
import { AudioMessage } from '../../../contract/gateway.ts';
import type { Logger } from '../../../logger.ts';
import type { Redis } from '../../../queue/redis.ts';
import { RedisScript } from '../../../queue/script.ts';
import type { StreamEntry } from '../../event-stream.ts';
import { gatewayKey } from '../../redis-keys.ts';
import { StreamConsumer } from '../../stream-consumer.ts';
import type { MessageContext, TransportReports } from '../../transport.ts';
import { type Directory, groupJid, personJid } from './directory.ts';

const RelayedMessage = z.object({
  messageId: z.string(),
  from: z.object({ instanceId: z.string(), digits: z.string(), name: z.string() }),
  to: z.object({ digits: z.string(), isGroup: z.boolean() }),
  timestampSeconds: z.int(),
  content: AudioMessage,
  context: z.custom<MessageContext>((value) => typeof value === 'object' && value !== null),
});
export type RelayedMessage = z.infer<typeof RelayedMessage>;

const WORK = gatewayKey('loopback', 'work');
/** How long the network knows a message again that is sent a second time. */
const REMEMBER_SECONDS = 48 * 60 * 60;
/** A delivery takes milliseconds and bears being done twice, so another process may take over soon. */
const CLAIM_IDLE_MS = 2000;

/** One message id of one sender is one message: the second time nothing happens. */
const acceptScript = new RedisScript(`
if redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[2]) then
  redis.call('XADD', KEYS[2], '*', 'message', ARGV[1])
end
return 1
`);

export interface RelayOptions {
  readonly redis: Redis;
  readonly directory: Directory;
  /** A connection of its own, since reading the stream blocks it. */
  readonly blockingRedis: Redis;
  readonly logger: Logger;
}

export class Relay {
  readonly #redis: Redis;
  readonly #directory: Directory;
  readonly #consumer: StreamConsumer;
  #reports: TransportReports | undefined;

  constructor({ redis, directory, blockingRedis, logger }: RelayOptions) {
    this.#redis = redis;
    this.#directory = directory;
    this.#consumer = new StreamConsumer({
      redis: blockingRedis,
      stream: WORK,
      group: 'relay',
      from: '0',
      claimIdleMs: CLAIM_IDLE_MS,
      removeFinished: true,
      handle: (entry) => this.#deliver(entry),
      logger,
    });
  }

  async start(reports: TransportReports): Promise<void> {
    this.#reports = reports;
    await this.#consumer.start();
  }

  close(): Promise<void> {
    return this.#consumer.close();
  }

  /** Resolves when the network has the message safely. */
  async accept(message: RelayedMessage): Promise<void> {
    await acceptScript.run(
      this.#redis,
      [gatewayKey('loopback', 'taken', message.from.instanceId, message.messageId), WORK],
      [JSON.stringify(message), REMEMBER_SECONDS],
    );
  }

  async #deliver(entry: StreamEntry): Promise<void> {
    const reports = this.#reports;
    if (reports === undefined) {
      throw new Error('the relay was not started');
    }
    const message = RelayedMessage.parse(JSON.parse(entry.fields.message ?? ''));
    const { from, to, messageId } = message;
    await reports.statusChanged(from.instanceId, messageId, 'SERVER_ACK');
    const group = to.isGroup ? await this.#directory.group(to.digits) : undefined;
    const recipients = to.isGroup
      ? (group?.participants ?? []).map(({ digits }) => digits).filter((digits) => digits !== from.digits)
      : [to.digits];
    let delivered = false;
    for (const digits of recipients) {
      delivered = (await this.#handOver(message, digits, reports)) || delivered;
    }
    await reports.statusChanged(from.instanceId, messageId, delivered ? 'DELIVERY_ACK' : 'ERROR');
  }

  /** The people's devices are always on and need no record of their own: their side of a chat is the sender's log. */
  async #handOver(message: RelayedMessage, digits: string, reports: TransportReports): Promise<boolean> {
    const recipient = await this.#directory.member(digits);
    if (recipient?.instanceId) {
      await reports.messageArrived(recipient.instanceId, {
        messageId: message.messageId,
        isGroup: message.to.isGroup,
        chatJid: message.to.isGroup ? groupJid(message.to.digits) : personJid(message.from.digits),
        authorJid: personJid(message.from.digits),
        authorName: message.from.name,
        timestampSeconds: message.timestampSeconds,
        content: { kind: 'voice', audio: message.content },
        context: message.context,
      });
    }
    return recipient !== undefined;
  }
}
