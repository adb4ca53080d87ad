/** Whether a worker process lives and can work (decisions E, "Health"): a server with two paths. */
import type { RequestListener } from 'node:http';
import { listen } from 'soundpost-kit/http/listener';
import type { Around } from 'soundpost-kit/http/watched';
import { sayAway } from 'soundpost-kit/observe/away';
import type { Probes } from 'soundpost-kit/observe/probes';
import { healthOfRedis, type Redis } from 'soundpost-kit/redis/connection';

interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @param port 0 picks a free one @param redis its commands end in time */
export async function startHealthServer(
  host: string,
  port: number,
  { redis, probes, sandbox }: { readonly redis: Redis; readonly probes: Probes; readonly sandbox: string },
  around: Around = (handler) => handler,
): Promise<HealthServer> {
  const answerHealth: RequestListener = async (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (request.method !== 'GET' || !['/health/live', '/health/ready'].includes(request.url ?? '')) {
      answer(404, { status: 'not found' });
    } else if (request.url === '/health/live') {
      answer(...liveness(probes));
    } else {
      const { state, reason } = await healthOfRedis(redis);
      const ready = state === 'up';
      answer(ready ? 200 : 503, {
        status: ready ? 'ok' : 'unavailable',
        checks: { redis: state },
        ...(reason && { reason, remedy: sayAway(reason) }),
        sandbox,
        disk: probes.state('disk'),
        clock: probes.state('clock'),
        storage: probes.state('storage'),
        marks: probes.state('marks'),
      });
    }
  };
  const { address, close } = await listen(host, port, () => around(answerHealth));
  return { port: address.port, close: () => close(0) };
}

function liveness(probes: Probes): [number, object] {
  return probes.isFailing('link') ? [503, { status: 'unavailable' }] : [200, { status: 'ok' }];
}
