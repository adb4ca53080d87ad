/**
 * Health check of the container image, for any of the three servers: at least one must listen, and
 * each that does must answer `/health/live` with 200. Exits with 0 or 1, and a line saying why.
 * A program of its own that loads only the configuration, because it starts every few seconds.
 */
import { get } from 'soundpost-base/node-http';
import { loadConfig } from '../process/config.ts';

/** Less than the image's HEALTHCHECK timeout, so that the reason can be reported. */
const PATIENCE_MS = 4000;

const config = loadConfig();
/** An unspecified address cannot be called. */
const host = ({ '0.0.0.0': '127.0.0.1', '::': '::1' } as Record<string, string>)[config.HOST] ?? config.HOST;
const servers = { API: config.API_PORT, gateway: config.GATEWAY_PORT, worker: config.WORKER_PORT };

/** The status of the answer, or the error's code. */
function answerOf(port: number): Promise<number | string> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: '/health/live', timeout: PATIENCE_MS }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('timeout', () => request.destroy(Object.assign(new Error(), { code: 'no answer' })));
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

const answers = await Promise.all(
  Object.entries(servers).map(async ([name, port]) => ({ name, answer: await answerOf(port) })),
);
const listening = answers.filter(({ answer }) => answer !== 'ECONNREFUSED');
const isHealthy = listening.length > 0 && listening.every(({ answer }) => answer === 200);
process.stdout.write(
  listening.length === 0
    ? 'no server is listening\n'
    : `${listening.map(({ name, answer }) => `${name}: ${answer}`).join(', ')}\n`,
);
process.exitCode = isHealthy ? 0 : 1;
