/**
 * An XMPP server of the test's own: a real Prosody on free ports and in a folder of its own,
 * without root, both gone with the test. Accounts are written as data files, so that nothing else
 * has to run before it starts.
 */
import { spawn } from 'node:child_process';
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { dieWithParent } from 'soundpost-base/launcher';
import { freePorts } from './ports.ts';

/**
 * Reserved for examples (RFC 2606): no resolver knows it, so nothing here can reach a real server.
 */
export const DOMAIN = 'chat.example';
export const ROOMS = `rooms.${DOMAIN}`;
const SHARE = `share.${DOMAIN}`;

export interface ProsodySetting {
  /** Password by local part. */
  readonly accounts: Readonly<Record<string, string>>;
  /** Offers STARTTLS and direct TLS under this certificate, and refuses logins without TLS. */
  readonly tls?: { readonly keyFile: string; readonly certificateFile: string };
  /**
   * Modules of the domain that this server goes without, for instance `mam`, or uploads
   * (`http_file_share`).
   */
  readonly without?: readonly string[];
  /** Puts into the folder of its data what an earlier server has left there. */
  readonly furnish?: (dataFolder: string) => Promise<void>;
}

export interface TestProsody {
  readonly port: number;
  readonly directTlsPort: number;
  /** Rules that let the gateway reach the server and its uploads. */
  readonly outboundAllow: string;
  /** Where it keeps accounts and archives. */
  readonly dataFolder: string;
  /** What the server has logged until now. */
  log(): string;
  close(): Promise<void>;
}

interface Ports {
  readonly client: number;
  readonly directTls: number;
  readonly http: number;
}

const START_ATTEMPTS = 3;

/** @throws Error with the command that installs Prosody, where it is missing */
export async function startTestProsody(setting: ProsodySetting): Promise<TestProsody> {
  await requireProsody();
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(setting, await portsOfItsOwn());
    } catch (error) {
      // Between finding a free port and taking it somebody else may have come.
      if (attempt === START_ATTEMPTS || !(error instanceof PortTaken)) throw error;
    }
  }
}

class PortTaken extends Error {}

async function requireProsody(): Promise<void> {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = await Promise.all(folders.map((folder) => isThere(join(folder, 'prosody'))));
  if (!found.includes(true)) {
    throw new Error(
      'prosody is missing; install it with: script/bootstrap --all (Debian: apt-get install prosody)',
    );
  }
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

async function start(setting: ProsodySetting, ports: Ports): Promise<TestProsody> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-prosody-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const config = join(folder, 'prosody.cfg.lua');
  const dataFolder = join(folder, 'data');
  await setting.furnish?.(dataFolder);
  await writeAccounts(folder, setting.accounts);
  await writeFile(config, configuration(folder, setting, ports));
  const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
  // Never the test's own descriptors: a server that outlived a crashed test would hold its output
  // open.
  const child = spawn(launcher, [...prefix, 'prosody', '-F', '--config', config], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  const lines: string[] = [];
  const log = (): string => lines.join('\n');
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    await remove();
  };
  const serving = Promise.withResolvers<void>();
  const wanted = new Set(['c2s', 'http', ...(setting.tls ? ['c2s_direct_tls'] : [])]);
  const read = (line: string): void => {
    lines.push(line);
    if (/Failed to open server port/.test(line)) serving.reject(new PortTaken(line));
    const service = /Activated service '(\w+)' on \[/.exec(line)?.[1];
    if (service !== undefined && wanted.delete(service) && wanted.size === 0) serving.resolve();
  };
  createInterface({ input: child.stdout }).on('line', read);
  createInterface({ input: child.stderr }).on('line', read);
  ended.then(() => serving.reject(new Error(`prosody ended before it was ready:\n${log()}`)));
  try {
    await serving.promise;
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port: ports.client,
    directTlsPort: ports.directTls,
    outboundAllow: [ports.client, ports.directTls, ports.http].map((port) => `127.0.0.1:${port}`).join(','),
    dataFolder,
    log,
    close: stop,
  };
}

/** Prosody cannot tell a port that it chose, so it is told. */
async function portsOfItsOwn(): Promise<Ports> {
  const [client = 0, directTls = 0, http = 0] = await freePorts(3);
  return { client, directTls, http };
}

/**
 * As internal_hashed keeps them (RFC 5802 §3), but with few iterations: a login by SCRAM costs the
 * client as many, in JavaScript, and the tests log in often.
 */
const ITERATIONS = 2;

async function writeAccounts(folder: string, accounts: ProsodySetting['accounts']): Promise<void> {
  const store = join(folder, 'data', DOMAIN.replace('.', '%2e'), 'accounts');
  await mkdir(store, { recursive: true });
  for (const [name, password] of Object.entries(accounts)) {
    const salt = `salt of ${name}`;
    const salted = pbkdf2Sync(password, salt, ITERATIONS, 20, 'sha1');
    const clientKey = createHmac('sha1', salted).update('Client Key').digest();
    const storedKey = createHash('sha1').update(clientKey).digest('hex');
    const serverKey = createHmac('sha1', salted).update('Server Key').digest('hex');
    const fields = [
      `["iteration_count"] = ${ITERATIONS};`,
      `["salt"] = "${salt}";`,
      `["stored_key"] = "${storedKey}";`,
      `["server_key"] = "${serverKey}";`,
    ];
    await writeFile(join(store, `${name}.dat`), `return { ${fields.join(' ')} };\n`);
  }
}

function configuration(folder: string, { tls, without = [] }: ProsodySetting, ports: Ports): string {
  const modules = [
    ...['roster', 'saslauth', 'disco', 'ping', 'posix', 'smacks', 'carbons', 'mam', 'blocklist'],
    ...['pep', 'bookmarks', 'vcard_legacy', 'offline', 'http', ...(tls ? ['tls'] : [])],
  ].filter((module) => !without.includes(module));
  const encryption = tls
    ? `certificate = "${tls.certificateFile}"
ssl = { certificate = "${tls.certificateFile}"; key = "${tls.keyFile}" }
c2s_direct_tls_ports = { ${ports.directTls} }
c2s_direct_tls_ssl = { certificate = "${tls.certificateFile}"; key = "${tls.keyFile}" }
c2s_require_encryption = true`
    : 'c2s_require_encryption = false';
  return `
-- Where the tests run as root, so may this.
run_as_root = true
pidfile = "${folder}/prosody.pid"
data_path = "${folder}/data"
log = { { levels = { min = "info" }, to = "console" } }
daemonize = false
interfaces = { "127.0.0.1" }
c2s_ports = { ${ports.client} }
s2s_ports = {}
modules_disabled = { "s2s" }
modules_enabled = { ${modules.map((module) => `"${module}"`).join('; ')} }
authentication = "internal_hashed"
default_iteration_count = ${ITERATIONS}
${encryption}
http_ports = { ${ports.http} }
https_ports = {}
http_interfaces = { "127.0.0.1" }
-- Without the two an upload's PUT is answered 404: the component is found by the request's Host.
http_default_host = "${SHARE}"
http_external_url = "http://127.0.0.1:${ports.http}/"
smacks_hibernation_time = 60
archive_expires_after = "never"
muc_room_locking = false
muc_room_default_persistent = true

VirtualHost "${DOMAIN}"

Component "${ROOMS}" "muc"
  modules_enabled = { "muc_mam" }
${
  without.includes('http_file_share')
    ? ''
    : `
Component "${SHARE}" "http_file_share"
  http_file_share_access = { "${DOMAIN}" }
`
}`;
}
