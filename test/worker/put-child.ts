/** Puts one stored file to an address, as a worker does, and says how much memory that took. In a process of its own, which forgets no peak. */
import { readFileSync } from 'node:fs';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound } from 'soundpost-outbound/outbound';
import { tryOnce } from '../../src/followups/kind.ts';
import { destinationKind } from '../../src/followups/kinds/destination.ts';
import { sealDestinations } from '../../src/jobs/destinations.ts';
import { ExtractPayload, ExtractResult } from '../../src/jobs/payloads.ts';
import { resultOf } from '../jobs/job-result.ts';

const JOB = 'job_0123456789abcdef';
const logger = createLogger('silent');
const [root = '', url = '', warmUp = '', ...sizes] = process.argv.slice(2);
const { origin, host } = new URL(url);
const sealer = new Sealer(Buffer.alloc(32));
const storage = createFileStorage({ root });
const outbound = createOutbound({ allow: parseAllowRules(host), ports: [], userAgent: 'test', logger });

/** The most memory that this process has ever had, bytes. */
const peak = (): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;

async function put(size: number): Promise<string> {
  const sealed = sealDestinations(sealer, JOB, {
    output: ExtractPayload.shape.output.parse({ format: 'mp3' }),
    destination: { url },
  });
  const payload = ExtractPayload.parse({
    version: 1,
    tenant: 'tenant01',
    source: { type: 'url', url: 'https://media.example/a.mp4' },
    options: {},
    batchId: null,
    retryOf: null,
    ...sealed,
  });
  const result = resultOf(JOB);
  const record = {
    jobId: JOB,
    payload,
    status: 'completed' as const,
    progress: null,
    result: ExtractResult.parse({
      ...result,
      outputFile: { ...result.outputFile, storageKey: String(size), size },
    }),
    error: null,
    erased: false,
    voiceSendId: null,
    createdAtMs: 0,
    startedAtMs: 0,
    finishedAtMs: 0,
  };
  const services = {
    outbound,
    storage,
    retryUntilUp: <T>(_signal: AbortSignal, work: () => Promise<T>): Promise<T> => work(),
    sealer,
    readJob: async () => record,
    isErased: async () => false,
    readReplay: async () => undefined,
    followUps: { addDestinationWebhook: async () => undefined, continuePut: async () => undefined },
    scheduleSeconds: [0],
    logSeconds: 3600,
    logger,
  };
  const tried = await tryOnce(
    destinationKind(services),
    { version: 1, tenant: 'tenant01', jobId: JOB, name: 'audio', origin },
    { number: 1, last: true },
    new AbortController().signal,
  );
  return tried.outcome === 'done' ? tried.result.status : String(tried.error);
}

await put(Number(warmUp));
const before = peak();
const statuses: string[] = [];
for (const size of sizes) statuses.push(await put(Number(size)));
process.stdout.write(JSON.stringify({ statuses, grownBytes: peak() - before }));
await outbound.close();
