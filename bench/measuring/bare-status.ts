/** Bare HGETALL behind a plain node:http server: `node bare-status.ts <socket>`; the path is the job's id. Prints its port. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { recordKey } from '../../src/jobs/bullmq-internals.ts';

const redis = new Redis(process.argv[2] ?? '');
const server = createServer(async (request, response) => {
  const hash = await redis.hgetall(recordKey('extract', (request.url ?? '').slice(1)));
  const body = JSON.stringify(hash);
  response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body);
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
