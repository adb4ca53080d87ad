/** Whether a lone worker lives and can work (decisions E, "Health"): a server of two paths. */
import type { RequestListener } from 'node:http';
import { listen } from 'soundpost-kit/http/listener';
import type { Around } from 'soundpost-kit/http/watched';
import { type Redis, stateOfRedis } from 'soundpost-kit/redis/connection';
import type { LinkWatch } from 'soundpost-kit/redis/link-watch';

interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * @param port 0 takes a free one
 * @param stores their connection's commands end in time
 * @param facts what else an operator wants to see of a worker, as it stands in the answer
 */
export async function startHealthServer(
  host: string,
  port: number,
  { redis, link }: { readonly redis: Redis; readonly link: LinkWatch },
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
      answer(...liveness(link));
    } else {
      const state = await stateOfRedis(redis);
      const ready = state === 'up';
      answer(ready ? 200 : 503, {
        status: ready ? 'ok' : 'unavailable',
        checks: { redis: state },
        ...facts(),
      });
    }
  };
  const { address, close } = await listen(host, port, () => around(answerHealth));
  return { port: address.port, close: () => close(0) };
}

function liveness({ isCutOff }: LinkWatch): [number, object] {
  return isCutOff ? [503, { status: 'unavailable' }] : [200, { status: 'ok' }];
}
