/** Turns Baileys' events into the gateway's reports and address-book entries. */
import type { BaileysEventMap, WAMessage, WAMessageKey } from 'baileys';
import { MessageStatus } from 'soundpost-contract/job';
import type { Line, SocketEvents } from './connection.ts';
import { IncomingMessages } from './incoming-messages.ts';
import { phoneJid } from './phone-jid.ts';

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
    'messages.update': async (line, updates) => {
      for (const { key, update } of updates) {
        await this.#status(line, key, update);
      }
    },
    'message-receipt.update': async (line, receipts) => {
      const { reports, instanceId, ownJid } = this.#options;
      for (const { key, receipt } of receipts) {
        // A receipt by the account itself: another device of it read somebody else's message.
        const own = (await phoneJid(line, receipt.userJid)) === ownJid();
        if (key.fromMe && key.id && !own) {
          await reports.statusChanged(instanceId, key.id, receipt.readTimestamp ? 'READ' : 'DELIVERY_ACK');
        }
      }
    },
    'presence.update': (line, update) => this.#presence(line, update),
    call: async (line, calls) => {
      for (const call of calls) {
        await this.#call(line, call);
      }
    },
    'group-participants.update': (line, change) => this.#participants(line, change),
    'messaging-history.set': async (line, { contacts, chats }) => {
      await this.#options.book.learnPeople(line, contacts);
      await this.#options.book.learnChats(line, chats);
    },
    'contacts.upsert': (line, contacts) => this.#options.book.learnPeople(line, contacts),
    'contacts.update': (line, contacts) => this.#options.book.learnPeople(line, contacts),
    'chats.upsert': (line, chats) => this.#options.book.learnChats(line, chats),
    'chats.update': (line, chats) => this.#options.book.learnChats(line, chats),
    'chats.delete': (line, jids) => this.#options.book.forgetChats(line, jids),
    'groups.upsert': async (_line, groups) => {
      for (const group of groups) {
        this.#options.groups.learn(group);
      }
      await this.#options.book.learnGroups(groups);
    },
    'groups.update': async (_line, groups) => {
      for (const { id } of groups) {
        this.#options.groups.forget(id ?? '');
      }
      await this.#options.book.learnGroups(groups);
    },
    'blocklist.set': (line, { blocklist }) => this.#options.book.learnBlocked(line, blocklist, true),
    'blocklist.update': (line, { blocklist, type }) =>
      type === 'add'
        ? this.#options.book.learnBlocked(line, blocklist, false)
        : this.#options.book.learnUnblocked(line, blocklist),
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

  async #presence(line: Line, { id, presences }: BaileysEventMap['presence.update']): Promise<void> {
    const { reports, instanceId } = this.#options;
    const chatJid = (await phoneJid(line, id)) ?? id;
    for (const [participant, { lastKnownPresence }] of Object.entries(presences)) {
      const whoseJid = (await phoneJid(line, participant)) ?? participant;
      await reports.presenceChanged(instanceId, chatJid, lastKnownPresence, whoseJid);
    }
  }

  async #call(line: Line, call: BaileysEventMap['call'][number]): Promise<void> {
    const { reports, instanceId } = this.#options;
    const status = callStatuses.find((word) => word === call.status);
    if (status === undefined) {
      return;
    }
    const oldest = this.#callers.keys().next().value;
    if (this.#callers.size >= REMEMBERED_CALLS && oldest !== undefined) {
      this.#callers.delete(oldest);
    }
    this.#callers.set(call.id, call.from);
    await reports.callChanged(instanceId, {
      callId: call.id,
      fromJid: (await phoneJid(line, call.from, call.callerPn)) ?? call.from,
      ...(call.isGroup && { chatJid: call.chatId, isGroup: true }),
      ...(call.offline && { isOffline: true }),
      isVideo: call.isVideo ?? false,
      timestampSeconds: Math.floor(call.date.getTime() / 1000),
      status,
    });
  }

  async #participants(line: Line, change: BaileysEventMap['group-participants.update']): Promise<void> {
    const { reports, instanceId, book, groups, ownJid } = this.#options;
    groups.forget(change.id);
    // `modify` reports a changed phone number.
    if (change.action === 'modify') {
      return;
    }
    const authorJid = await phoneJid(line, change.author, change.authorPn);
    const participants = await Promise.all(
      change.participants.map(async ({ id, phoneNumber }) => (await phoneJid(line, id, phoneNumber)) ?? id),
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
