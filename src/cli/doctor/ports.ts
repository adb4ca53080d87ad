/** The ports: free, or in use by Soundpost itself, which is fine. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { within } from 'soundpost-base/deadline';
import { get } from 'soundpost-base/node-http';
import { type Finding, messageOf, ok } from './check.ts';

interface WantedPort {
  /** `API_PORT` */
  readonly variable: string;
  readonly port: number;
  /** Whether `serve` needs it; otherwise a port in use is only a warning. */
  readonly isNeeded: boolean;
}

const PATIENCE_MS = 10_000;
/** Keeps the proposals for three ports apart. */
const STEP = 10;
const FIRST_FOR_EVERYBODY = 1024;
const LAST_PORT = 65_535;

/** @param host address that the servers listen on */
export async function checkPorts(host: string, wanted: readonly WantedPort[]): Promise<Finding[]> {
  const twice = wanted.find(({ port }, place) => wanted.findIndex((other) => other.port === port) < place);
  if (twice !== undefined && twice.port !== 0) {
    const names = wanted.filter(({ port }) => port === twice.port).map(({ variable }) => variable);
    return [
      {
        verdict: 'fault',
        found: `${names.join(' and ')} are both ${twice.port}`,
        remedy: 'give each its own',
        command: `export ${twice.variable}=${await freePort(host, twice.port)}`,
      },
    ];
  }
  // One at a time: the proposed free ports must differ.
  const findings: Finding[] = [];
  for (const port of wanted) findings.push(await checkPort(host, port));
  return findings;
}

async function checkPort(host: string, { variable, port, isNeeded }: WantedPort): Promise<Finding> {
  const what = `${variable}=${port}`;
  const code = await obstacleTo(host, port);
  if (code === undefined) return ok(port === 0 ? `${variable}=0: uses a free port` : `${what} is free`);
  const verdict = isNeeded ? 'fault' : 'warning';
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    const found = `HOST=${host} is not an address of this machine (${code})`;
    return {
      verdict,
      found,
      remedy: 'listen on all addresses, or only on this machine',
      command: 'export HOST=127.0.0.1',
    };
  }
  const other = {
    remedy: 'choose another port; `ss -ltnp` shows which program uses this one',
    command: `export ${variable}=${await freePort(host, port)}`,
  };
  if (code === 'EACCES')
    return { verdict, found: `${what}: this user has no permission to listen on it`, ...other };
  if (code !== 'EADDRINUSE') return { verdict, found: `${what}: ${code}`, ...other };
  if (await isSoundpost(host, port)) return ok(`${what} is in use by Soundpost itself, which is running`);
  const only = isNeeded ? '' : '; only `soundpost worker` needs it';
  return { verdict, found: `${what} is in use by another program${only}`, ...other };
}

/** The error code that prevents listening; undefined if nothing does. */
async function obstacleTo(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
  } finally {
    server.close();
  }
}

/** Near the wanted port. */
async function freePort(host: string, wanted: number): Promise<number> {
  for (let port = wanted + STEP; port <= LAST_PORT; port += STEP) {
    if (port >= FIRST_FOR_EVERYBODY && (await obstacleTo(host, port)) === undefined) return port;
  }
  return 0;
}

/** Whether one of our servers answers `/health/ready`, ready or not. */
async function isSoundpost(host: string, port: number): Promise<boolean> {
  // An unspecified address cannot be called.
  const name = ({ '0.0.0.0': '127.0.0.1', '::': '::1' } as Record<string, string>)[host] ?? host;
  const request = get({ host: name, port, path: '/health/ready', agent: false });
  const ask = async () => {
    const [response] = await once(request, 'response');
    return await text(response);
  };
  try {
    const answer = await within(PATIENCE_MS, ask);
    return /"status":\s*"(ok|unavailable)".*"redis":.*"storage":/s.test(answer);
  } catch {
    return false;
  } finally {
    request.on('error', () => undefined).destroy();
  }
}
