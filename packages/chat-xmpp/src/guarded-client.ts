/**
 * The library's client, but for where it connects and what it hands its password to. By itself it would resolve names
 * on its own, take any address, and log in without TLS when a server (or somebody in between) does not offer it.
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
  /** Connects and opens the stream; whether it comes online is told by the client's events. */
  open(endpoint: Endpoint): Promise<void>;
  /**
   * Ends the connection at once. The library's own way waits for the server, and if the next connection has begun by
   * then it closes that one.
   */
  cut(): void;
}

/** The server is not what the operator allowed: trying again would change nothing. */
class ConnectionRefused extends Error {}

/** Failures of a login that pass by themselves (RFC 6120 §6.5). */
const passing = new Set(['temporary-auth-failure', 'aborted']);

/** @returns what to tell of a failure that only the operator can mend; undefined for one that may pass */
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

/** What Node and OpenSSL say of a certificate that they do not take: X509_verify_cert_error_string(3), and the name that does not match. */
const CERTIFICATE_TROUBLE =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE))/;

/** @returns what to tell of a certificate that is not trusted; undefined for any other failure */
export function certificateTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined;
  const code = String(error.code);
  if (!CERTIFICATE_TROUBLE.test(code)) return undefined;
  return `the server’s certificate is not trusted (${code}); give it one that is valid for its name, or name its authority in NODE_EXTRA_CA_CERTS`;
}

/** For the library's own waits: the connection, the stream's header, its end. */
const STEP_TIMEOUT_MS = 5_000;
const PLAIN = 'PLAIN';
/** Beside the library's own SCRAM, which has the name that goes to the server. */
const OWN_SCRAM = `soundpost ${SCRAM}`;

export function createGuardedClient(options: GuardedClientOptions): GuardedClient {
  const { local, domain, password, resource, deviceId, guard } = options;
  let endpoint: Endpoint | undefined;
  let line: ServiceSocket | undefined;
  /** Where the line goes: a server may have sent the library elsewhere than to the endpoint (RFC 6120 §4.9.3.19). */
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
      // The library would take PLAIN first on a secure stream; SCRAM (RFC 5802) never shows the password.
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
  // Reconnecting is the stream's own: the library's knows no back-off and gives up where connecting was refused.
  client.reconnect.stop();
  hearEarlyRefusals(client);
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
 * The library looks at an answer only once it knows that the query is written. An error that comes before would be a rejection
 * that nobody has heard, and end the process.
 */
function hearEarlyRefusals(client: Client): void {
  client.prependListener('element', ({ attrs }) => {
    client.iqCaller.handlers.get(attrs.id)?.promise.catch(() => undefined);
  });
}

/** What the types of the client do not tell of. */
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

/** The library's own for an address. */
function transportOf({ transports }: Client, service: string): Transport {
  const found = transports.find(({ prototype }) => prototype.socketParameters(service) !== undefined);
  if (found === undefined) throw new Error(`@xmpp/client has no transport for ${service}`);
  return found;
}

/** The library makes a new socket for each connection, also when a server sends it elsewhere. */
function withSocket(transport: Transport, Socket: new () => object): Transport {
  abstract class Guarded extends transport {}
  Object.assign(Guarded.prototype, { Socket });
  return Guarded;
}

/** TLS over a line, as STARTTLS has it. */
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
 * For direct TLS. The certificate has to be for the account's domain (RFC 6120 §13.7.2), or for the host that the
 * operator named; the library would look at the host alone and send no server name.
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
