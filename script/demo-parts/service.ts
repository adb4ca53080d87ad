/** The whole service as a child process, over a folder of the demo's own and on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface Service {
  readonly api: string;
  /** One-time link to the voice inbox. */
  readonly inbox: string;
  readonly apiKey: string;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  stop(): Promise<void>;
}

/** @param allowed address that the service may post to although it is not public */
export async function startService(dataDir: string, allowed: string): Promise<Service> {
  const apiKey = `sp_${randomBytes(4).toString('hex')}_${randomBytes(16).toString('hex')}`;
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/main.ts'), 'serve'], {
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      API_PORT: '0',
      GATEWAY_PORT: '0',
      BOOTSTRAP_API_KEY: apiKey,
      OUTBOUND_ALLOW: allowed,
      // Also without the audit records, which every other level has.
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'silent',
      REDIS_URL: '',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const addresses = await Promise.race([addressesOf(child), ended.then(() => undefined)]);
  if (addresses === undefined) {
    throw new Error('the service did not start');
  }
  return {
    ...addresses,
    apiKey,
    ended,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** What the service prints once it listens. */
async function addressesOf(child: ChildProcess): Promise<{ api: string; inbox: string } | undefined> {
  if (child.stdout === null) {
    return undefined;
  }
  const found: Record<string, string> = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const [, name, address] = /^(API|Inbox)\s+(http\S+)/.exec(line) ?? [];
    if (name !== undefined && address !== undefined) {
      found[name] = address;
    }
    if (found.API !== undefined && found.Inbox !== undefined) {
      return { api: found.API, inbox: found.Inbox };
    }
  }
  return undefined;
}
