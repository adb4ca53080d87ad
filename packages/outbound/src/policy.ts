/** The rules on a URL before it is resolved, and on each address that it resolves to. */
import { networkInterfaces } from 'node:os';
import { neverOpen, notPublic, parseAddress, single } from './address-table.ts';
import { isHostName, localName, mayOpen, opens, type parseAllowRules } from './allow-rules.ts';
import { OPENING, OutboundRefused } from './errors.ts';

/**
 * `source`: read from. `webhook`: posted to, `destination`: put to; both https only. `service`:
 * part of an account that the operator set up; TLS only, on any port.
 */
export type Purpose = 'source' | 'webhook' | 'destination' | 'service';

export interface Policy {
  readonly allow: Readonly<ReturnType<typeof parseAllowRules>>;
  /** Ports open on every public address. */
  readonly ports: readonly number[];
}

interface Target {
  readonly url: URL;
  /** Lower case, without brackets or trailing dot: a name or an address. */
  readonly hostname: string;
  readonly port: number;
  readonly purpose: Purpose;
}

const MAX_URL_CHARACTERS = 2_048;

/**
 * Parses a URL once; from here on only the parsed fields count. `base` is the redirecting URL.
 * @throws OutboundRefused
 */
export function parseTarget(raw: string, purpose: Purpose, policy: Policy, base?: URL): Target {
  const url = parseUrl(raw, base);
  // DNS ignores one trailing dot, but a comparison does not.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const target = { url, hostname, port, purpose };
  const literal = parseAddress(hostname);
  const reason = literal ? addressRefusal(target, hostname, policy) : nameRefusal(target, policy);
  if (reason === undefined) return target;
  const opens = literal === undefined || neverOpen(single(literal)) === undefined;
  throw new OutboundRefused(reason, opens ? `${reason}; ${OPENING}` : reason);
}

function parseUrl(raw: string, base: URL | undefined): URL {
  if (raw.length > MAX_URL_CHARACTERS) throw tooOdd(`URL of ${raw.length} characters`);
  // WHATWG parsing drops tabs and line breaks, so `exa\tmple.com` would become another host.
  if (/[\s\p{Cc}]/u.test(raw)) throw tooOdd('whitespace or control characters in the URL');
  const url = URL.parse(raw, base?.href);
  if (url === null) throw tooOdd('not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw tooOdd(`scheme ${url.protocol}`);
  if (url.username !== '' || url.password !== '') throw tooOdd('credentials in the URL');
  return url;
}

/** No rule opens it. */
const tooOdd = (reason: string): OutboundRefused => new OutboundRefused(reason, reason);

function nameRefusal(target: Target, policy: Policy): string | undefined {
  const { hostname, port } = target;
  if (!isHostName(hostname)) return 'not a hostname';
  if (!policy.allow.some((rule) => rule.host === hostname && rule.port === port)) {
    const local = localName(hostname);
    if (local !== undefined) return local;
  }
  // A range rule may open it; only its addresses can tell.
  return policy.allow.some((rule) => mayOpen(rule, hostname, port))
    ? undefined
    : routeRefusal(target, policy);
}

/** Checks an address of the target. @returns why it is refused, for the log; undefined: allowed. */
export function addressRefusal(target: Target, text: string, policy: Policy): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return `${text} is not an address`;
  const shut = neverOpen(single(address));
  if (shut !== undefined) return `${text} is in ${shut}`;
  if (isOpenedByRule(target, text, policy)) return undefined;
  const special = notPublic(address);
  if (special !== undefined) return `${text} is in ${special}`;
  // Services hidden by a firewall would still answer to this machine itself.
  if (ownAddresses().has(address.toNormalizedString())) return `${text} is this machine's own`;
  return routeRefusal(target, policy);
}

/** Whether a rule of the operator opens it. */
export function isOpenedByRule({ hostname, port }: Target, text: string, { allow }: Policy): boolean {
  const address = parseAddress(text);
  return address !== undefined && allow.some((rule) => opens(rule, hostname, port, address));
}

function routeRefusal({ url, port, purpose }: Target, policy: Policy): string | undefined {
  if (purpose !== 'service' && !policy.ports.includes(port)) return `port ${port} is not open`;
  if (purpose !== 'source' && url.protocol !== 'https:') return `a ${purpose} needs https`;
  return undefined;
}

function ownAddresses(): Set<string> {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return new Set(
    own.map(({ address }) => parseAddress(address.replace(/%.*$/, ''))?.toNormalizedString() ?? ''),
  );
}
