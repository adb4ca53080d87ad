/**
 * The public internet. IPv4: all but the rows below (IANA IPv4 Special-Purpose Address Registry,
 * multicast, one cloud address). IPv6: 2000::/3 less its special rows (IANA IPv6 Special-Purpose
 * Address Registry), so unassigned space and forms that wrap an IPv4 address stay closed.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = [Address, number];

interface Row {
  readonly range: Range;
  readonly label: string;
}

function row(cidr: string, name: string, source: string): Row {
  return { range: ipaddr.parseCIDR(cidr), label: `${cidr} ${name} (${source})` };
}

const ipv4NotPublic: readonly Row[] = [
  row('0.0.0.0/8', 'this network; 0.0.0.0 reaches the machine itself', 'RFC 791 §3.2, RFC 1122 §3.2.1.3'),
  row('10.0.0.0/8', 'private use', 'RFC 1918'),
  row('100.64.0.0/10', 'shared address space', 'RFC 6598'),
  row('127.0.0.0/8', 'loopback', 'RFC 1122 §3.2.1.3'),
  row('169.254.0.0/16', 'link local', 'RFC 3927'),
  row('172.16.0.0/12', 'private use', 'RFC 1918'),
  row('192.0.0.0/24', 'IETF protocol assignments', 'RFC 6890 §2.1'),
  row('192.0.2.0/24', 'documentation', 'RFC 5737'),
  row('192.31.196.0/24', 'AS112-v4', 'RFC 7535'),
  row('192.52.193.0/24', 'AMT', 'RFC 7450'),
  row('192.88.99.0/24', 'deprecated 6to4 relay anycast', 'RFC 7526'),
  row('192.168.0.0/16', 'private use', 'RFC 1918'),
  row('192.175.48.0/24', 'direct delegation AS112', 'RFC 7534'),
  row('198.18.0.0/15', 'benchmarking', 'RFC 2544'),
  row('198.51.100.0/24', 'documentation', 'RFC 5737'),
  row('203.0.113.0/24', 'documentation', 'RFC 5737'),
  row('224.0.0.0/4', 'multicast', 'RFC 5771'),
  row('240.0.0.0/4', 'reserved, with limited broadcast', 'RFC 1112 §4, RFC 919 §7'),
  row('168.63.129.16/32', 'Azure wire server, in public space', "Azure's virtual network documentation"),
];

const ipv6GlobalUnicast = ipaddr.parseCIDR('2000::/3'); // RFC 4291 §2.4: IANA assigns from it only

const ipv6NotPublic: readonly Row[] = [
  row('2001::/23', 'IETF protocol assignments: Teredo, benchmarking, AMT, ORCHID, DRIP', 'RFC 2928'),
  row('2001:db8::/32', 'documentation', 'RFC 3849'),
  row('2002::/16', '6to4', 'RFC 3056'),
  row('2620:4f:8000::/48', 'direct delegation AS112', 'RFC 7534'),
  row('3fff::/20', 'documentation', 'RFC 9637'),
];

/**
 * Ranges that no allow rule opens: metadata addresses, where clouds hand out a machine's
 * credentials, and IPv6 forms that wrap an IPv4 address, which a rule would open unnoticed.
 */
const neverOpened: readonly Row[] = [
  row(
    '169.254.0.0/16',
    'link local: instance and task metadata of AWS, Google, Azure, Oracle, Tencent',
    'RFC 3927',
  ),
  row('168.63.129.16/32', 'Azure wire server', "Azure's virtual network documentation"),
  row('100.100.100.200/32', 'Alibaba Cloud metadata', "Alibaba Cloud's ECS documentation"),
  row('192.0.0.192/32', 'Oracle Cloud classic metadata', "Oracle's Compute Classic documentation"),
  row('fd00:ec2::/32', 'AWS metadata and pod identity', "AWS's EC2 and EKS documentation"),
  row('fd20:ce::254/128', 'Google Cloud metadata', "Google's Compute Engine documentation"),
  row('fd00:c1::a9fe:a9fe/128', 'Oracle Cloud metadata', "Oracle's Compute documentation"),
  row('fd00:42::42/128', 'Scaleway metadata', "Scaleway's Instances documentation"),
  row('fe80::/10', 'link local: OpenStack metadata at fe80::a9fe:a9fe', 'RFC 4291 §2.5.6'),
  row('::/96', 'IPv4-compatible', 'RFC 4291 §2.5.5.1'),
  row('::ffff:0:0/96', 'IPv4-mapped', 'RFC 4291 §2.5.5.2'),
  row('::ffff:0:0:0/96', 'IPv4-translated', 'RFC 2765 §2.1'),
  row('64:ff9b::/96', 'NAT64 well-known prefix', 'RFC 6052'),
  row('64:ff9b:1::/48', 'NAT64 local use', 'RFC 8215'),
  row('2001::/32', 'Teredo', 'RFC 4380'),
  row('2002::/16', '6to4', 'RFC 3056'),
];

/** ::1 and :: lie inside ::/96 but carry no IPv4 address. */
const hostLocal = ipaddr.parseCIDR('::/127');

/** Public blocks, and the ranges in them that are not public. */
interface PublicBlock {
  readonly cidr: string;
  readonly except: readonly string[];
}

/** {@link notPublic} as firewall rules, for a filter outside this process (deploy/helm). */
export function publicBlocks(): readonly PublicBlock[] {
  const text = ([address, bits]: Range): string => `${address}/${bits}`;
  return [
    { cidr: '0.0.0.0/0', except: ipv4NotPublic.map(({ range }) => text(range)) },
    { cidr: text(ipv6GlobalUnicast), except: ipv6NotPublic.map(({ range }) => text(range)) },
  ];
}

/** @returns undefined for anything but a plain address; a zone id (`fe80::1%eth0`) is refused. */
export function parseAddress(text: string): Address | undefined {
  return isIP(text) === 0 || text.includes('%') ? undefined : ipaddr.parse(text);
}

export function contains(range: Range, address: Address): boolean {
  return range[0].kind() === address.kind() && address.match(range);
}

/** @returns the row that makes the address non-public, for the log; undefined: it is public. */
export function notPublic(address: Address): string | undefined {
  if (address.kind() === 'ipv6' && !contains(ipv6GlobalUnicast, address)) {
    return 'outside 2000::/3, the global unicast block (RFC 4291 §2.4)';
  }
  const rows = address.kind() === 'ipv4' ? ipv4NotPublic : ipv6NotPublic;
  return rows.find(({ range }) => contains(range, address))?.label;
}

/** @returns the row that keeps any part of the range closed despite all rules; undefined: none. */
export function neverOpen(range: Range): string | undefined {
  const [address, bits] = range;
  if (bits >= 127 && contains(hostLocal, address)) return undefined;
  const overlaps = (other: Range) => contains(other, address) && bits >= other[1];
  const covers = (other: Range) => contains(range, other[0]) && other[1] >= bits;
  return neverOpened.find((candidate) => overlaps(candidate.range) || covers(candidate.range))?.label;
}

/** The range with only this address. */
export function single(address: Address): Range {
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
