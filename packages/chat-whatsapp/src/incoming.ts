/** Turns Baileys' events into the gateway's reports and address-book entries. */
import type {
  Chat as BaileysChat,
  Contact as BaileysContact,
  BaileysEventMap,
  WAMessage,
  WAMessageKey,
} from 'baileys';
import { MessageStatus } from 'soundpost-contract/job';
import type { Line, SocketEvents } from './connection.ts';
import { IncomingMessages } from './incoming-messages.ts';
import { isGroupJid } from './phone-jid.ts';

type IncomingOptions = ConstructorParameters<typeof IncomingMessages>[0];

type Handlers = {
  readonly [Name in keyof BaileysEventMap]?: (line: Line, data: BaileysEventMap[Name]) => Promise<void>;
};

const callStatuses = ['offer', 'reject', 'timeout', 'terminate', 'accept'] as const;
/** Active calls; rejecting one needs the caller's address as WhatsApp wrote it. */
const REMEMBERED_CALLS = 100;

export class Incoming {
  readonly #options: IncomingOptions;
  readonly #callers = new Map<string, string>();
  /** Audio downloads slowly and must not hold up receipts, so each has a queue of its own. */
  #messages: Promise<void> = Promise.resolve();
  #others: Promise<void> = Promise.resolve();

  readonly #arrivals: IncomingMessages;

