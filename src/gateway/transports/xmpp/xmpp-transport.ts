/** XMPP as a transport: any account on any server of the open network (docs/xmpp.md). */
import { GatewayError } from '../../../contract/gateway-errors.ts';
import type { Logger } from '../../../logger.ts';
import type { Outbound } from '../../../outbound/outbound.ts';
import type { Redis } from '../../../queue/redis.ts';
import type { MessageLog } from '../../message-log.ts';
import type { Transport, TransportReports } from '../../transport.ts';
import { Account } from './account.ts';
import { XmppSession } from './xmpp-session.ts';

export interface XmppOptions {
  readonly redis: Redis;
  readonly outbound: Pick<Outbound, 'put' | 'serviceAddresses'>;
  readonly log: MessageLog;
  readonly logger: Logger;
}

export function createXmppTransport({ redis, outbound, log, logger }: XmppOptions): Transport {
  const accounts = new Map<string, { account: Account; session: XmppSession }>();
  let reports: TransportReports | undefined;
  return {
    kind: 'xmpp',
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    async open({ instance, connection, connect, hold }) {
      const known = accounts.get(instance.id);
      if (known !== undefined) {
        return known.session;
      }
      if (reports === undefined) {
        throw new Error('the XMPP transport was not started');
      }
      if (connection === undefined) {
        throw new GatewayError('bad_request', 'connection: must hold jid and password');
      }
      const account = new Account({ instance, connection, redis, outbound, log, reports, hold, logger });
      const session = new XmppSession(account);
      accounts.set(instance.id, { account, session });
      if (connect) {
        account.stream.start();
      }
      return session;
    },
    async letGo(instanceId) {
      const known = accounts.get(instanceId);
      accounts.delete(instanceId);
      await known?.account.close();
    },
    async remove(instance) {
      const known = accounts.get(instance.id);
      accounts.delete(instance.id);
      await known?.account.stream.stop();
      await known?.account.memory.clear();
    },
    async close() {
      await Promise.all([...accounts.values()].map(({ account }) => account.close()));
    },
  };
}
