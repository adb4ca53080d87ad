/**
 * The loopback network: three people and the gateway's instances, with address books and blocked
 * contacts. Stored in Redis, so every process sees the same network, also after a restart.
 */

import { changeRecord, type Instance, readRecord } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readable, readText, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { GROUPS, type Group, newInviteCode } from './groups.ts';

// The network's form of numbers.

export const suffixes = { person: 'people.loopback', group: 'groups.loopback' } as const;

export const personJid = (digits: string): string => `${digits}@${suffixes.person}`;
export const groupJid = (digits: string): string => `${digits}@${suffixes.group}`;
export const isGroupJid = (jid: string): boolean => jid.endsWith(`@${suffixes.group}`);
/** The number in a JID of this network. */
export const digitsOf = (jid: string): string => jid.slice(0, jid.indexOf('@'));

/** The North American Numbering Plan reserves 202-555-01XX for fiction. */
const people = [
  { digits: '12025550101', name: 'Ada Lovelace' },
  { digits: '12025550102', name: 'Hedy Lamarr' },
  { digits: '12025550103', name: 'Nikola Tesla' },
] as const;

/** The ITU reserves country code 999 (E.164): no telephone has an instance's number. */
const FIRST_INSTANCE_NUMBER = 99_900_000_000;
const FIRST_GROUP_NUMBER = 120_363_000_000_000_000n;

const Member = z.object({ name: z.string(), instanceId: z.string().nullable() });
type Member = z.infer<typeof Member>;

const Place = z.object({ digits: z.string(), groups: z.array(z.string()), contacts: z.array(z.string()) });
/** An instance on the network: its number, groups and address book. */
type Place = z.infer<typeof Place>;

const MEMBERS = gatewayKey('loopback', 'members');
const PLACES = gatewayKey('loopback', 'places');
const COUNTER = gatewayKey('loopback', 'counter');
/** Digits of those shown as available. */
const AVAILABLE = gatewayKey('loopback', 'available');
const blockedKey = (digits: string): string => gatewayKey('loopback', 'blocked', digits);
const placeOf = (instanceId: string) => ({ key: PLACES, field: instanceId, schema: Place });

const settleScript = loadScript(new URL('./lua/place-settle.lua', import.meta.url));

export class Directory {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async placeOf(instance: Instance): Promise<Place> {
    return (await readRecord(this.#redis, placeOf(instance.id))) ?? this.#settle(instance);
  }

  async enterGroup(instance: Instance, groupDigits: string): Promise<void> {
    await changeRecord(this.#redis, placeOf(instance.id), (place) => ({
      ...place,
      groups: [...new Set([...place.groups, groupDigits])],
    }));
  }

