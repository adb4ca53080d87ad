/**
 * `OUTBOUND_ALLOW`: comma-separated `host-or-CIDR:port` rules of the operator. A rule opens a
 * non-public address, an unusual port, and http for webhooks. Metadata addresses always stay
 * closed.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, contains, neverOpen, parseAddress, type Range, single } from './address-table.ts';

interface AllowRule {
  /** As written, for the log at start. */
  readonly text: string;
  readonly port: number;
  /** Either an exact name, lower case, with any address … */
  readonly host?: string;
  /** … or a range of addresses, by any name. */
  readonly range?: Range;
}

const FORM = 'write host-or-CIDR:port, for instance media.example:8080, 10.0.0.0/8:443 or [fd12::/64]:443';

/** @throws Error that names the faulty rule and the remedy. */
export function parseAllowRules(text: string): AllowRule[] {
  return text
    .split(',')
    .map((rule) => rule.trim())
    .filter((rule) => rule !== '')
    .map(parseRule);
}

function parseRule(text: string): AllowRule {
  const colon = text.lastIndexOf(':');
  const port = Number(text.slice(colon + 1));
  if (colon < 1 || !/^\d{1,5}$/.test(text.slice(colon + 1)) || port < 1 || port > 65_535) {
    throw new Error(`OUTBOUND_ALLOW rule "${text}" has no port from 1 to 65535: ${FORM}`);
  }
  const host = text.slice(0, colon).toLowerCase();
  const range = parseRange(host, text);
  if (range === undefined) return { text, port, host: parseHost(host, text) };
  const shut = neverOpen(range);
  if (shut !== undefined) {
    throw new Error(
      `OUTBOUND_ALLOW rule "${text}" covers ${shut}, which no rule opens: name a smaller range without it`,
    );
  }
  return { text, port, range };
}

function parseHost(host: string, text: string): string {
  if (!isHostName(host)) throw new Error(`OUTBOUND_ALLOW rule "${text}" names no host: ${FORM}`);
  if (/(^|\.)metadata\.(google\.internal|goog)$/.test(host)) {
    throw new Error(
      `OUTBOUND_ALLOW rule "${text}" names a metadata service, which no rule opens: remove the rule`,
    );
  }
  return host;
}

/** `10.0.0.0/8`, `127.0.0.1`, `[::1]`, `[fd12::/64]`, `[fd12::]/64`, `fd12::/64`; else undefined */
function parseRange(host: string, text: string): Range | undefined {
  if (isIP(host) === 6 || isIP(text) === 6) {
    // `::1:9000` could be the address ::1 with port 9000, or the address ::1:9000 without a port.
    throw new Error(`OUTBOUND_ALLOW rule "${text}" is ambiguous: put the IPv6 address in brackets, ${FORM}`);
  }
  const plain = host.replace(/[[\]]/g, '');
  const address = parseAddress(plain);
  if (address !== undefined) return single(address);
  if (!plain.includes('/')) return undefined;
  if (!ipaddr.isValidCIDR(plain) || parseAddress(plain.slice(0, plain.indexOf('/'))) === undefined) {
    throw new Error(`OUTBOUND_ALLOW rule "${text}" holds no valid CIDR range: ${FORM}`);
  }
  return ipaddr.parseCIDR(plain);
}

/** Whether the rule opens `address` for a URL with this host and port. */
export function opens(rule: AllowRule, hostname: string, port: number, address: Address): boolean {
  if (rule.port !== port) return false;
  return rule.range === undefined ? rule.host === hostname : contains(rule.range, address);
}

/** Whether the rule could open a name before it is resolved. */
export function mayOpen(rule: AllowRule, hostname: string, port: number): boolean {
  return rule.port === port && (rule.range !== undefined || rule.host === hostname);
}

// Names of the local network, refused before they are resolved.

const localNames: readonly { suffix: string; source: string }[] = [
  { suffix: 'localhost', source: 'RFC 6761 §6.3' },
  { suffix: 'local', source: 'multicast DNS, RFC 6762' },
  {
    suffix: 'internal',
    source: 'reserved for private use by ICANN, 2024; clouds name their metadata servers in it',
  },
  { suffix: 'home.arpa', source: 'RFC 8375' },
  { suffix: 'onion', source: 'RFC 7686' },
];

/** A DNS host name (RFC 1123 §2.1; underscores occur in practice), without a trailing dot. */
export function isHostName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
}

/** @returns why the name is local, for the log; undefined: public DNS may have it. */
export function localName(name: string): string | undefined {
  if (!name.includes('.') && name !== 'localhost') return `${name} is a single label`;
  const row = localNames.find(({ suffix }) => name === suffix || name.endsWith(`.${suffix}`));
  return row && `.${row.suffix} is not public (${row.source})`;
}
