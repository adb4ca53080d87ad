/**
 * A network of tables: names answer what the test says, and every connection is recorded instead of
 * made.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { pino } from 'pino';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';

type Connect = NonNullable<Parameters<typeof createOutbound>[0]['connect']>;
type ConnectTarget = Parameters<Connect>[0];

export interface StubNetwork {
  readonly outbound: Outbound;
  /** Every attempt to open a connection, in order. */
  readonly connections: ConnectTarget[];
  /** Every name that was looked up, in order. */
  readonly lookups: string[];
  /** The exact reasons in the log, in order. */
  readonly refusals: string[];
}

/**
 * An address in public space, for names that the table does not hold; nothing is ever sent to it.
 */
export const PUBLIC_ADDRESS = '93.184.215.14';

interface StubOptions {
  /**
   * Addresses of names; a list of lists answers the look-ups one after the other, the last one for
   * good.
   */
  readonly names?: Readonly<Record<string, readonly string[] | readonly (readonly string[])[]>>;
  readonly allow?: string;
  /**
   * Loopback port of a real server that plays every server there is; without one each connection is
   * refused.
   */
  readonly serverPort?: number;
}

export function stubNetwork({ names = {}, allow = '', serverPort }: StubOptions = {}): StubNetwork {
  const connections: ConnectTarget[] = [];
  const lookups: string[] = [];
  const refusals: string[] = [];
  const outbound = createOutbound({
    allow: parseAllowRules(allow),
    ports: [80, 443, 8080, 8443],
    userAgent: 'Soundpost test',
    logger: pino({ level: 'info' }, { write: (line) => refusals.push(JSON.parse(line).reason) }),
    resolve: async (hostname) => {
      lookups.push(hostname);
      const answers = names[hostname] ?? [PUBLIC_ADDRESS];
      const nth = Math.min(lookups.filter((name) => name === hostname).length, answers.length) - 1;
      return answers.flatMap((answer, index) => (typeof answer === 'string' || index === nth ? answer : []));
    },
    connect: async (target) => {
      connections.push(target);
      if (serverPort === undefined) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      return connectLocally(serverPort);
    },
  });
  return { outbound, connections, lookups, refusals };
}

function connectLocally(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp(port, '127.0.0.1', () => resolve(socket)).once('error', reject);
  });
}