  member(digits: string): Promise<Member | undefined> {
    return readRecord(this.#redis, { key: MEMBERS, field: digits, schema: Member });
  }

  /** Digits and ids of all instances on the network. */
  async instances(): Promise<{ digits: string; instanceId: string }[]> {
    const all = await this.#redis.hgetall(MEMBERS);
    const members = readable(Object.entries(all), ([digits, stored]) => ({
      digits,
      instanceId: readText(Member, stored).instanceId,
    }));
    return members.flatMap(({ digits, instanceId }) => (instanceId === null ? [] : [{ digits, instanceId }]));
  }

  async setBlocked(digits: string, other: string, blocked: boolean): Promise<void> {
    await (blocked
      ? this.#redis.sadd(blockedKey(digits), other)
      : this.#redis.srem(blockedKey(digits), other));
  }

  async hasBlocked(digits: string, other: string): Promise<boolean> {
    return (await this.#redis.sismember(blockedKey(digits), other)) === 1;
  }

  async blockedBy(digits: string): Promise<ReadonlySet<string>> {
    return new Set(await this.#redis.smembers(blockedKey(digits)));
  }

  /** Whether one has blocked the other: then nothing passes between them. */
  async apart(digits: string, other: string): Promise<boolean> {
    return (await this.hasBlocked(digits, other)) || (await this.hasBlocked(other, digits));
  }

  /** Answers whether this changed anything. */
  async setAvailable(digits: string, available: boolean): Promise<boolean> {
    const changed = available
      ? await this.#redis.sadd(AVAILABLE, digits)
      : await this.#redis.srem(AVAILABLE, digits);
    return changed === 1;
  }

  async isAvailable(digits: string): Promise<boolean> {
    return (await this.#redis.sismember(AVAILABLE, digits)) === 1;
  }

  async remove(instance: Instance): Promise<Place | undefined> {
    const place = await readRecord(this.#redis, placeOf(instance.id));
    if (place !== undefined) {
      await this.#redis
        .multi()
        .hdel(PLACES, instance.id)
        .hdel(MEMBERS, place.digits)
        .del(blockedKey(place.digits))
        .srem(AVAILABLE, place.digits)
        .exec();
    }
    return place;
  }

  async #settle(instance: Instance): Promise<Place> {
    const count = await this.#redis.incr(COUNTER);
    const digits = String(FIRST_INSTANCE_NUMBER + count);
    const groupDigits = String(FIRST_GROUP_NUMBER + BigInt(count));
    const place: Place = { digits, groups: [groupDigits], contacts: people.map((person) => person.digits) };
    const group: Group = {
      subject: 'The Sound Society',
      inviteCode: newInviteCode(groupDigits),
      participants: [
        { digits, admin: 'superadmin' },
        ...people.map((person, index) => ({
          digits: person.digits,
          admin: index === 0 ? ('admin' as const) : null,
        })),
      ],
    };
    const seeded = people.flatMap((person) => [
      person.digits,
      JSON.stringify(withEdition({ name: person.name, instanceId: null } satisfies Member)),
    ]);
    const member: Member = { name: instance.name, instanceId: instance.id };
    const stored = await settleScript.run(
      this.#redis,
      [PLACES, MEMBERS, GROUPS],
      [
        instance.id,
        JSON.stringify(withEdition(place)),
        digits,
        JSON.stringify(withEdition(member)),
        groupDigits,
        JSON.stringify(withEdition(group)),
        ...seeded,
      ],
    );
    return readText(Place, z.string().parse(stored));
  }

  async nameOf(digits: string): Promise<string> {
    return (await this.member(digits))?.name ?? digits;
  }

  /** The people in an address book, with their names. */
  async addressBook(place: Place): Promise<{ jid: string; digits: string; name: string }[]> {
    const found = await Promise.all(
      place.contacts.map(async (digits) => {
        const member = await this.member(digits);
        return member === undefined ? [] : [{ jid: personJid(digits), digits, name: member.name }];
      }),
    );
    return found.flat();
  }
}

// The network's history of accounts and groups, for instances that request it in full.

/** Messages kept for each account or group. */
const LONGEST_ARCHIVE = 1000;
const archiveKey = (digits: string): string => gatewayKey('loopback', 'archive', digits);

const keepScript = loadScript(new URL('./lua/archive-append.lua', import.meta.url));

export class Archive {
  readonly #redis: Redis;
  readonly #keepSeconds: number;

  /** @param keepSeconds not longer than the messages' media are kept */
  constructor(redis: Redis, keepSeconds: number) {
    this.#redis = redis;
    this.#keepSeconds = Math.ceil(keepSeconds);
  }

  /** @param owners digits of the accounts, or of the group */
  async keep(owners: readonly string[], message: object): Promise<void> {
    await keepScript.run(this.#redis, owners.map(archiveKey), [
      JSON.stringify(withEdition(message)),
      LONGEST_ARCHIVE,
      this.#keepSeconds,
    ]);
  }

  /** Oldest first, without what cannot be read. */
  async of<Schema extends z.ZodType>(digits: string, schema: Schema): Promise<z.output<Schema>[]> {
    const stored = await this.#redis.lrange(archiveKey(digits), 0, -1);
    return readable(stored, (text) => readText(schema, text));
  }

  async forget(digits: readonly string[]): Promise<void> {
    await this.#redis.unlink(...digits.map(archiveKey));
  }
}
