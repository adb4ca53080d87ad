/**
 * An account's people, groups and chats. WhatsApp sends most of them only once, after pairing, so
 * they are kept in Redis, by phone number where it is known.
 */
import type { Chat as BaileysChat, Contact as BaileysContact, GroupMetadata } from 'baileys';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Contact, NetworkChat } from 'soundpost-chat/transport';
import type { Redis } from 'soundpost-kit/redis/connection';
import { withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import type { Line } from './connection.ts';
import { isGroupJid, isPersonJid, phoneJid, userOf } from './phone-jid.ts';

const Person = z.object({
  /** As the account's phone has it saved. */
  savedName: z.string().optional(),
  /** As set by the people themselves. */
  ownName: z.string().optional(),
  pictureUrl: z.string().optional(),
});
type Person = z.infer<typeof Person>;

const Group = z.object({ subject: z.string() });
const ChatRecord = z.object({ name: z.string().optional(), updatedAtMs: z.number().nullable() });

export class AddressBook {
  readonly #redis: Redis;
  readonly #people: string;
  readonly #groups: string;
  readonly #chats: string;
  /** Sent again with every connection, so not stored. */
  readonly #blocked = new Set<string>();

  constructor(redis: Redis, instanceId: string) {
    this.#redis = redis;
    this.#people = gatewayKey('whatsapp', instanceId, 'people');
    this.#groups = gatewayKey('whatsapp', instanceId, 'groups');
    this.#chats = gatewayKey('whatsapp', instanceId, 'chats');
  }

  async contacts(): Promise<Contact[]> {
    const [people, groups] = await Promise.all([
      this.#redis.hgetall(this.#people),
      this.#redis.hgetall(this.#groups),
    ]);
    const contacts: Contact[] = [
      ...Object.entries(people).map(([jid, text]) => {
        const person = Person.parse(JSON.parse(text));
        return {
          jid,
          name: nameOf(person, jid),
          isGroup: false,
          isSaved: person.savedName !== undefined,
          blocked: this.#blocked.has(jid),
          ...(person.pictureUrl === undefined ? {} : { profilePicUrl: person.pictureUrl }),
        };
      }),
      ...Object.entries(groups).map(([jid, text]) => {
        const name = Group.parse(JSON.parse(text)).subject;
        return { jid, name, isGroup: true, isSaved: true, blocked: false };
      }),
    ];
    // Redis returns them in any order; paging needs a fixed one.
    return contacts.toSorted((a, b) => a.name.localeCompare(b.name) || a.jid.localeCompare(b.jid));
  }

  async chats(): Promise<NetworkChat[]> {
    const chats = await this.#redis.hgetall(this.#chats);
    const found = await Promise.all(
      Object.entries(chats).map(async ([jid, text]) => {
        const { name, updatedAtMs } = ChatRecord.parse(JSON.parse(text));
        return { jid, name: name ?? (await this.nameOf(jid)), isGroup: isGroupJid(jid), updatedAtMs };
      }),
    );
    return found.toSorted(
      (a, b) => (b.updatedAtMs ?? 0) - (a.updatedAtMs ?? 0) || a.jid.localeCompare(b.jid),
    );
  }

  /** A person's or group's name, or their number. */
  async nameOf(jid: string): Promise<string> {
    if (isGroupJid(jid)) {
      return (await this.subjectOf(jid)) ?? userOf(jid);
    }
    const person = await this.#redis.hget(this.#people, jid);
    return nameOf(person === null ? {} : Person.parse(JSON.parse(person)), jid);
  }

  /** Undefined for a group that the account is not in, as far as is known. */
  async subjectOf(groupJid: string): Promise<string | undefined> {
    const group = await this.#redis.hget(this.#groups, groupJid);
    return group === null ? undefined : Group.parse(JSON.parse(group)).subject;
  }

  async learnPeople(line: Line, contacts: readonly Partial<BaileysContact>[]): Promise<void> {
    const news = new Map<string, Person>();
    for (const contact of contacts) {
      const jid = await phoneJid(line, contact.id, contact.phoneNumber);
      if (jid !== undefined && isPersonJid(jid)) {
        news.set(jid, { ...news.get(jid), ...personOf(contact) });
      }
    }
    await this.#merge(this.#people, Person, news);
  }

  async learnChats(line: Line, chats: readonly Partial<BaileysChat>[]): Promise<void> {
    const news = new Map<string, Partial<z.infer<typeof ChatRecord>>>();
    for (const chat of chats) {
      const jid = await phoneJid(line, chat.id ?? undefined, chat.pnJid ?? undefined);
      if (jid !== undefined && (isPersonJid(jid) || isGroupJid(jid))) {
        const seconds = chat.conversationTimestamp ?? chat.lastMessageRecvTimestamp;
        news.set(jid, {
          ...news.get(jid),
          ...(chat.name ? { name: chat.name } : {}),
          ...(seconds ? { updatedAtMs: Number(seconds) * 1000 } : {}),
        });
      }
    }
    await this.#merge(this.#chats, ChatRecord, news, { updatedAtMs: null });
  }

  async forgetChats(line: Line, jids: readonly string[]): Promise<void> {
    const known = await Promise.all(jids.map((jid) => phoneJid(line, jid)));
    await this.#forget(this.#chats, known);
  }

  async learnGroups(groups: readonly Partial<GroupMetadata>[]): Promise<void> {
    const news = new Map<string, z.infer<typeof Group>>();
    for (const { id, subject } of groups) {
      if (id !== undefined && subject !== undefined) {
        news.set(id, { subject });
      }
    }
    await this.#merge(this.#groups, Group, news);
  }

  /** Makes `groups` the complete list of the account's groups. */
  async replaceGroups(groups: readonly GroupMetadata[]): Promise<void> {
    const known = await this.#redis.hkeys(this.#groups);
    await this.learnGroups(groups);
    const current = new Set(groups.map(({ id }) => id));
    await this.#forget(
      this.#groups,
      known.filter((jid) => !current.has(jid)),
    );
  }

  /** @param whole whether nobody else is blocked */
  async learnBlocked(line: Line, jids: readonly (string | undefined)[], whole: boolean): Promise<void> {
    const people = await Promise.all(jids.map((jid) => phoneJid(line, jid)));
    if (whole) {
      this.#blocked.clear();
    }
    for (const jid of people) {
      if (jid !== undefined) {
        this.#blocked.add(jid);
      }
    }
  }

  async learnUnblocked(line: Line, jids: readonly string[]): Promise<void> {
    for (const jid of jids) {
      this.#blocked.delete((await phoneJid(line, jid)) ?? jid);
    }
  }

  forgetGroup(groupJid: string): Promise<void> {
    return this.#forget(this.#groups, [groupJid]);
  }

  async erase(): Promise<void> {
    await this.#redis.unlink(this.#people, this.#groups, this.#chats);
  }

  async #merge<T extends object>(
    hash: string,
    schema: z.ZodType<T>,
    news: ReadonlyMap<string, Partial<T>>,
    defaults: Partial<T> = {},
  ): Promise<void> {
    const jids = [...news.keys()];
    if (jids.length === 0) {
      return;
    }
    const known = await this.#redis.hmget(hash, ...jids);
    const merged = jids.flatMap((jid, index) => {
      const old: unknown = JSON.parse(known[index] ?? '{}');
      return [
        jid,
        JSON.stringify(withEdition(schema.parse({ ...defaults, ...Object(old), ...news.get(jid) }))),
      ];
    });
    await this.#redis.hset(hash, ...merged);
  }

  async #forget(hash: string, jids: readonly (string | undefined)[]): Promise<void> {
    const fields = jids.filter((jid) => jid !== undefined);
    if (fields.length > 0) {
      await this.#redis.hdel(hash, ...fields);
    }
  }
}

function personOf({ name, notify, verifiedName, imgUrl }: Partial<BaileysContact>): Person {
  const ownName = notify ?? verifiedName;
  return {
    ...(name ? { savedName: name } : {}),
    ...(ownName ? { ownName } : {}),
    ...(imgUrl?.startsWith('https://') ? { pictureUrl: imgUrl } : {}),
  };
}

function nameOf({ savedName, ownName }: Person, jid: string): string {
  return savedName ?? ownName ?? userOf(jid);
}
