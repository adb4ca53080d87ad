/**
 * Bare `queue.add` with so many in flight, and nothing else: `node bare-add.ts <socket> <in flight> <seconds>`; prints how many were added a second. With a
 * fourth argument behind a plain node:http server on a free port, whose number it prints.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Queue } from 'bullmq';
import { typicalPayload } from './typical-payload.ts';

const [path = '', inFlight = '', seconds = '', served] = process.argv.slice(2);
const queue = new Queue('bare', { connection: { path }, prefix: '{bare}' });
await queue.waitUntilReady();
let added = 0;

/** The options that the product gives its jobs. */
function add(): Promise<unknown> {
  added += 1;
  const keep = { age: 691_200, limit: 100 };
  return queue.add('extract', typicalPayload, {
    jobId: `job_${added.toString(16).padStart(16, '0')}`,
    priority: 1 + (added % 1_000_000),
    attempts: 3,
    backoff: { type: 'exponential', delay: 1000, jitter: 0.5 },
    removeOnComplete: keep,
    removeOnFail: keep,
    stackTraceLimit: 0,
  });
}

if (served === undefined) {
  let done = 0;
  const cpu = process.cpuUsage();
  const begunAt = performance.now();
  const endsAt = begunAt + Number(seconds) * 1000;
  const loop = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      await add();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, loop));
  const tookSeconds = (performance.now() - begunAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  process.stdout.write(`used ${(user + system) / done}\nadded ${done / tookSeconds}\n`);
  await queue.close();
} else {
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', async () => {
      JSON.parse(text);
      await add();
      response.writeHead(202, { 'content-type': 'application/json', 'content-length': 2 }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
  });
}
