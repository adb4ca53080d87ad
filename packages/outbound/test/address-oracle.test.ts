import { stubNetwork } from 'soundpost-testing/stub-network';
import { expect, test } from 'vitest';
import { OutboundRefused } from '../src/errors.ts';

/**
 * The registries once more, row by row as IANA prints them, read by code that shares nothing with the guard: addresses
 * are plain numbers here. (iana-ipv4-special-registry, iana-ipv6-special-registry, IPv4 multicast, and the one cloud
 * address in public space.)
 */
const ipv4Special = `
  0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
  192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
  192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
  240.0.0.0/4 255.255.255.255/32 224.0.0.0/4 168.63.129.16/32`;

const ipv6Special = `
  0:0:0:0:0:0:0:1/128 0:0:0:0:0:0:0:0/128 0:0:0:0:0:ffff:0:0/96 64:ff9b:0:0:0:0:0:0/96 64:ff9b:1:0:0:0:0:0/48
  100:0:0:0:0:0:0:0/64 100:0:0:1:0:0:0:0/64 2001:0:0:0:0:0:0:0/23 2001:0:0:0:0:0:0:0/32 2001:1:0:0:0:0:0:1/128
  2001:1:0:0:0:0:0:2/128 2001:1:0:0:0:0:0:3/128 2001:2:0:0:0:0:0:0/48 2001:3:0:0:0:0:0:0/32 2001:4:112:0:0:0:0:0/48
  2001:10:0:0:0:0:0:0/28 2001:20:0:0:0:0:0:0/28 2001:30:0:0:0:0:0:0/28 2001:db8:0:0:0:0:0:0/32 2002:0:0:0:0:0:0:0/16
  2620:4f:8000:0:0:0:0:0/48 3fff:0:0:0:0:0:0:0/20 5f00:0:0:0:0:0:0:0/16 fc00:0:0:0:0:0:0:0/7 fe80:0:0:0:0:0:0:0/10`;

interface Family {
  readonly bits: bigint;
  readonly special: readonly { first: bigint; last: bigint }[];
  print(address: bigint): string;
  isPublic(address: bigint): boolean;
}

function ranges(table: string, bits: bigint, groupBits: bigint, separator: string, radix: number) {
  return table
    .trim()
    .split(/\s+/)
    .map((row) => {
      const [text = '', prefix = ''] = row.split('/');
      const groups = text.split(separator).map((group) => BigInt(Number.parseInt(group, radix)));
      const first = groups.reduce((value, group) => (value << groupBits) | group, 0n);
      return { first, last: first + (1n << (bits - BigInt(prefix))) - 1n };
    });
}

const ipv4: Family = {
  bits: 32n,
  special: ranges(ipv4Special, 32n, 8n, '.', 10),
  print: (address) => [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 255n).join('.'),
  isPublic: (address) => outside(ipv4.special, address),
};

const ipv6: Family = {
  bits: 128n,
  special: ranges(ipv6Special, 128n, 16n, ':', 16),
  print: (address) => {
    const groups = [7n, 6n, 5n, 4n, 3n, 2n, 1n, 0n].map((group) => (address >> (group * 16n)) & 0xffffn);
    return `[${groups.map((group) => group.toString(16)).join(':')}]`;
  },
  // RFC 4291 §2.4: the first three bits 001 are global unicast, the only space that IANA hands out.
  isPublic: (address) => address >> 125n === 1n && outside(ipv6.special, address),
};

function outside(special: Family['special'], address: bigint): boolean {
  return special.every(({ first, last }) => address < first || address > last);
}

/** A generator of random bits that gives the same addresses in every run (splitmix64). */
function randomBits(seed: bigint): (bits: bigint) => bigint {
  let state = seed;
  const next = () => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let mixed = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return mixed ^ (mixed >> 31n);
  };
  return (bits) => BigInt.asUintN(Number(bits), (next() << 64n) | next());
}

/** Anywhere, inside a special range, or within three steps of one of its ends: pure chance would seldom meet a range. */
function* addresses({ bits, special }: Family, count: number, random: (bits: bigint) => bigint) {
  for (let made = 0; made < count; made++) {
    const { first, last } = special[Number(random(32n)) % special.length] ?? { first: 0n, last: 0n };
    const size = last - first + 1n;
    const step = random(3n) - 3n;
    const choices = [
      random(bits),
      (1n << (bits - 3n)) | random(bits - 3n),
      first + (random(bits) % size),
      first + step,
      last + step,
    ];
    yield BigInt.asUintN(Number(bits), choices[made % choices.length] ?? 0n);
  }
}

test.each([
  ['IPv4', ipv4],
  ['IPv6', ipv6],
] as const)(
  'the guard agrees with the %s registries on more than a thousand addresses',
  async (_name, family) => {
    const { outbound } = stubNetwork();
    const tally = { public: 0, special: 0 };
    const mismatches: string[] = [];
    for (const address of addresses(family, 1_500, randomBits(20_261_120n))) {
      const url = `http://${family.print(address)}/`;
      const allowed = await outbound.checkUrl(url, 'source').then(
        () => true,
        (error) => {
          if (error instanceof OutboundRefused) return false;
          throw error;
        },
      );
      tally[family.isPublic(address) ? 'public' : 'special']++;
      if (allowed !== family.isPublic(address)) mismatches.push(`${url} allowed: ${allowed}`);
    }
    expect(mismatches).toEqual([]);
    // Both verdicts were asked for in earnest.
    expect(Math.min(tally.public, tally.special)).toBeGreaterThan(300);
  },
);
