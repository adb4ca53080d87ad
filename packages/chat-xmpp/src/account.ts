/** One account on its server: the parts that keep it connected, wired to each other. */

import type { Logger } from 'soundpost-base/logger';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { TransportReports } from 'soundpost-chat/transport';
import type { ConnectionState, InstanceSettings, XmppConnection } from 'soundpost-contract/gateway-instances';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Outbound } from 'soundpost-outbound/outbound';
import { AddressBook } from './address-book.ts';
import { Archive, CatchUp } from './archive.ts';
import { reportsBookmarks } from './bookmarks.ts';
import { Delivery } from './delivery.ts';
import { announcement, capabilities, Discovery } from './discovery.ts';
import { attribute, type Element, xml } from './element.ts';
import { conditionOf } from './failure.ts';
import { Groups } from './groups.ts';
import { Inbound } from './inbound.ts';
import { bareOf, domainOf, localOf } from './jid.ts';
import { Memory } from './memory.ts';
import { ns } from './namespaces.ts';
import { Rooms } from './rooms.ts';
import { Stream, type StreamListener } from './stream.ts';

interface AccountOptions {
  readonly instance: Instance;
  readonly connection: XmppConnection;
  readonly redis: Redis;
  readonly outbound: Pick<Outbound, 'put' | 'serviceAddresses'>;
  readonly log: MessageLog;
  readonly reports: TransportReports;
  readonly lease: Lease;
  readonly logger: Logger;
}

export class Account implements StreamListener {
  readonly instanceId: string;
  readonly ownJid: string;
  readonly reports: TransportReports;
  readonly log: MessageLog;
  readonly outbound: Pick<Outbound, 'put'>;
  readonly stream: Stream;
  readonly archive: Archive;
  readonly addressBook: AddressBook;
  readonly rooms: Rooms;
  readonly discovery: Discovery;
  readonly groups: Groups;
  readonly memory: Memory;
  readonly delivery: Delivery;
  readonly inbound: Inbound;
  readonly #catchUp: CatchUp;
  readonly #logger: Logger;
  #settings: InstanceSettings;
  #closing = false;
  /** Stanzas are handled one after the other, in order of arrival. */
  #work: Promise<void> = Promise.resolve();

  constructor({ instance, connection, redis, outbound, log, reports, lease, logger }: AccountOptions) {
    const { jid, password } = connection;
    const ownJid = bareOf(jid);
    const domain = domainOf(jid);
    const instanceId = instance.id;
    this.#logger = logger.child({ instance: instance.name });
    this.#settings = instance.settings;
    this.instanceId = instanceId;
    this.ownJid = ownJid;
    this.reports = reports;
    this.log = log;
    this.outbound = outbound;
    const stream = new Stream(
      {
        local: localOf(jid),
        domain,
        password,
        service: connection.service ?? undefined,
        // The same in every process: when another process takes the instance over, the server ends
        // the old connection (RFC 6120, 7.7.2.2).
        resource: `soundpost-${instanceId.slice(0, 8)}`,
        deviceId: instanceId,
        guard: outbound,
        lease,
        logger: this.#logger,
      },
      this,
    );
    const memory = new Memory(redis, instanceId, lease);
    const rooms = new Rooms(stream);
    const addressBook = new AddressBook(stream, ownJid);
    const archive = new Archive(stream, ownJid);
    this.stream = stream;
    this.memory = memory;
    this.rooms = rooms;
    this.addressBook = addressBook;
    this.archive = archive;
    this.discovery = new Discovery({
      stream,
      domain,
      uploadService: connection.uploadService ?? undefined,
      mucService: connection.mucService ?? undefined,
    });
    this.groups = new Groups({ stream, rooms, memory, discovery: this.discovery, nick: localOf(jid) });
    this.delivery = new Delivery({ stream, archive, memory, rooms, addressBook, ownJid });
    this.inbound = new Inbound({
      instanceId,
      ownJid,
      stream,
      rooms,
      addressBook,
      memory,
      log,
      reports,
      marksRead: () => this.#settings.readMessages,
      logger: this.#logger,
    });
    this.#catchUp = new CatchUp({
      archive,
      memory,
      inbound: this.inbound,
      wantsHistory: () => this.#settings.syncFullHistory,
      logger: this.#logger,
    });
  }

  get settings(): InstanceSettings {
    return this.#settings;
  }

  async applySettings(settings: InstanceSettings): Promise<void> {
    const before = this.#settings;
    this.#settings = settings;
    if (this.stream.state !== 'open') {
      return;
    }
    if (before.alwaysOnline !== settings.alwaysOnline) {
      await this.#showPresence();
    }
    if (before.groupsIgnore) {
      this.#enterKeptRooms();
    }
  }

  /** Leaves the network, but still handles what has arrived. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.stream.stop();
    await this.#work;
  }

  async prepare(): Promise<void> {
    this.rooms.forget();
    this.discovery.forget();
    await this.addressBook.load();
    await this.stream
      .query('set', xml('enable', { xmlns: ns.carbons }))
      // Without carbons the account still works: the archive has what other devices send.
      .catch((error: unknown) => {
        if (conditionOf(error) === undefined) throw error;
      });
    await this.#showPresence();
  }

  opened(): void {
    this.#catchUp.start();
    this.#enterKeptRooms();
  }

  stateChanged(state: ConnectionState, reason?: string): void {
    // A shutdown of the gateway does not concern the account.
    if (this.#closing) {
      return;
    }
    this.reports
      .connectionChanged(this.instanceId, state, reason)
      .catch((error: unknown) => this.#logger.error({ err: error }, 'a connection change was not reported'));
  }

  stanza(stanza: Element): void {
    if (this.archive.take(stanza)) {
      return;
    }
    if (stanza.name === 'message' && attribute(stanza, 'type') === 'error') {
      this.delivery.notice(stanza);
    }
    this.#work = this.#work
      .then(() => this.#handle(stanza))
      .catch((error: unknown) => this.#logger.error({ err: error }, 'a stanza could not be dealt with'));
  }

  query(query: Parameters<StreamListener['query']>[0]): Element | true | undefined {
    if (query.type === 'get' && query.child.is('query', ns.discoInfo)) {
      return capabilities(attribute(query.child, 'node'));
    }
    return this.addressBook.changed(query) ? true : undefined;
  }

  async #handle(stanza: Element): Promise<void> {
    if (stanza.name === 'presence') {
      await this.inbound.presence(stanza);
      return;
    }
    if (bareOf(attribute(stanza, 'from') ?? this.ownJid) === this.ownJid && reportsBookmarks(stanza)) {
      this.#enterKeptRooms();
    }
    await this.inbound.message(stanza);
    const archived = stanza
      .getChildren('stanza-id', ns.stanzaId)
      .find(({ attrs }) => attrs.by === this.ownJid)?.attrs.id;
    if (typeof archived === 'string') {
      await this.#catchUp.seen(archived);
    }
  }

  /** Ignored rooms are entered only to send a message. */
  #enterKeptRooms(): void {
    if (!this.#settings.groupsIgnore) {
      this.groups
        .enterKept()
        .catch((error: unknown) => this.#logger.warn({ err: error }, 'the kept rooms could not be read'));
    }
  }

  /** RFC 6121 §4.7.2.1: an account that is away still receives everything. */
  async #showPresence(): Promise<void> {
    const show = this.#settings.alwaysOnline ? [] : [xml('show', {}, 'away')];
    await this.stream.send(xml('presence', {}, ...show, announcement()));
  }
}
