/**
 * Our own Redis for one machine: a child on a unix socket, with an append-only file and without
 * eviction, ended with its parent. Queued jobs survive a `kill -9` of everything.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { within } from 'soundpost-base/deadline';
import { shellWord } from 'soundpost-base/launcher';

interface EmbeddedRedisOptions {
  /** Folder of the append-only file and the socket; created if missing. */
  readonly folder: string;
  /** Command prefix that ends the child with this process; keep its stdin open until then. */
  readonly launcher: readonly string[];
}

interface EmbeddedRedis {
  /** `unix:///…`, for connectRedis. */
  readonly url: string;
  /** Resolves with a sentence if the server ends without `close`. */
  readonly died: Promise<string>;
  close(): Promise<void>;
}

/** sun_path of sockaddr_un (unix(7)) holds 108 bytes with its final NUL; Redis checks that. */
const LONGEST_SOCKET_PATH = 107;
const VERSION_TIMEOUT_MS = 20_000;
const START_TIMEOUT_MS = 60_000;
/** How long a predecessor may take to end: it writes its file first. */
const PREDECESSOR_TIMEOUT_MS = 10_000;
/** Names the socket of a folder's server, for the command line beside a running service. */
const ADDRESS_FILE = 'socket-path';

/** The address of the embedded Redis of `folder`, or undefined if none answers. */
export async function runningEmbeddedRedis(folder: string): Promise<string | undefined> {
  const socket = await readFile(join(folder, ADDRESS_FILE), 'utf8').catch(() => undefined);
  if (socket === undefined) {
    return undefined;
  }
  const redis = await connectOnce(socket);
  redis?.disconnect();
  return redis && `unix://${socket}`;
}

/** Whether an embedded Redis has kept anything in the folder. */
export async function hasEmbeddedData(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.some((name) => /^(appendonly.*|.*\.rdb)$/.test(name));
}

/** The version from `redis-server --version`, such as `7.0.15`. @param program its path */
export async function redisServerVersion(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(program, ['--version'], { timeout: VERSION_TIMEOUT_MS });
  return /v=(\S+)/.exec(stdout)?.[1] ?? stdout.trim();
}

/** Throws if another server keeps using the folder, or redis-server cannot be started. */
export async function startEmbeddedRedis({ folder, launcher }: EmbeddedRedisOptions): Promise<EmbeddedRedis> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await predecessorGone(folder);
  const socket = await chooseSocket(folder);
  const identity = randomUUID();
  const [command = '', ...args] = [...launcher, 'redis-server', ...settings(folder, socket, identity)];
  // Its own process group: Ctrl-C must not end it, since jobs still need Redis to wind down.
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const ended = endOf(child, folder);
  let closing = false;
  const close = async (): Promise<void> => {
    closing = true;
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, 'SIGTERM');
      await ended;
    }
    await rm(join(folder, ADDRESS_FILE), { force: true });
    if (dirname(socket) !== folder) {
      await rm(dirname(socket), { recursive: true, force: true });
    }
  };
  const over = new AbortController();
  const failure = await Promise.race([answering(socket, identity, over.signal), ended]);
  over.abort();
  if (failure !== undefined) {
    await close();
    throw new Error(`the embedded Redis did not start: ${failure}`);
  }
  await writeFile(join(folder, ADDRESS_FILE), socket, { mode: 0o600 });
  const died = ended.then((sentence) => (closing ? new Promise<never>(() => undefined) : sentence));
  return { url: `unix://${socket}`, died, close };
}

function settings(folder: string, socket: string, identity: string): string[] {
  const table: Record<string, string> = {
    port: '0',
    unixsocket: socket,
    unixsocketperm: '700',
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
    // What remains is read at its end.
    loglevel: 'warning',
    // Has no effect while syslog is off; identifies the server that answers as ours.
    'syslog-ident': identity,
  };
  return Object.entries(table).flatMap(([name, value]) => [`--${name}`, value]);
}

