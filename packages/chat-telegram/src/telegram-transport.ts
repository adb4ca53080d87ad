/**
 * Telegram through its Bot API: an instance is a bot (docs/telegram.md). All state is in Redis or
 * at Telegram.
 */
import { parseJson } from 'soundpost-base/json';
import type { Logger } from 'soundpost-base/logger';
import { ChatBook } from 'soundpost-chat/chat-book';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Transport, TransportReports } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { TelegramConnection } from 'soundpost-contract/gateway-instances';
import type { Redis } from 'soundpost-kit/redis/connection';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { notPublic, parseAddress } from 'soundpost-outbound/address-table';
import { localName } from 'soundpost-outbound/allow-rules';
import type { Outbound } from 'soundpost-outbound/outbound';
import { BotApi, PUBLIC_SERVER } from './api.ts';
import { ChatActions } from './chat-actions.ts';
import { Connection, webhookPath } from './connection.ts';
import { REVOKED } from './failure.ts';
import { Incoming } from './incoming.ts';
import { Outgoing } from './outgoing.ts';
import { TelegramSession } from './session.ts';

interface TelegramOptions {
  readonly redis: Redis;
  readonly outbound: Pick<Outbound, 'call'>;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly log: MessageLog;
  readonly lease: Lease;
  readonly logger: Logger;
  /** The gateway's own, without trailing slash. */
  readonly publicUrl: string;
  /** Base of the Bot API, without trailing slash. Default: Telegram's public server. */
  readonly apiUrl?: string | undefined;
  /** Delay before the nth attempt in a row. Default: 1 s, doubled each time, at most 60 s. */
  readonly retryDelayMs?: (attempt: number) => number;
}

interface Open {
  readonly session: TelegramSession;
  readonly connection: Connection;
  readonly actions: ChatActions;
  readonly book: ChatBook;
  /** Resolves once the latest change of the connection was reported. */
  readonly reported: () => Promise<void>;
}

/** The ports that Telegram posts to (core.telegram.org/bots/api#setwebhook). */
const WEBHOOK_PORTS = [443, 80, 88, 8443];
const LONGEST_RETRY_DELAY_MS = 60_000;

export function createTelegramTransport(options: TelegramOptions): Transport {
  const opened = new Map<string, Open>();
  let reports: TransportReports | undefined;
  return {
    kind: 'telegram',
    hasOtherSide: false,
    async start(to) {
      reports = to;
    },
    async open({ instance, connection: given, connect }) {
      if (reports === undefined) throw new Error('the telegram transport was not started');
      if (given === undefined || !('botToken' in given)) {
        throw new GatewayError('bad_request', 'connection: must hold botToken');
      }
      const open = opened.get(instance.id) ?? compose(instance, given, options, reports);
      opened.set(instance.id, open);
      if (connect) open.connection.connect();
      return open.session;
    },
    async webhook(instance, { method, header, body }) {
      const open = opened.get(instance.id);
      const given = header('x-telegram-bot-api-secret-token') ?? '';
      if (method !== 'POST' || open === undefined || !isSameSecret(given, open.connection.secretToken)) {
        return { status: 403 };
      }
      const text = await body();
      if (text === undefined) return { status: 403 };
      await open.connection.receive(parseJson(text));
      return { status: 200 };
    },
    async remove(instance) {
      const open = opened.get(instance.id);
      await open?.session.logout();
      await open?.reported();
      await open?.book.erase();
      opened.delete(instance.id);
    },
    async close() {
      for (const { connection, actions } of opened.values()) {
        actions.close();
        connection.close();
      }
    },
  };
}

function compose(
  instance: Instance,
  { botToken }: TelegramConnection,
  options: TelegramOptions,
  reports: TransportReports,
): Open {
  const { redis, outbound, workspaces, log, lease, logger, publicUrl } = options;
  const instanceId = instance.id;
  const api = new BotApi(outbound, options.apiUrl ?? PUBLIC_SERVER, botToken);
  const book = new ChatBook(redis, instanceId);
  const actions = new ChatActions(api, logger);
  let reporting = Promise.resolve();
  const revoked = (): void => connection.end(REVOKED);
  const outgoing = new Outgoing({ ...{ instanceId, api, log, book, lease, reports }, revoked });
  const incoming = new Incoming({
    ...{ instanceId, api, log, book, reports, workspaces, logger },
    moved: (from, to) => outgoing.moved(from, to),
  });
  const connection: Connection = new Connection({
    ...{ instanceId, botToken, api, lease, logger },
    webhookUrl: takesWebhooks(publicUrl) ? `${publicUrl}${webhookPath(instanceId)}` : undefined,
    retryDelayMs: options.retryDelayMs ?? retryDelayMs,
    received: (update, signal) => incoming.handle(update, signal),
    // Not awaited: the gateway may be waiting for this session.
    stateChanged: (state, reason) => {
      reporting = reports
        .connectionChanged(instanceId, state, reason)
        .catch((error: unknown) =>
          logger.warn({ err: error, instanceId }, 'a change of the connection could not be reported'),
        );
    },
  });
  const session = new TelegramSession({
    ...{ instanceId, api, connection, book, outgoing, actions, reports },
  });
  return { session, connection, actions, book, reported: () => reporting };
}

/** Whether Telegram can post to the gateway: a public https address on one of its ports. */
function takesWebhooks(publicUrl: string): boolean {
  const { protocol, hostname, port } = new URL(publicUrl);
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''));
  const notThere = address === undefined ? localName(hostname) : notPublic(address);
  return protocol === 'https:' && WEBHOOK_PORTS.includes(Number(port || 443)) && notThere === undefined;
}

/** Jitter keeps many instances from reconnecting at the same moment. */
function retryDelayMs(attempt: number): number {
  return Math.min(1000 * 2 ** (attempt - 1), LONGEST_RETRY_DELAY_MS) * (0.75 + Math.random() / 2);
}
