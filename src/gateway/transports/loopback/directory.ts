/**
 * Who is on the loopback network: three people, the gateway's own instances, and their groups. Kept in Redis, so that
 * every process of the gateway is on the same network and a restart changes nothing.
 */
import { z } from 'zod';
import type { Redis } from '../../../queue/redis.ts';
import { RedisScript } from '../../../queue/script.ts';
import type { Instance } from '../../instances.ts';
import { gatewayKey } from '../../redis-keys.ts';

export const suffixes = { person: 'people.loopback', group: 'groups.loopback' } as const;

/** 202-555-01XX is set aside for fiction by the North American Numbering Plan, so these can be nobody's. */
const people = [
  { digits: '12025550101', name: 'Ada Lovelace' },
  { digits: '12025550102', name: 'Hedy Lamarr' },
  { digits: '12025550103', name: 'Nikola Tesla' },
] as const;

/** Country code 999 is reserved by the ITU (E.164 list): no telephone can have an instance's number. */
const FIRST_INSTANCE_NUMBER = 99_900_000_000;
const FIRST_GROUP_NUMBER = 120_363_000_000_000_000n;

const Member = z.object({ name: z.string(), instanceId: z.string().nullable() });
export type Member = z.infer<typeof Member>;

const Group = z.object({
  subject: z.string(),
  participants: z.array(z.object({ digits: z.string(), admin: z.enum(['superadmin', 'admin']).nullable() })),
});
export type Group = z.infer<typeof Group>;

const Place = z.object({ digits: z.string(), groups: z.array(z.string()), contacts: z.array(z.string()) });
/** Where an instance stands on the network: its number, its groups and its address book. */
export type Place = z.infer<typeof Place>;

const MEMBERS = gatewayKey('loopback', 'members');
const GROUPS = gatewayKey('loopback', 'groups');
const PLACES = gatewayKey('loopback', 'places');
const COUNTER = gatewayKey('loopback', 'counter');

/** Gives an instance its place once; whoever comes second finds it. */
const settleScript = new RedisScript(`
local places, members, groups = KEYS[1], KEYS[2], KEYS[3]
local id, place, digits, member, groupDigits, group = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = redis.call('HGET', places, id)
if known then return known end
redis.call('HSET', members, digits, member)
for index = 7, #ARGV, 2 do redis.call('HSETNX', members, ARGV[index], ARGV[index + 1]) end
redis.call('HSET', groups, groupDigits, group)
redis.call('HSET', places, id, place)
return place
`);

export class Directory {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async placeOf(instance: Instance): Promise<Place> {
    const known = await this.#redis.hget(PLACES, instance.id);
    return known === null ? this.#settle(instance) : Place.parse(JSON.parse(known));
  }

  async member(digits: string): Promise<Member | undefined> {
    const member = await this.#redis.hget(MEMBERS, digits);
    return member === null ? undefined : Member.parse(JSON.parse(member));
  }

  async group(digits: string): Promise<Group | undefined> {
    const group = await this.#redis.hget(GROUPS, digits);
    return group === null ? undefined : Group.parse(JSON.parse(group));
  }

  async remove(instance: Instance): Promise<void> {
    const place = await this.placeOf(instance);
    await this.#redis
      .multi()
      .hdel(PLACES, instance.id)
      .hdel(MEMBERS, place.digits)
      .hdel(GROUPS, ...place.groups)
      .exec();
  }

  async #settle(instance: Instance): Promise<Place> {
    const count = await this.#redis.incr(COUNTER);
    const digits = String(FIRST_INSTANCE_NUMBER + count);
    const groupDigits = String(FIRST_GROUP_NUMBER + BigInt(count));
    const place: Place = { digits, groups: [groupDigits], contacts: people.map((person) => person.digits) };
    const group: Group = {
      subject: 'The Sound Society',
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
      JSON.stringify({ name: person.name, instanceId: null } satisfies Member),
    ]);
    const member: Member = { name: instance.name, instanceId: instance.id };
    const stored = await settleScript.run(
      this.#redis,
      [PLACES, MEMBERS, GROUPS],
      [
        instance.id,
        JSON.stringify(place),
        digits,
        JSON.stringify(member),
        groupDigits,
        JSON.stringify(group),
        ...seeded,
      ],
    );
    return Place.parse(JSON.parse(z.string().parse(stored)));
  }
}

export const personJid = (digits: string): string => `${digits}@${suffixes.person}`;
export const groupJid = (digits: string): string => `${digits}@${suffixes.group}`;
/** The number part of a JID of this network. */
export const digitsOf = (jid: string): string => jid.slice(0, jid.indexOf('@'));
