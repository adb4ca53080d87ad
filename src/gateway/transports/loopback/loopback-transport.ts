/** The gateway's own small chat network as a transport: for trying out, for tests, and for the voice inbox. */
import type { Logger } from '../../../logger.ts';
import type { Redis } from '../../../queue/redis.ts';
import type { Instances } from '../../instances.ts';
import type { MessageLog } from '../../message-log.ts';
import type { OnDuty } from '../../stream-consumer.ts';
import type { Transport, TransportReports } from '../../transport.ts';
import { personJid } from './addresses.ts';
import { Archive } from './archive.ts';
import { Calls } from './calls.ts';
import { Directory } from './directory.ts';
import { Groups } from './groups.ts';
import { LoopbackSession } from './loopback-session.ts';
import { PeopleSide } from './people-side.ts';
import { Relay } from './relay.ts';

export interface LoopbackOptions {
  readonly redis: Redis;
  /** A connection that the network's deliveries may block. */
  readonly blockingRedis: Redis;
  readonly log: MessageLog;
  readonly instances: Instances;
  /** Absolute base of invitations, without a slash at the end. */
  readonly publicUrl: () => string;
  /** How long the network remembers messages, seconds. */
  readonly keepSeconds: number;
  /** Resolves when this process may deliver what the network has: one at a time, or messages would overtake each other. */
  readonly onDuty: OnDuty;
  readonly logger: Logger;
}

export function createLoopbackTransport(options: LoopbackOptions): Transport {
  const { redis, blockingRedis, log, instances, publicUrl, keepSeconds, onDuty, logger } = options;
  const directory = new Directory(redis);
  const groups = new Groups(redis);
  const archive = new Archive(redis, keepSeconds);
  const relay = new Relay({ redis, directory, groups, archive, instances, blockingRedis, onDuty, logger });
  const calls = new Calls(redis);
  let reports: TransportReports | undefined;
  return {
    kind: 'loopback',
    hasOtherSide: true,
    async open({ instance, connect, hold }) {
      if (reports === undefined) {
        throw new Error('the loopback network was not started');
      }
      const place = await directory.placeOf(instance);
      const parts = {
        instance,
        digits: place.digits,
        directory,
        groups,
        archive,
        relay,
        calls,
        reports,
        hold,
      };
      const session = new LoopbackSession({
        ...parts,
        publicUrl,
        otherSide: new PeopleSide({ ...parts, log }),
        isAway: await relay.isAway(place.digits),
      });
      if (connect) {
        await session.connect();
      }
      return session;
    },
    letGo: async () => undefined,
    ownJid: async (instance) => personJid((await directory.placeOf(instance)).digits),
    async remove(instance) {
      const place = await directory.remove(instance);
      if (place !== undefined) {
        await Promise.all(place.groups.map((group) => groups.leave(group, place.digits)));
        await archive.forget([place.digits]);
        await relay.forget(place.digits);
      }
    },
    async start(to) {
      reports = to;
      await relay.start(to);
    },
    close: () => relay.close(),
  };
}
