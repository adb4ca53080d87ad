/** XMPP as a transport: any account on any server of the open network (docs/xmpp.md). */

import type { Logger } from 'soundpost-base/logger';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Transport, TransportReports } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Outbound } from 'soundpost-outbound/outbound';
import { Account } from './account.ts';
import { XmppSession } from './xmpp-session.ts';

interface XmppOptions {
  readonly redis: Redis;
  readonly outbound: Pick<Outbound, 'put' | 'serviceAddresses'>;
  readonly log: MessageLog;
  readonly lease: Lease;
  readonly logger: Logger;
}

export function createXmppTransport(options: XmppOptions): Transport {
  const accounts = new Map<string, { account: Account; session: XmppSession }>();
  let reports: TransportReports | undefined;
  return {
    kind: 'xmpp',
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    async open({ instance, connection, connect }) {
      const known = accounts.get(instance.id);
      if (known !== undefined) {
        return known.session;
      }
      if (reports === undefined) {
        throw new Error('the XMPP transport was not started');
      }
      if (connection === undefined || !('jid' in connection)) {
        throw new GatewayError('bad_request', 'connection: must hold jid and password');
      }
      const account = new Account({ ...options, instance, connection, reports });
      const session = new XmppSession(account);
      accounts.set(instance.id, { account, session });
      if (connect) {
        account.stream.start();
      }
      return session;
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
