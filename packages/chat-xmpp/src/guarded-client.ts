/**
 * The library's client with guarded connections and passwords. The library itself would resolve
 * names, accept any address, and log in without TLS if a server or an attacker offers none.
 */
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { type Client, client as createClient } from '@xmpp/client';
import { ServiceSocket } from 'soundpost-outbound/connector';
import { OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import { xml } from './element.ts';
import { serviceUrl } from './endpoints.ts';
import { SCRAM, Scram } from './scram.ts';

type Endpoint = Parameters<typeof serviceUrl>[0];

type ServiceGuard = Pick<Outbound, 'serviceAddresses'>;

interface GuardedClientOptions {
  readonly local: string;
  readonly domain: string;
  readonly password: string;
  readonly resource: string;
  /** UUID that stays the same for this account on this gateway (XEP-0388). */
  readonly deviceId: string;
  readonly guard: ServiceGuard;
}

interface GuardedClient {
  readonly client: Client;
  /** Connects and opens the stream. The client emits `online` later. */
  open(endpoint: Endpoint): Promise<void>;
  /**
   * Ends the connection at once. The library's own way waits for the server, and then closes the
   * next connection if that has already begun.
   */
  cut(): void;
}

/** The server breaks the operator's rules, so a retry would not help. */
class ConnectionRefused extends Error {}

/** Login failures that are temporary (RFC 6120 §6.5). */
const passing = new Set(['temporary-auth-failure', 'aborted']);

/** @returns the message for a failure that only the operator can fix; undefined: try again */
export function finalRefusal(error: unknown): string | undefined {
  if (error instanceof ConnectionRefused) {
    return error.message;
  }
  if (error instanceof OutboundRefused) {
    return 'the server lies at an address that the operator has not allowed (OUTBOUND_ALLOW)';
  }
  const isLogin = error instanceof Error && error.name === 'SASLError' && 'condition' in error;
  const condition = isLogin ? String(error.condition) : undefined;
  return condition === undefined || passing.has(condition)
    ? undefined
    : `the server refused the login (${condition})`;
}

/** Node's and OpenSSL's codes for an invalid certificate: X509_verify_cert_error_string(3). */
const CERTIFICATE_TROUBLE =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE))/;

/** @returns the message for an untrusted certificate; undefined for any other failure */
export function certificateTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined;
  const code = String(error.code);
  if (!CERTIFICATE_TROUBLE.test(code)) return undefined;
  return `the server’s certificate is not trusted (${code}); use a certificate that is valid for its name, or name its authority in NODE_EXTRA_CA_CERTS`;
}

/** Limit for each of the library's steps: connecting, the stream header, the stream's end. */
const STEP_TIMEOUT_MS = 5_000;
const PLAIN = 'PLAIN';
/** The library's own SCRAM is registered under the name that goes to the server. */
const OWN_SCRAM = `soundpost ${SCRAM}`;

export function createGuardedClient(options: GuardedClientOptions): GuardedClient {
  const { local, domain, password, resource, deviceId, guard } = options;
  let endpoint: Endpoint | undefined;
  let line: ServiceSocket | undefined;
  /** Where the line goes: a server can redirect the library (RFC 6120 §4.9.3.19). */
  let reached = { hostname: '', port: 0 };
  class Line extends ServiceSocket {
    constructor() {
      super((hostname, port) => {
        reached = { hostname, port };
        return guard.serviceAddresses(hostname, port);
      });
      line = this;
    }
  }

  const client = createClient({
    domain,
    resource,
    timeout: STEP_TIMEOUT_MS,
    credentials: async (authenticate, mechanisms) => {
      if (!client.isSecure()) {
        await allowWithoutTls(guard, reached);
      }
      // On a secure stream the library prefers PLAIN; SCRAM (RFC 5802) never sends the password.
      const mechanism = mechanisms.includes(SCRAM) ? SCRAM : PLAIN;
      if (!mechanisms.includes(mechanism) || (mechanism === PLAIN && !client.isSecure())) {
        throw new ConnectionRefused('the server offers no login that the gateway knows (SCRAM-SHA-1)');
      }
      const device = xml('user-agent', { id: deviceId }, xml('software', {}, 'Soundpost'));
      const credentials = { username: local, password };
      await authenticate(credentials, mechanism === SCRAM ? OWN_SCRAM : mechanism, device);
    },
  });
  (client as unknown as { readonly saslFactory: SaslFactory }).saslFactory.use(OWN_SCRAM, Scram);
  // The stream reconnects itself: the library has no back-off and stops on a refused connection.
  client.reconnect.stop();
  catchEarlyErrors(client);
  const tcp = transportOf(client, 'xmpp://host');
  const tls = transportOf(client, 'xmpps://host');
  client.transports = [
    withSocket(tcp, Line),
    withSocket(
      tls,
      directTlsSocket(tls, Line, () => identity(domain, endpoint)),
    ),
  ];

  return {
    client,
    async open(to) {
      endpoint = to;
      const service = serviceUrl(to);
      client.options.service = service;
      await client.connect(service);
      await client.open({ domain });
    },
    cut() {
      line?.destroy(new Error('given up'));
    },
  };
}

/**
 * The library awaits an answer only after the query is written. An error that arrives earlier
 * would be an unhandled rejection and end the process.
 */
function catchEarlyErrors(client: Client): void {
  client.prependListener('element', ({ attrs }) => {
    client.iqCaller.handlers.get(attrs.id)?.promise.catch(() => undefined);
  });
}

/** Missing in the client's types. */
interface SaslFactory {
  use(name: string, mechanism: new () => Scram): unknown;
}

async function allowWithoutTls(
  guard: ServiceGuard,
  { hostname, port }: { readonly hostname: string; readonly port: number },
): Promise<void> {
  try {
    await guard.serviceAddresses(hostname, port, true);
  } catch (cause) {
    throw new ConnectionRefused('the server offers no encryption', { cause });
  }
}

type Transport = Client['transports'][number];

/** The library's own transport for an address. */
function transportOf({ transports }: Client, service: string): Transport {
  const found = transports.find(({ prototype }) => prototype.socketParameters(service) !== undefined);
  if (found === undefined) throw new Error(`@xmpp/client has no transport for ${service}`);
  return found;
}

/** The library makes a new socket for each connection, also after a redirect. */
function withSocket(transport: Transport, Socket: new () => object): Transport {
  abstract class Guarded extends transport {}
  Object.assign(Guarded.prototype, { Socket });
  return Guarded;
}

/** TLS over a guarded socket, as with STARTTLS. */
function directTlsSocket(
  { prototype }: Transport,
  Line: new () => ServiceSocket,
  secureOptions: () => object,
): new () => object {
  if (prototype.Socket === null) throw new Error('@xmpp/client has no socket for TLS');
  return class extends prototype.Socket {
    override connect(target: unknown): void {
      const line = new Line();
      super.connect({ socket: line, ...secureOptions() });
      line.connect(target);
    }
  };
}

/**
 * For direct TLS. The certificate must name the account's domain (RFC 6120 §13.7.2) or the
 * operator's host; the library would check the host alone and send no server name.
 */
function identity(domain: string, endpoint: Endpoint | undefined): object {
  return {
    servername: domain,
    ALPNProtocols: ['xmpp-client'], // XEP-0368
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(domain, certificate) &&
      checkServerIdentity(endpoint?.hostname ?? domain, certificate),
  };
}
