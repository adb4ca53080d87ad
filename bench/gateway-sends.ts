/**
 * Voice messages that need no encoding, through the gateway's HTTP interface on its loopback network, against encrypting and hashing the same bytes with
 * nothing around it: AES-256-CBC, HMAC-SHA256 and two SHA-256, as the interface asks for them.
 *
 *     node bench/gateway-sends.ts [--seconds 5] [--runs 5] [--connections 8]
 */
import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load } from './measuring/api.ts';
import { askedFor, grouped, inTurns, printRow } from './measuring/comparison.ts';
import { inputFolder, voiceOf } from './measuring/inputs.ts';
import { openService } from './measuring/service.ts';
import { voiceRequests } from './measuring/voice-requests.ts';

const { seconds, runs, connections } = askedFor({ seconds: 5, runs: 5, connections: 8 });
const service = await openService();
const port = Number(new URL(service.gatewayUrl).port);

/** What the format demands of every file, and nothing else. @returns files a second */
async function bare(file: Buffer): Promise<number> {
  const endsAt = performance.now() + seconds * 1000;
  let done = 0;
  for (; performance.now() < endsAt; done += 1) {
    const [iv, key, macKey] = [randomBytes(16), randomBytes(32), randomBytes(32)];
    const cipher = createCipheriv('aes-256-cbc', key, iv);
    const sealed = Buffer.concat([cipher.update(file), cipher.final()]);
    createHmac('sha256', macKey).update(iv).update(sealed).digest();
    createHash('sha256').update(file).digest();
    createHash('sha256').update(sealed).digest();
  }
  return done / seconds;
}

for (const minutes of [1, 15]) {
  const file = await readFile(join(inputFolder, await voiceOf(minutes)));
  const requests = await voiceRequests(service, file, connections);
  const ours = async () =>
    (await load({ port, requests, status: 200, connections, seconds, perSecond: null })).perSecond;
  printRow({
    what: `sending a finished voice note of ${minutes} min (${grouped(Math.round(file.length / 1024))} KiB) on loopback, ${connections} instances at a time`,
    against: 'AES-256-CBC, HMAC and two hashes of the same bytes in one thread',
    unit: '/s',
    ...(await inTurns(runs, ours, () => bare(file))),
    reach: null,
  });
}
await service.close();
