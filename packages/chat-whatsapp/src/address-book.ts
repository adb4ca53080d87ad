/**
 * An account's people, groups and chats. WhatsApp sends most of them only once, after pairing, so
 * they are kept in Redis, by phone number where it is known. A number that is learned later joins
 * what was kept of a LID when it is read.
 */
import type { Chat as BaileysChat, Contact as BaileysContact, GroupMetadata } from 'baileys';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Contact, NetworkChat } from 'soundpost-chat/transport';
import type { Redis } from 'soundpost-kit/redis/connection';
import { withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import type { Identities } from './identities.ts';
import { bareJid, isGroupJid, isLid, isPersonJid, userOf } from './phone-jid.ts';

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
  readonly #identities: Identities;
  readonly #people: string;
  readonly #groups: string;
  readonly #chats: string;
  /** Sent again with every connection, so not stored. */
  readonly #blocked = new Set<string>();

  constructor(redis: Redis, identities: Identities, instanceId: string) {
    this.#redis = redis;
    this.#identities = identities;
    this.#people = gatewayKey('whatsapp', instanceId, 'people');
    this.#groups = gatewayKey('whatsapp', instanceId, 'groups');
    this.#chats = gatewayKey('whatsapp', instanceId, 'chats');
  }

  async contacts(): Promise<Contact[]> {
    const [people, groups] = await Promise.all([
      this.#redis.hgetall(this.#people),
      this.#redis.hgetall(this.#groups),
    ]);
    const blocked = new Set((await this.#identities.shownAll(this.#blocked)).values());
    const contacts: Contact[] = [
      ...[...(await this.#joined(people, Person))].map(([jid, person]) => {
        return {
          jid,
          name: nameOf(person, jid),
          isGroup: false,
          isSaved: person.savedName !== undefined,
          blocked: blocked.has(jid),
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
    const chats = await this.#joined(await this.#redis.hgetall(this.#chats), ChatRecord);
    const found = await Promise.all(
      [...chats].map(async ([jid, { name, updatedAtMs }]) => {
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
    const addresses = await this.#identities.addressesOf(jid);
    const kept = await this.#redis.hmget(this.#people, ...addresses);
    const people = Object.fromEntries(addresses.map((one, index) => [one, kept[index] ?? '{}']));
    const [[shown, person] = [jid, {}]] = await this.#joined(people, Person);
    return nameOf(person, shown);
  }

  /** Undefined for a group that the account is not in, as far as is known. */
  async subjectOf(groupJid: string): Promise<string | undefined> {
    const group = await this.#redis.hget(this.#groups, groupJid);
    return group === null ? undefined : Group.parse(JSON.parse(group)).subject;
  }

  async learnPeople(contacts: readonly Partial<BaileysContact>[]): Promise<void> {
    const news = new Map<string, Person>();
    for (const contact of contacts) {
      const jid = await this.#identities.shown(contact.id, contact.phoneNumber);
      if (jid !== undefined && isPersonJid(jid)) {
        news.set(jid, { ...news.get(jid), ...personOf(contact) });
      }
    }
    await this.#merge(this.#people, Person, news);
  }

  async learnChats(chats: readonly Partial<BaileysChat>[]): Promise<void> {
    const news = new Map<string, Partial<z.infer<typeof ChatRecord>>>();
    for (const chat of chats) {
      const jid = await this.#identities.shown(chat.id, chat.pnJid);
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

  async forgetChats(jids: readonly string[]): Promise<void> {
    const known = await Promise.all(jids.map((jid) => this.#identities.addressesOf(jid)));
    await this.#forget(this.#chats, known.flat());
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
  learnBlocked(jids: readonly (string | undefined)[], whole: boolean): void {
    if (whole) {
      this.#blocked.clear();
    }
    for (const jid of jids) {
      if (jid !== undefined) {
        this.#blocked.add(bareJid(jid));
      }
    }
  }

  async learnUnblocked(jids: readonly string[]): Promise<void> {
    const known = await Promise.all(jids.map((jid) => this.#identities.addressesOf(jid)));
    for (const jid of known.flat()) {
      this.#blocked.delete(jid);
    }
  }

  forgetGroup(groupJid: string): Promise<void> {
    return this.#forget(this.#groups, [groupJid]);
  }

  async erase(): Promise<void> {
    await this.#redis.unlink(this.#people, this.#groups, this.#chats);
  }

  /** What was kept under a LID, with what is kept under the number since. */
  async #joined<T extends object>(
    kept: Readonly<Record<string, string>>,
    schema: z.ZodType<T>,
  ): Promise<ReadonlyMap<string, T>> {
    const shown = await this.#identities.shownAll(Object.keys(kept));
    const all = new Map<string, T>();
    // LIDs first, so that what is newer goes over them.
    for (const [jid, text] of Object.entries(kept).toSorted(([a], [b]) => +isLid(b) - +isLid(a))) {
      const as = shown.get(jid) ?? jid;
      all.set(as, { ...all.get(as), ...schema.parse(JSON.parse(text)) });
    }
    return all;
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
