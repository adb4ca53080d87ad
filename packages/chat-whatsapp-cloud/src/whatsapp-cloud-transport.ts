/**
 * WhatsApp through Meta's Cloud API, the way that Meta allows (docs/whatsapp-cloud.md). An instance
 * is one business number; all its state is in Redis.
 */
import { createHmac } from 'node:crypto';
import { jsonOf } from 'soundpost-base/json';
import type { Logger } from 'soundpost-base/logger';
import { ChatBook } from 'soundpost-chat/chat-book';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Transport, TransportReports, WebhookCall } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { WhatsAppCloudConnection } from 'soundpost-contract/gateway-instances';
import type { Redis } from 'soundpost-kit/redis/connection';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { Outbound } from 'soundpost-outbound/outbound';
import { Graph } from './graph.ts';
import { Incoming } from './incoming.ts';
import { CloudSession } from './session.ts';
import { ChangeTarget, WebhookBody } from './webhook-body.ts';

interface WhatsAppCloudOptions {
  readonly redis: Redis;
  readonly outbound: Pick<Outbound, 'call'>;
  readonly log: Pick<MessageLog, 'find' | 'idOf'>;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly lease: Lease;
  readonly logger: Logger;
  /** Base of the Graph API with its version, without trailing slash. Default: Meta's. */
  readonly graphUrl?: string | undefined;
  /** Waits before what WhatsApp limits is tried again. */
  readonly retryDelaysMs?: readonly number[];
}

/** v23.0 is the version of Meta's published OpenAPI document. */
const GRAPH_URL = 'https://graph.facebook.com/v23.0';

interface Open {
  readonly connection: WhatsAppCloudConnection;
  readonly session: CloudSession;
  readonly incoming: Incoming;
  readonly book: ChatBook;
}

export function createWhatsAppCloudTransport(options: WhatsAppCloudOptions): Transport {
  const opened = new Map<string, Open>();
  const closing = new AbortController();
  let reports: TransportReports | undefined;
  return {
    kind: 'whatsapp-cloud',
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    async open({ instance, connection, connect }) {
      const known = opened.get(instance.id);
      if (known !== undefined) return known.session;
      if (reports === undefined) throw new Error('the whatsapp-cloud transport was not started');
      if (connection === undefined || !('phoneNumberId' in connection)) {
        throw new GatewayError('bad_request', 'connection: must hold phoneNumberId and accessToken');
      }
      const open = compose(instance, connection, options, reports, closing.signal);
      opened.set(instance.id, open);
      if (connect) {
        await open.session.connect();
        open.incoming.drain();
      }
      return open.session;
    },
    async webhook(instance, call) {
      const open = opened.get(instance.id);
      if (open === undefined) return { status: 403 };
      return call.method === 'GET'
        ? challenge(open.connection, call)
        : take(open, call, [...opened.values()], options.logger);
    },
    async remove(instance) {
      const open = opened.get(instance.id);
      await open?.session.logout();
      await open?.incoming.erase();
      await open?.book.erase();
      opened.delete(instance.id);
    },
    async close() {
      closing.abort(new Error('the gateway is stopping'));
    },
  };
}

function compose(
  instance: Instance,
  connection: WhatsAppCloudConnection,
  options: WhatsAppCloudOptions,
  reports: TransportReports,
  stopping: AbortSignal,
): Open {
  const { redis, outbound, lease, logger, graphUrl = GRAPH_URL, retryDelaysMs } = options;
  const closing = AbortSignal.any([stopping, lease.lost]);
  const book = new ChatBook(redis, instance.id);
  const graph = new Graph({
    ...{ outbound, graphUrl, connection, retryDelaysMs },
    onTokenExpired: (reason) =>
      void session
        .end(reason)
        .catch((error: unknown) =>
          logger.warn({ err: error, instance: instance.name }, 'not told: expired token'),
        ),
  });
  const parts = { ...options, instance, connection, graph, book, reports, closing };
  const session: CloudSession = new CloudSession(parts);
  return { connection, session, book, incoming: new Incoming({ ...parts, session }) };
}

/** …/graph-api/webhooks/getting-started "Verification requests" */
function challenge({ verifyToken }: WhatsAppCloudConnection, { query }: WebhookCall) {
  const isMeta =
    query.get('hub.mode') === 'subscribe' && isSameSecret(query.get('hub.verify_token') ?? '', verifyToken);
  return isMeta ? { status: 200, text: query.get('hub.challenge') ?? '' } : { status: 403 };
}

/**
 * An app has one address for all its numbers, so an event may be about another instance. It goes
 * only to those of the same app, by their secret: nobody can forge an event of another's.
 */
async function take(
  { connection: { appSecret } }: Open,
  { header, body: read }: WebhookCall,
  all: readonly Open[],
  logger: Logger,
): Promise<{ status: number }> {
  // …/graph-api/webhooks/getting-started "Validating payloads"
  const given = header('x-hub-signature-256');
  const body = given === undefined ? undefined : await read();
  if (given === undefined || body === undefined) return { status: 403 };
  const expected = `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`;
  if (!isSameSecret(given, expected)) return { status: 403 };
  const parsed = WebhookBody.safeParse(jsonOf(body)).data;
  if (parsed === undefined) {
    // Repeating it would not help.
    logger.warn('Meta sent a webhook that cannot be read');
    return { status: 200 };
  }
  for (const { field, value } of parsed.entry.flatMap(({ changes }) => changes)) {
    const id = ChangeTarget.safeParse(value).data?.metadata.phone_number_id;
    const meant = all.filter(
      ({ connection }) => connection.phoneNumberId === id && isSameSecret(connection.appSecret, appSecret),
    );
    if (meant.length === 0) logger.info({ phoneNumberId: id, field }, 'a webhook is about no instance');
    for (const { incoming } of meant) await incoming.take(field, value);
  }
  return { status: 200 };
}
