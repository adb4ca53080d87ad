/**
 * WhatsApp through the package `baileys`: unofficial, and against WhatsApp's terms of service
 * (docs/whatsapp.md). Builds the parts of an instance; all state is in Redis.
 */

import type { UserFacingSocketConfig } from 'baileys';
import type { Logger } from 'soundpost-base/logger';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Transport, TransportReports } from 'soundpost-chat/transport';
import type { InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { Outbound } from 'soundpost-outbound/outbound';
import { Acknowledgements } from './acknowledgements.ts';
import { AddressBook } from './address-book.ts';
import { Connection } from './connection.ts';
import { Groups } from './groups.ts';
import { Identities } from './identities.ts';
import { Incoming } from './incoming.ts';
import { KeptMessages } from './kept-messages.ts';
import { type BaileysLibrary, loadBaileys, missingLibrary } from './library.ts';
import { guardedRequests } from './network-request.ts';
import { Outgoing } from './outgoing.ts';
import { isGroupJid, isPersonJid } from './phone-jid.ts';
import { ProtocolVersion } from './protocol-version.ts';
import { Recipients } from './recipients.ts';
import { WhatsAppSession } from './session.ts';
import { SessionStore } from './session-store.ts';
import { Timers } from './timers.ts';

interface WhatsAppOptions {
  readonly redis: Redis;
  /** Carries Baileys' own requests. */
  readonly outbound: Pick<Outbound, 'service'>;
  readonly sealer: Sealer;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly lease: Lease;
  readonly log: Pick<MessageLog, 'find'>;
  readonly logger: Logger;
  /** Client version sent to WhatsApp. Default: the package's, then the page's. */
  readonly version?: ProtocolVersion['current'] | undefined;
  /** Default: the package `baileys`, imported when it is first needed. */
  readonly library?: () => Promise<BaileysLibrary>;
  /** Delay before the nth attempt in a row. Default: 1 s, doubled each time, at most 60 s. */
  readonly retryDelayMs?: (attempt: number) => number;
}

const LONGEST_RETRY_DELAY_MS = 60_000;

interface Open {
  readonly session: WhatsAppSession;
  readonly connection: Connection;
  readonly incoming: Incoming;
}

export function createWhatsAppTransport(options: WhatsAppOptions): Transport {
  const { outbound, logger } = options;
  const version = new ProtocolVersion({ set: options.version, outbound, logger });
  const opened = new Map<string, Open>();
  let reports: TransportReports | undefined;
  const find = (instance: Instance): Open => {
    if (reports === undefined) {
      throw new Error('the whatsapp transport was not started');
    }
    const open = opened.get(instance.id) ?? compose(instance, options, version, reports);
    opened.set(instance.id, open);
    return open;
  };
  const cannotConnect = (instance: Instance, error: unknown): void =>
    logger.warn({ err: error, instance: instance.name }, 'an instance on whatsapp cannot be connected');
  return {
    kind: 'whatsapp',
    hasOtherSide: false,
    missing: missingLibrary,
    async open({ instance, connect }) {
      const { session, connection } = find(instance);
      try {
        // Pairing needs a person, so only a paired account reconnects by itself.
        if (connection.state === 'close' && (await connection.restore()) && connect) {
          connection.connect().catch((error: unknown) => cannotConnect(instance, error));
        }
      } catch (error) {
        cannotConnect(instance, error);
      }
      return session;
    },
    async remove(instance) {
      await opened.get(instance.id)?.session.logout();
      opened.delete(instance.id);
    },
    async start(to) {
      reports = to;
    },
    async close() {
      await Promise.all(
        [...opened.values()].map(async ({ connection, incoming }) => {
          await connection.close();
          await incoming.settled();
        }),
      );
    },
  };
}

function compose(
  instance: Instance,
  options: WhatsAppOptions,
  version: ProtocolVersion,
  reports: TransportReports,
): Open {
  const { redis, outbound, sealer, workspaces, lease, log, logger } = options;
  const instanceId = instance.id;
  let settings: InstanceSettings = instance.settings;
  const store = new SessionStore({ redis, sealer, instanceId, lease, logger });
  const identities = new Identities(store);
  const book = new AddressBook(redis, identities, instanceId);
  const timers = new Timers(redis, identities, instanceId);
  const groups = new Groups(identities);
  const acknowledgements = new Acknowledgements();
  const kept = new KeptMessages({ redis, sealer, instanceId });
  const warn = (error: unknown, message: string): void => logger.warn({ err: error, instanceId }, message);
  const connection: Connection = new Connection({
    instanceId,
    instanceName: instance.name,
    lease,
    library: options.library ?? loadBaileys,
    store,
    logger,
    version,
    socketConfig: socketConfig(options, instanceId, {
      settings: () => settings,
      group: (jid) => groups.get(connection.line(), jid),
      kept,
    }),
    retryDelayMs: options.retryDelayMs ?? retryDelayMs,
    stateChanged: (state, reason, code) => {
      if (state === 'open') {
        refresh(connection, groups, book).catch((error: unknown) =>
          warn(error, 'groups and blocked people could not be fetched'),
        );
      } else {
        acknowledgements.abandon();
      }
      // Not awaited: the gateway may be waiting for this session.
      reports
        .connectionChanged(instanceId, state, reason, code)
        .catch((error: unknown) => warn(error, 'a change of the connection could not be reported'));
    },
    pairingChanged: (pairing) => {
      reports
        .pairingChanged?.(instanceId, pairing)
        .catch((error: unknown) => warn(error, 'a pairing code could not be reported'));
    },
    received: (line, events) => incoming.receive(line, events),
    acknowledged: (messageId) => {
      acknowledgements.accepted(messageId);
      reports
        .statusChanged(instanceId, messageId, 'SERVER_ACK')
        .catch((error: unknown) => warn(error, 'a status could not be reported'));
    },
  });
  const incoming: Incoming = new Incoming({
    ...{ instanceId, reports, acknowledgements, outbound, workspaces, logger },
    ...{ book, groups, identities, timers, kept },
    ownJid: () => connection.ownJid,
    settings: () => settings,
  });
  const recipients = new Recipients(book, groups, identities);
  const session = new WhatsAppSession({
    connection,
    book,
    groups,
    identities,
    recipients,
    outgoing: new Outgoing({
      ...{ instanceId, connection, acknowledgements, kept, recipients, identities },
      ...{ groups, timers, log, lease },
    }),
    incoming,
    forget: async () => {
      await incoming.settled();
      await Promise.all([book.erase(), kept.erase(), timers.erase()]);
    },
    settingsChanged: (changed) => {
      settings = changed;
    },
  });
  return { session, connection, incoming };
}

/** Called for each attempt, because the settings may have changed. */
function socketConfig(
  { outbound, logger }: WhatsAppOptions,
  instanceId: string,
  of: {
    readonly settings: () => InstanceSettings;
    readonly group: (jid: string) => ReturnType<Groups['get']>;
    readonly kept: KeptMessages;
  },
): ConstructorParameters<typeof Connection>[0]['socketConfig'] {
  return async (library) => {
    const { alwaysOnline, syncFullHistory } = of.settings();
    return {
      logger: baileysLogger(logger, instanceId),
      // For the WebSocket, uploads and fetches: the server names the hosts of the latter two.
      ...(await guardedRequests(outbound)),
      markOnlineOnConnect: alwaysOnline,
      syncFullHistory,
      ...(syncFullHistory ? { shouldSyncHistoryMessage: () => true } : {}),
      // The gateway has already recorded its own messages.
      emitOwnEvents: false,
      // Channels, status updates and broadcasts are not chats.
      shouldIgnoreJid: (jid) => !isPersonJid(jid) && !isGroupJid(jid),
      getMessage: async ({ id }) =>
        id ? ((await of.kept.find(library, id))?.message ?? undefined) : undefined,
      // Where nothing is known it queries: what Baileys queried itself, nobody would remember.
      cachedGroupMetadata: of.group,
    };
  };
}

/** Fetches what may have changed while the gateway was offline; no event reports it. */
async function refresh(connection: Connection, groups: Groups, book: AddressBook): Promise<void> {
  const line = connection.line();
  groups.forgetAll();
  const [all, blocked] = await Promise.all([
    line.socket.groupFetchAllParticipating(),
    line.socket.fetchBlocklist(),
  ]);
  await groups.learn(line, Object.values(all));
  await book.replaceGroups(Object.values(all));
  book.learnBlocked(blocked, true);
}

/** Jitter keeps many instances from reconnecting at the same moment. */
function retryDelayMs(attempt: number): number {
  return Math.min(1000 * 2 ** (attempt - 1), LONGEST_RETRY_DELAY_MS) * (0.75 + Math.random() / 2);
}

// Baileys' own log. Its records carry keys and whole stanzas, so only their message text passes.

type BaileysLogger = NonNullable<UserFacingSocketConfig['logger']>;

function baileysLogger(logger: Logger, instanceId: string): BaileysLogger {
  const pass = (record: unknown, words?: string): void => {
    const said = words ?? (typeof record === 'string' ? record : undefined);
    logger.debug({ instanceId, said }, 'baileys');
  };
  const drop = (): void => undefined;
  const self: BaileysLogger = {
    // Baileys checks the level before it builds expensive records.
    level: 'warn',
    child: () => self,
    trace: drop,
    debug: drop,
    info: drop,
    warn: pass,
    error: pass,
  };
  return self;
}