/** The socket is in the folder or, if that path is too long, in a private temp folder. */
async function chooseSocket(folder: string): Promise<string> {
  const name = 'redis.sock';
  return Buffer.byteLength(join(folder, name)) <= LONGEST_SOCKET_PATH
    ? join(folder, name)
    : join(await mkdtemp(join(tmpdir(), 'soundpost-redis-')), name);
}

/** Waits for a predecessor's end: a new Redis would take its socket and write to its file. */
async function predecessorGone(folder: string): Promise<void> {
  const url = await runningEmbeddedRedis(folder);
  if (url === undefined) {
    return;
  }
  const redis = await connectOnce(url.slice('unix://'.length));
  if (redis === undefined) {
    return;
  }
  const isGone = await inTime(PREDECESSOR_TIMEOUT_MS, redis, 'close');
  redis.disconnect();
  if (!isGone) {
    throw new Error(
      `another Soundpost uses ${folder}: stop it, choose another DATA_DIR, or set REDIS_URL so that both use one Redis`,
    );
  }
}

async function connectOnce(socket: string): Promise<Redis | undefined> {
  const redis = new Redis(socket, { lazyConnect: true, retryStrategy: null, enableReadyCheck: false });
  redis.on('error', () => undefined);
  return redis.connect().then(
    () => redis,
    () => undefined,
  );
}

function endOf(child: ChildProcess, folder: string): Promise<string> {
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-LAST_WORDS_CHARACTERS);
    });
  }
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`redis-server cannot be run (${error.message}); install it`));
    child.once('close', (code, signal) => {
      const words = lastWords(said);
      const parts = [`redis-server ended with ${signal ?? `code ${code}`}`, words, remedyOf(words, folder)];
      resolve(parts.filter((part) => part !== undefined).join(': '));
    });
  });
}

const LAST_WORDS_CHARACTERS = 4000;
const LAST_LINES = 3;

/** Without the lines of every start, and the advice on the machine among them. */
function lastWords(said: string): string | undefined {
  const lines = (said.split('Server initialized').at(-1) ?? '')
    .split('\n')
    // `<pid>:<role> <date and time> # `
    .map((line) => line.replace(/^\d+:\w \d.*?\.\d{3} [#*.-] /, '').trim())
    .filter((line) => line !== '' && !/^WARNING|oO0OoO0/.test(line));
  return lines.length === 0 ? undefined : lines.slice(-LAST_LINES).join(' ');
}

/** Redis repairs an end that was cut off by itself, but nothing in the middle. */
function remedyOf(words: string | undefined, folder: string): string | undefined {
  if (words === undefined || !/append only file/i.test(words)) return undefined;
  if (!/bad file format|unexpected end/i.test(words)) return DISASTERS;
  // Redis 7 has a folder of files; Redis 6 has one.
  const manifest = join(folder, 'appendonlydir', 'appendonly.aof.manifest');
  const file = existsSync(manifest) ? manifest : join(folder, 'appendonly.aof');
  return `copy ${folder} to another place, then cut the file off where the damage begins: redis-check-aof --fix ${shellWord(file)}; ${DISASTERS}`;
}

const DISASTERS = 'see docs/how-to/disasters.md';

/** Resolves with undefined once our server is ready, or with a sentence if it fails. */
async function answering(socket: string, identity: string, signal: AbortSignal): Promise<string | undefined> {
  const redis = new Redis(socket, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
  // Every attempt fails until the socket exists.
  redis.on('error', () => undefined);
  try {
    if (!(await inTime(START_TIMEOUT_MS, redis, 'ready', signal))) {
      return `it was not ready within ${START_TIMEOUT_MS / 1000} s`;
    }
    const [, answered] = (await redis.config('GET', 'syslog-ident')) as string[];
    return answered === identity ? undefined : 'another redis-server answers on its socket';
  } finally {
    redis.disconnect();
  }
}

/** Whether the event comes in time. Not `events.once`, which rejects on an error. */
function inTime(ms: number, redis: Redis, event: string, signal?: AbortSignal): Promise<boolean> {
  const comes = () => new Promise<void>((resolve) => redis.once(event, () => resolve()));
  return within(ms, comes, { signal }).then(
    () => true,
    () => false,
  );
}
