/** What may be asked for: the rules on a URL before anything is resolved, and the verdict on each address it resolves to. */
import { networkInterfaces } from 'node:os';
import { neverOpen, notPublic, parseAddress, single } from './address-table.ts';
import type { parseAllowRules } from './allow-rules.ts';
import { isHostName, localName, mayOpen, opens } from './allow-rules.ts';
import { OutboundRefused } from './errors.ts';

/**
 * `source`: read by us. `webhook`: posted to by us, `destination`: put to by us, both https only. `service`: what belongs to an
 * account that the operator set up, TLS only, on whatever public port it is.
 */
export type Purpose = 'source' | 'webhook' | 'destination' | 'service';

export interface Policy {
  readonly allow: Readonly<ReturnType<typeof parseAllowRules>>;
  /** Ports that are open on every public address. */
  readonly ports: readonly number[];
}

interface Target {
  readonly url: URL;
  /** Lower case, without brackets or a trailing dot: a name or an address. */
  readonly hostname: string;
  readonly port: number;
  readonly purpose: Purpose;
}

const MAX_URL_CHARACTERS = 2_048;

/**
 * Reads a URL once; from here on only the parsed fields count. `base` is the URL that redirected here.
 * @throws OutboundRefused
 */
export function parseTarget(raw: string, purpose: Purpose, policy: Policy, base?: URL): Target {
  const url = parseUrl(raw, base);
  // One trailing dot is the same name to DNS, but not to a comparison.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const target = { url, hostname, port, purpose };
  const reason = parseAddress(hostname)
    ? addressRefusal(target, hostname, policy)
    : nameRefusal(target, policy);
  if (reason !== undefined) throw new OutboundRefused(reason);
  return target;
}

function parseUrl(raw: string, base: URL | undefined): URL {
  if (raw.length > MAX_URL_CHARACTERS) throw new OutboundRefused(`URL of ${raw.length} characters`);
  // WHATWG parsing drops tabs and line breaks: `exa\tmple.com` would become another host than the one that was read.
  if (/[\s\p{Cc}]/u.test(raw)) throw new OutboundRefused('white space or control characters in the URL');
  const url = URL.parse(raw, base?.href);
  if (url === null) throw new OutboundRefused('not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new OutboundRefused(`scheme ${url.protocol}`);
  if (url.username !== '' || url.password !== '') throw new OutboundRefused('credentials in the URL');
  return url;
}

function nameRefusal(target: Target, policy: Policy): string | undefined {
  const { hostname, port } = target;
  if (!isHostName(hostname)) return 'not a host name';
  if (!policy.allow.some((rule) => rule.host === hostname && rule.port === port)) {
    const local = localName(hostname);
    if (local !== undefined) return local;
  }
  // A range rule may open it, which only its addresses can tell.
  return policy.allow.some((rule) => mayOpen(rule, hostname, port))
    ? undefined
    : routeRefusal(target, policy);
}

/** The verdict on one address of the target. @returns why it is refused, for the log, or undefined when it may be reached. */
export function addressRefusal(target: Target, text: string, policy: Policy): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return `${text} is not an address`;
  const shut = neverOpen(single(address));
  if (shut !== undefined) return `${text} is in ${shut}`;
  if (isOpenedByRule(target, text, policy)) return undefined;
  const special = notPublic(address);
  if (special !== undefined) return `${text} is in ${special}`;
  // Services of this machine that a firewall hides from outside would answer to the machine itself.
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
