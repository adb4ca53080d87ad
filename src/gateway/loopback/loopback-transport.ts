/** The gateway's own small chat network as a transport: for trials, tests and the voice inbox. */
import type { Logger } from 'soundpost-base/logger';
import type { Instances } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Transport, TransportReports } from 'soundpost-chat/transport';
import type { Redis } from 'soundpost-kit/redis/connection';
import { Archive, Directory } from './directory.ts';
import { Groups } from './groups.ts';
import { LoopbackSession } from './loopback-session.ts';
import { Calls, PeopleSide } from './people-side.ts';
import { Relay } from './relay.ts';

interface LoopbackOptions {
  readonly redis: Redis;
  readonly log: MessageLog;
  readonly instances: Instances;
  /** Absolute base of invitations without trailing slash. */
  readonly publicUrl: string;
  /** How long the network keeps messages, seconds. */
  readonly keepSeconds: number;
  readonly lease: Lease;
  readonly logger: Logger;
}

export function createLoopbackTransport(options: LoopbackOptions): Transport {
  const { redis, log, instances, publicUrl, keepSeconds, lease, logger } = options;
  const directory = new Directory(redis);
  const groups = new Groups(redis);
  const archive = new Archive(redis, keepSeconds);
  const relay = new Relay({ redis, directory, groups, archive, instances, lease });
  const calls = new Calls(redis);
  let reports: TransportReports | undefined;
  return {
    kind: 'loopback',
    hasOtherSide: true,
    async open({ instance, connect }) {
      if (reports === undefined) {
        throw new Error('the loopback network was not started');
      }
      const place = await directory.placeOf(instance);
      const parts = {
        instance,
        digits: place.digits,
        directory,
        groups,
        relay,
        calls,
        reports,
      };
      const session = new LoopbackSession({
        ...parts,
        publicUrl,
        otherSide: new PeopleSide({ ...parts, log }),
        isAway: await relay.isAway(place.digits),
      });
      if (connect) {
        // Not awaited: reporting waiting messages calls the gateway, which awaits this session.
        session
          .connect()
          .catch((error: unknown) =>
            logger.error({ err: error, instance: instance.name }, 'connecting failed'),
          );
      }
      return session;
    },
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
      relay.start(to);
    },
    close: async () => undefined,
  };
}
