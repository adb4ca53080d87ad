/** Addresses of an account's server: set by the operator, or from DNS. */
import { promises as dns } from 'node:dns';

interface Endpoint {
  /** TLS from the first byte (XEP-0368), otherwise STARTTLS (RFC 6120 §5). */
  readonly directTls: boolean;
  readonly hostname: string;
  readonly port: number;
}

const CLIENT_PORT = 5222;
const DIRECT_TLS_PORT = 5223;

/** @param service `xmpp://host[:port]` or `xmpps://host[:port]`; undefined asks DNS */
export async function endpointsOf(domain: string, service: string | undefined): Promise<Endpoint[]> {
  if (service !== undefined) {
    return [parseService(service)];
  }
  const records = await Promise.all([
    lookUp(`_xmpps-client._tcp.${domain}`, true),
    lookUp(`_xmpp-client._tcp.${domain}`, false),
  ]);
  const found = records.flat().toSorted((a, b) => a.priority - b.priority || b.weight - a.weight);
  // RFC 6120 §3.2.2: without records, use the domain itself.
  return found.length > 0
    ? found.map(({ endpoint }) => endpoint)
    : [{ directTls: false, hostname: domain, port: CLIENT_PORT }];
}

function parseService(service: string): Endpoint {
  const url = new URL(service);
  const directTls = url.protocol === 'xmpps:';
  return {
    directTls,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (directTls ? DIRECT_TLS_PORT : CLIENT_PORT),
  };
}

interface Found {
  readonly endpoint: Endpoint;
  readonly priority: number;
  readonly weight: number;
}

async function lookUp(name: string, directTls: boolean): Promise<Found[]> {
  try {
    const records = await dns.resolveSrv(name);
    // RFC 2782: "." means that the service is not offered.
    return records
      .filter((record) => record.name !== '' && record.name !== '.')
      .map(({ name: hostname, port, priority, weight }) => ({
        endpoint: { directTls, hostname, port },
        priority,
        weight,
      }));
  } catch {
    return [];
  }
}

/** In the form that the client library reads. */
export function serviceUrl({ directTls, hostname, port }: Endpoint): string {
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  return `${directTls ? 'xmpps' : 'xmpp'}://${host}:${port}`;
}
