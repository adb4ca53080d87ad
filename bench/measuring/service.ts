/** The three processes and their Redis as in production, on this machine, with clients at them. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'soundpost-testing/client';
import type { RunningProcess } from 'soundpost-testing/service';
import { openHome } from './home.ts';
import { inputFolder } from './inputs.ts';

export interface ServiceBench {
  readonly api: Client;
  readonly gatewayUrl: string;
  readonly gatewayKey: string;
  readonly key: string;
  readonly apiUrl: string;
  readonly processes: Readonly<Record<'api' | 'worker' | 'gateway', RunningProcess>>;
  readonly folder: string;
  /** Runs a script of this folder in a process of its own: what is compared with. */
  script(name: string, ...args: readonly string[]): RunningProcess;
  close(): Promise<void>;
}

/**
 * @param environment for all three, over the defaults of production and no limits of rate and number
 * @param program default: that of this checkout, with what is compiled there
 */
export async function openService(
  environment: Readonly<Record<string, string>> = {},
  program = 'src/main.ts',
): Promise<ServiceBench> {
  const gatewayKey = randomBytes(16).toString('hex');
  const { folder, home, remove } = await openHome({
    GATEWAY_API_KEY: gatewayKey,
    LOG_LEVEL: 'warn',
    // As script/server has it.
    NODE_OPTIONS: '--max-semi-space-size=4',
    NODE_COMPILE_CACHE: join(inputFolder, 'compiled'),
    ...environment,
  });
  const start = (command: string, more = {}): RunningProcess =>
    home.run([process.execPath, '--max-semi-space-size=4', program, command], more);
  const api = start('api');
  const gateway = start('gateway');
  const [apiUrl, gatewayUrl] = await Promise.all([
    api.says(/^API\s+(http\S+)/m),
    gateway.says(/^Gateway\s+(http\S+)/m),
  ]);
  const worker = start('worker', { GATEWAY_URL: gatewayUrl });
  await worker.says(/^Worker/m);
  return {
    api: new Client(apiUrl, home.key),
    apiUrl,
    key: home.key,
    gatewayUrl,
    gatewayKey,
    processes: { api, worker, gateway },
    folder,
    script: (name, ...args) => home.run([process.execPath, join('bench', 'measuring', name), ...args]),
    async close() {
      for (const { signal, exited } of [worker, gateway, api]) {
        signal('SIGTERM');
        await exited;
      }
      await remove();
    },
  };
}

/** What a process alone holds and has held at most in memory, MiB, with the code that it shares with others. Its children do not count. */
export function residentMib({ pid }: RunningProcess): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { now: mib('VmRSS'), most: mib('VmHWM') };
}
