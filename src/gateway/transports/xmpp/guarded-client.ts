/**
 * The library's client, but for where it connects and what it hands its password to. By itself it would resolve names
 * on its own, take any address, and log in without TLS when a server (or somebody in between) does not offer it.
 */
import { isIP, type LookupFunction } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { type Client, client as createClient } from '@xmpp/client';
import { OutboundRefused } from '../../../outbound/errors.ts';
import type { Outbound } from '../../../outbound/outbound.ts';
import { type Element, xml } from './element.ts';
import { type Endpoint, serviceUrl } from './endpoints.ts';
import { SCRAM, Scram } from './scram.ts';

type ServiceGuard = Pick<Outbound, 'serviceAddresses'>;

export interface GuardedClientOptions {
  readonly local: string;
  readonly domain: string;
  readonly password: string;
  readonly resource: string;
  /** UUID that stays the same for this account on this gateway (XEP-0388). */
  readonly deviceId: string;
  readonly guard: ServiceGuard;
}

export interface GuardedClient {
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

/** For the library's own waits: the connection, the stream's header, its end. */
const STEP_TIMEOUT_MS = 5_000;
const PLAIN = 'PLAIN';

export function createGuardedClient(options: GuardedClientOptions): GuardedClient {
  const { local, domain, password, resource, deviceId, guard } = options;
  let endpoint: Endpoint | undefined;
  let addresses: readonly string[] = [];

  const client = createClient({
    domain,
    resource,
    timeout: STEP_TIMEOUT_MS,
    credentials: async (authenticate, mechanisms) => {
      if (!client.isSecure()) {
        await allowWithoutTls(guard, endpoint);
      }
      // The library would take PLAIN first on a secure stream; SCRAM (RFC 5802) never shows the password.
      const mechanism = mechanisms.includes(SCRAM) ? SCRAM : PLAIN;
      if (!mechanisms.includes(mechanism) || (mechanism === PLAIN && !client.isSecure())) {
        throw new ConnectionRefused('the server offers no login that the gateway knows (SCRAM-SHA-1)');
      }
      const device = xml('user-agent', { id: deviceId }, xml('software', {}, 'Soundpost'));
      await authenticate({ username: local, password }, mechanism, device);
    },
  });
  const { saslFactory } = client as unknown as { readonly saslFactory: SaslFactory };
  const create = saslFactory.create.bind(saslFactory);
  saslFactory.create = (mechanisms) => (mechanisms.includes(SCRAM) ? new Scram() : create(mechanisms));
  // Reconnecting is the stream's own: the library's knows no back-off and gives up where connecting was refused.
  client.reconnect.stop();
  hearEarlyRefusals(client);

  const parameters = client.socketParameters.bind(client);
  client.socketParameters = (service) => {
    const found = parameters(service);
    return typeof found === 'object' && endpoint !== undefined
      ? { ...found, ...pinned(addresses), ...identity(domain, endpoint) }
      : found;
  };

  return {
    client,
    async open(to) {
      addresses = await guard.serviceAddresses(to.hostname, to.port);
      endpoint = to;
      const service = serviceUrl(to);
      client.options.service = service;
      await client.connect(service);
      await client.open({ domain });
    },
    cut() {
      const socket = client.socket as (Partial<Cuttable> & { socket?: Cuttable | null }) | null;
      // The library's TLS socket holds Node's.
      (socket?.socket ?? socket)?.destroy?.(new Error('given up'));
    },
  };
}

/**
 * The library looks at an answer only once it knows that the query is written. An error that comes before would be a rejection
 * that nobody has heard, and end the process.
 */
function hearEarlyRefusals({ iqCaller }: Client): void {
  const request = iqCaller.request.bind(iqCaller);
  iqCaller.request = (stanza: Element, timeoutMs?: number) => {
    const answer = request(stanza, timeoutMs);
    iqCaller.handlers.get(stanza.attrs.id)?.promise.catch(() => undefined);
    return answer;
  };
}

/** What the types of the client do not tell of. */
interface SaslFactory {
  create(mechanisms: readonly string[]): unknown;
}

interface Cuttable {
  destroy(reason: Error): void;
}

async function allowWithoutTls(guard: ServiceGuard, endpoint: Endpoint | undefined): Promise<void> {
  try {
    await guard.serviceAddresses(endpoint?.hostname ?? '', endpoint?.port ?? 0, true);
  } catch (cause) {
    throw new ConnectionRefused('the server offers no encryption', { cause });
  }
}

/** The socket goes to an address that was checked, even when the name has another answer by now. */
function pinned(addresses: readonly string[]): { lookup: LookupFunction; autoSelectFamily: boolean } {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  const [first] = answers;
  return {
    autoSelectFamily: true,
    lookup: (_hostname, options, callback) => {
      if (options.all) {
        callback(null, answers);
      } else {
        callback(null, first?.address ?? '', first?.family);
      }
    },
  };
}

/**
 * For direct TLS. The certificate has to be for the account's domain (RFC 6120 §13.7.2), or for the host that the
 * operator named; the library would look at the host alone and send no server name.
 */
function identity(domain: string, { hostname }: Endpoint): object {
  return {
    servername: domain,
    ALPNProtocols: ['xmpp-client'], // XEP-0368
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(domain, certificate) && checkServerIdentity(hostname, certificate),
  };
}
