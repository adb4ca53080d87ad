/**
 * The XMPP client of another implementation (packages/testing/src/xmpp-peer.py), as a process that
 * a test asks and listens to.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { within } from 'soundpost-base/deadline';
import { dieWithParent } from 'soundpost-base/launcher';

/** Debian's, which sees Debian's packages; another one on the PATH does not. */
const PYTHON = '/usr/bin/python3';
const SLIXMPP = '/usr/lib/python3/dist-packages/slixmpp';
const program = fileURLToPath(new URL('./xmpp-peer.py', import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, else it fails
export type PeerEvent = Record<string, any>;

export interface XmppPeer {
  /** Bare. */
  readonly jid: string;
  /** With the resource that the server gave it. */
  readonly fullJid: string;
  /**
   * Calls a method of the peer by its name.
   * @throws Error with the condition that the server answered
   */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, else it fails
  do(name: string, fields?: Record<string, unknown>): Promise<any>;
  /** What came since it connected, oldest first. */
  readonly events: readonly PeerEvent[];
  /** The first event, past or to come, that fits. @throws Error that lists what came instead */
  seen(what: string, fits: (event: PeerEvent) => boolean): Promise<PeerEvent>;
  close(): Promise<void>;
}

export interface PeerSetting {
  readonly port: number;
  readonly jid: string;
  readonly password: string;
  /** Sends receipts by itself; default: when a test says so. */
  readonly acknowledges?: boolean;
}

const WAIT_MS = 30_000;

/**
 * @throws Error with the command that installs slixmpp, where it is missing, or when the login
 * fails
 */
export async function startPeer(setting: PeerSetting): Promise<XmppPeer> {
  await access(SLIXMPP).catch(() => {
    throw new Error(
      'python3-slixmpp is missing; install it with: script/bootstrap --all (Debian: apt-get install python3-slixmpp)',
    );
  });
  const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
  const child = spawn(launcher, [...prefix, PYTHON, '-u', program, JSON.stringify(setting)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  const complaints: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line));
  const events: PeerEvent[] = [];
  const waiting = new Set<() => void>();
  const answers = new Map<number, (answer: PeerEvent) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said: PeerEvent = JSON.parse(line);
    if (said.event === undefined) {
      answers.get(said.ask)?.(said);
      answers.delete(said.ask);
      return;
    }
    events.push(said);
    for (const look of waiting) look();
  });

  const failure = (reason: string): Error => {
    const heard = events.map((event) => JSON.stringify(event));
    return new Error([`${setting.jid} ${reason}; it heard`, ...heard, ...complaints].join('\n'));
  };
  const seen: XmppPeer['seen'] = (what, fits) => {
    const { promise, resolve } = Promise.withResolvers<PeerEvent>();
    const look = (): void => {
      const found = events.find(fits);
      if (found !== undefined) resolve(found);
    };
    waiting.add(look);
    look();
    const reason = () => failure(`waited in vain for ${what}`);
    return within(WAIT_MS, () => promise, { reason }).finally(() => waiting.delete(look));
  };

  let asked = 0;
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    const { jid: fullJid } = await Promise.race([
      seen('its login', ({ event }) => event === 'ready'),
      ended.then(() => Promise.reject(failure('ended before it was ready'))),
    ]);
    return {
      jid: setting.jid,
      fullJid,
      events,
      seen,
      do: (name, fields = {}) =>
        new Promise((resolve, reject) => {
          const ask = ++asked;
          answers.set(ask, ({ result, error }) =>
            error === undefined ? resolve(result) : reject(new Error(`${name}: ${error}`)),
          );
          child.stdin.write(`${JSON.stringify({ ask, do: name, ...fields })}\n`);
        }),
      close: kill,
    };
  } catch (error) {
    await kill();
    throw error;
  }
}
