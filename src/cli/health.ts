/**
 * The health check of the container image: whether what runs beside it lives. One image runs any of the three servers, so whichever listens
 * is asked for `/health/live`; at least one has to, and each that does has to answer 200. Exit code 0 or 1, and one line that says why.
 * A program of its own, since it is started every few seconds: of the service it loads the configuration alone.
 */
import { get } from 'node:http';
import { loadConfig } from '../process/config.ts';

/** Less than the image's HEALTHCHECK waits, so that the reason can be told. */
const PATIENCE_MS = 4000;

const config = loadConfig();
/** An address for every interface is none to call. */
const host = ({ '0.0.0.0': '127.0.0.1', '::': '::1' } as Record<string, string>)[config.HOST] ?? config.HOST;
const servers = { API: config.API_PORT, gateway: config.GATEWAY_PORT, worker: config.WORKER_PORT };

/** The status of the answer, or the code of the error. */
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
    ? 'no server listens\n'
    : `${listening.map(({ name, answer }) => `${name}: ${answer}`).join(', ')}\n`,
);
process.exitCode = isHealthy ? 0 : 1;
