/** Whether a lone worker lives and can work (decisions E, "Health"): a server of two paths. */
import type { RequestListener } from 'node:http';
import { listen } from '../http/listener.ts';
import type { Around } from '../http/watched.ts';

interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** What has to be there for jobs to be taken; each resolves when it is, and rejects when it is not. */
type HealthChecks = Readonly<Record<string, () => Promise<unknown>>>;

const CHECK_TIMEOUT_MS = 2000;

/**
 * @param port 0 takes a free one
 * @param facts what else an operator wants to see of a worker, as it stands in the answer
 */
export async function startHealthServer(
  host: string,
  port: number,
  checks: HealthChecks,
  facts: () => Readonly<Record<string, string>> = () => ({}),
  around: Around = (handler) => handler,
): Promise<HealthServer> {
  const answerHealth: RequestListener = async (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (request.method !== 'GET' || !['/health/live', '/health/ready'].includes(request.url ?? '')) {
      answer(404, { status: 'not found' });
    } else if (request.url === '/health/live') {
      answer(200, { status: 'ok' });
    } else {
      const results = Object.fromEntries(
        await Promise.all(
          Object.entries(checks).map(async ([name, check]) => [name, await stateOf(check)] as const),
        ),
      );
      const ready = Object.values(results).every((state) => state === 'up');
      answer(ready ? 200 : 503, { status: ready ? 'ok' : 'unavailable', checks: results, ...facts() });
    }
  };
  const { address, close } = await listen(host, port, () => around(answerHealth));
  return { port: address.port, close: () => close(0) };
}

async function stateOf(check: () => Promise<unknown>): Promise<'up' | 'down'> {
  const late = new Promise<'down'>((resolve) => {
    setTimeout(() => resolve('down'), CHECK_TIMEOUT_MS).unref();
  });
  return Promise.race([
    check().then(
      () => 'up' as const,
      () => 'down' as const,
    ),
    late,
  ]);
}
