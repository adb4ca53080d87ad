/** Several gateways on one Redis, each a process of its own that a test can kill, stop and end. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import type { TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { caller, type GatewaySetting, type TestGateway } from '../gateway-fixture.ts';

/** Long enough for a machine that is busy: who stands still for some seconds keeps it. */
export const timing = { leaseMs: 8000, retryMs: 250, marginMs: 1000 };

export interface GatewayProcess {
  readonly url: string;
  readonly call: TestGateway['call'];
  readonly child: ChildProcess;
  /** Resolves when it is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

export interface GatewayProcesses {
  /** Those that were started and not ended, oldest first. */
  readonly running: readonly GatewayProcess[];
  start(more?: Partial<GatewaySetting>): Promise<GatewayProcess>;
  /** Resolves when one of them serves. */
  active(timeoutMs?: number): Promise<GatewayProcess>;
  close(): Promise<void>;
}

export function gatewayProcesses(
  redis: TestRedis,
  setting: Omit<GatewaySetting, 'redisUrl'>,
): GatewayProcesses {
  const running: GatewayProcess[] = [];
  let started = 0;
  return {
    running,
    async start(more = {}) {
      started += 1;
      // A home of its own, as on another machine: nobody sees that it has died.
      const election = { timing, home: `machine-${started}`, ...setting.election, ...more.election };
      const whole: GatewaySetting = { ...setting, ...more, redisUrl: redis.url, election };
      const child = fork(join(import.meta.dirname, '../gateway-process.ts'), [JSON.stringify(whole)], {
        env: { ...process.env, TEST_LOG_LEVEL: 'info' },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      });
      let log = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
      const ended = once(child, 'exit');
      const [{ port }] = (await Promise.race([
        once(child, 'message'),
        ended.then(() => Promise.reject(new Error(`the gateway process ended at once:\n${log}`))),
      ])) as [{ port: number }];
      const url = `http://127.0.0.1:${port}`;
      const found: GatewayProcess = {
        url,
        call: caller(url),
        child,
        async end(signal) {
          child.kill(signal);
          await ended;
          running.splice(running.indexOf(found), 1);
        },
      };
      running.push(found);
      return found;
    },
    active: (timeoutMs) =>
      until(
        'one of the gateways to serve',
        async () => {
          for (const gateway of running) {
            // One that is stopped never answers.
            const ready = await fetch(`${gateway.url}/health/ready`, {
              signal: AbortSignal.timeout(500),
            }).catch(() => undefined);
            if (ready?.status === 200) return gateway;
          }
          return undefined;
        },
        timeoutMs,
      ),
    async close() {
      await Promise.all([...running].map((gateway) => gateway.end('SIGKILL')));
    },
  };
}