  readonly #ofMessages: Handlers = {
    'messages.upsert': (line, { messages }) => this.#arrived(line, messages, false),
    'messaging-history.set': async (line, { messages }) => {
      if (this.#options.settings().syncFullHistory) {
        await this.#arrived(line, messages, true);
      }
    },
    'messages.update': async (line, updates) => {
      for (const update of updates) {
        await this.#attempt(() => this.#arrivals.updated(line, update));
      }
    },
  };

  readonly #ofOthers: Handlers = {
    'messages.upsert': async (line, { messages }) => {
      for (const message of messages) {
        await this.#attempt(() => this.#arrivals.learn(line, message));
      }
    },
    'messages.update': async (line, updates) => {
      for (const { key, update } of updates) {
        await this.#status(line, key, update);
      }
    },
    'message-receipt.update': async (_line, receipts) => {
      const { reports, instanceId, ownJid, identities } = this.#options;
      for (const { key, receipt } of receipts) {
        // A receipt by the account itself: another device of it read somebody else's message.
        const own = (await identities.shown(receipt.userJid)) === ownJid();
        if (key.fromMe && key.id && !own) {
          await reports.statusChanged(instanceId, key.id, receipt.readTimestamp ? 'READ' : 'DELIVERY_ACK');
        }
      }
    },
    'presence.update': (_line, update) => this.#presence(update),
    call: async (line, calls) => {
      for (const call of calls) {
        await this.#call(line, call);
      }
    },
    'group-participants.update': (line, change) => this.#participants(line, change),
    'messaging-history.set': async (line, { contacts, chats }) => {
      await this.#learnPeople(line, contacts);
      await this.#learnChats(line, chats);
    },
    'contacts.upsert': (line, contacts) => this.#learnPeople(line, contacts),
    'contacts.update': (line, contacts) => this.#learnPeople(line, contacts),
    'chats.upsert': (line, chats) => this.#learnChats(line, chats),
    'chats.update': async (line, chats) => {
      await this.#learnChats(line, chats);
      for (const { id, ephemeralExpiration } of chats) {
        if (id && isGroupJid(id) && ephemeralExpiration !== undefined) {
          await this.#options.groups.change(line, { id, ephemeralDuration: ephemeralExpiration ?? 0 });
        }
      }
    },
    'chats.delete': (_line, jids) => this.#options.book.forgetChats(jids),
    'groups.upsert': async (line, groups) => {
      await this.#options.groups.learn(line, groups);
      await this.#options.book.learnGroups(groups);
    },
    'groups.update': async (line, groups) => {
      for (const group of groups) {
        await this.#options.groups.change(line, group);
      }
      await this.#options.book.learnGroups(groups);
    },
    'blocklist.set': async (_line, { blocklist }) => this.#options.book.learnBlocked(blocklist, true),
    'blocklist.update': async (_line, { blocklist, type }) =>
      type === 'add'
        ? this.#options.book.learnBlocked(blocklist, false)
        : this.#options.book.learnUnblocked(blocklist),
  };

  constructor(options: IncomingOptions) {
    this.#options = options;
    this.#arrivals = new IncomingMessages(options);
  }

  receive(line: Line, events: SocketEvents): void {
    this.#messages = this.#messages.then(() => this.#run(this.#ofMessages, line, events));
    this.#others = this.#others.then(() => this.#run(this.#ofOthers, line, events));
  }

  /** The caller's address as WhatsApp wrote it. */
  callerOf(callId: string): string | undefined {
    return this.#callers.get(callId);
  }

  /** Resolves when all received events have been handled. */
  async settled(): Promise<void> {
    await Promise.all([this.#messages, this.#others]);
  }

  async #run(handlers: Handlers, line: Line, events: SocketEvents): Promise<void> {
    for (const name of Object.keys(events) as (keyof BaileysEventMap)[]) {
      await this.#attempt(async () => handle(handlers, name, line, events));
    }
  }

  /** An event that fails is dropped; those after it are still handled. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    const { logger, instanceId } = this.#options;
    try {
      await work();
    } catch (error) {
      logger.error({ err: error, instanceId }, 'an event of whatsapp could not be reported');
    }
  }

  async #arrived(line: Line, messages: readonly WAMessage[], isHistory: boolean): Promise<void> {
    for (const message of messages) {
      await this.#attempt(() => this.#arrivals.arrived(line, message, isHistory));
    }
  }

  async #status({ library }: Line, key: WAMessageKey, update: Partial<WAMessage>): Promise<void> {
    if (!key.fromMe || !key.id || typeof update.status !== 'number') {
      return;
    }
    // Baileys' status names are those of the contract.
    const status = MessageStatus.safeParse(library.proto.WebMessageInfo.Status[update.status]).data;
    const { reports, instanceId, acknowledgements } = this.#options;
    if (status === 'ERROR' && acknowledgements.refused(key.id, update.messageStubParameters?.[0])) {
      // The waiting send rejects instead; the message was never sent.
      return;
    }
    if (status !== undefined) {
      await reports.statusChanged(instanceId, key.id, status);
    }
  }

  async #learnPeople(line: Line, contacts: readonly Partial<BaileysContact>[]): Promise<void> {
    const { identities, book } = this.#options;
    await identities.learn(
      line,
      contacts.map(({ id, phoneNumber, lid }) => [id, phoneNumber ?? lid]),
    );
    await book.learnPeople(contacts);
  }

  async #learnChats(line: Line, chats: readonly Partial<BaileysChat>[]): Promise<void> {
    const { identities, book, timers } = this.#options;
    await identities.learn(
      line,
      chats.map(({ id, pnJid, lidJid }) => [id, pnJid ?? lidJid]),
    );
    await book.learnChats(chats);
    for (const { id, ephemeralExpiration, ephemeralSettingTimestamp } of chats) {
      // Null: somebody has turned it off.
      if (id && !isGroupJid(id) && ephemeralExpiration !== undefined) {
        await timers.learn(id, ephemeralExpiration ?? 0, Number(ephemeralSettingTimestamp ?? 0));
      }
    }
  }

  async #presence({ id, presences }: BaileysEventMap['presence.update']): Promise<void> {
    const { reports, instanceId, identities } = this.#options;
    const chatJid = (await identities.shown(id)) ?? id;
    for (const [participant, { lastKnownPresence }] of Object.entries(presences)) {
      const whoseJid = (await identities.shown(participant)) ?? participant;
      await reports.presenceChanged(instanceId, chatJid, lastKnownPresence, whoseJid);
    }
  }

  async #call(line: Line, call: BaileysEventMap['call'][number]): Promise<void> {
    const { reports, instanceId, identities } = this.#options;
    const status = callStatuses.find((word) => word === call.status);
    if (status === undefined) {
      return;
    }
    const oldest = this.#callers.keys().next().value;
    if (this.#callers.size >= REMEMBERED_CALLS && oldest !== undefined) {
      this.#callers.delete(oldest);
    }
    this.#callers.set(call.id, call.from);
    await identities.learn(line, [[call.from, call.callerPn]]);
    await reports.callChanged(instanceId, {
      callId: call.id,
      fromJid: (await identities.shown(call.from, call.callerPn)) ?? call.from,
      ...(call.isGroup && { chatJid: call.chatId, isGroup: true }),
      ...(call.offline && { isOffline: true }),
      isVideo: call.isVideo ?? false,
      timestampSeconds: Math.floor(call.date.getTime() / 1000),
      status,
    });
  }

  async #participants(line: Line, change: BaileysEventMap['group-participants.update']): Promise<void> {
    const { reports, instanceId, book, groups, ownJid, identities } = this.#options;
    await groups.rekey(line, change.id);
    await identities.learn(line, [
      [change.author, change.authorPn],
      ...change.participants.map(({ id, phoneNumber, lid }) => [id, phoneNumber ?? lid] as const),
    ]);
    // `modify` reports a changed phone number.
    if (change.action === 'modify') {
      return;
    }
    const authorJid = await identities.shown(change.author, change.authorPn);
    const participants = await Promise.all(
      change.participants.map(async ({ id, phoneNumber }) => (await identities.shown(id, phoneNumber)) ?? id),
    );
    if (change.action === 'remove' && participants.includes(ownJid())) {
      await book.forgetGroup(change.id);
    }
    await reports.participantsChanged(instanceId, {
      groupJid: change.id,
      action: change.action,
      participants,
      ...(authorJid === undefined ? {} : { authorJid }),
    });
  }
}

async function handle<Name extends keyof BaileysEventMap>(
  handlers: Handlers,
  name: Name,
  line: Line,
  events: SocketEvents,
): Promise<void> {
  const data = events[name];
  if (data !== undefined) {
    await handlers[name]?.(line, data);
  }
}
