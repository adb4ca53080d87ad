/**
 * `OUTBOUND_ALLOW`: what an operator opens besides public addresses on the usual ports, as `host-or-CIDR:port`,
 * comma-separated. A rule opens an otherwise non-public address, an unusual port and http for webhooks; metadata
 * addresses stay shut whatever it says.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, contains, neverOpen, parseAddress, type Range, single } from './address-table.ts';
import { isHostName } from './host-names.ts';

export interface AllowRule {
  /** As written, for the log at start. */
  readonly text: string;
  readonly port: number;
  /** Either one exact name, lower case, whatever it resolves to … */
  readonly host?: string;
  /** … or a range of addresses, however they were named. */
  readonly range?: Range;
}

const FORM = 'write host-or-CIDR:port, for instance media.example:8080, 10.0.0.0/8:443 or [fd12::/64]:443';

/** @throws Error that names the faulty rule and how to mend it. */
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

/** `10.0.0.0/8`, `127.0.0.1`, `[::1]`, `[fd12::/64]`, `[fd12::]/64` or `fd12::/64`; undefined for a name. */
function parseRange(host: string, text: string): Range | undefined {
  if (isIP(host) === 6 || isIP(text) === 6) {
    // `::1:9000` reads as the address ::1 with port 9000 and as the address ::1:9000 without a port.
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
