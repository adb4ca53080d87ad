/**
 * What a look at a job costs: `GET /v1/status` of one API process against bare HGETALL of the same jobs behind a plain node:http server. A third of the jobs waits,
 * a third runs, a third is completed. The load and Redis share the machine with the API.
 *
 *     node bench/status.ts [--seconds 5] [--runs 5] [--connections 64]
 */
import { recordKey } from '../src/jobs/bullmq-internals.ts';
import { load, openApiBench, typicalAllow, typicalJob, usedSeconds } from './measuring/api.ts';
import { askedFor, grouped, inTurns, median, printRow } from './measuring/comparison.ts';

const JOBS = 999;

const { seconds, runs, connections } = askedFor({ seconds: 5, runs: 5, connections: 64 });
const bench = await openApiBench(typicalAllow);
const submit = [bench.request('POST', '/v1/extract', typicalJob)];
await load({
  port: bench.port,
  requests: submit,
  status: 202,
  connections: 10,
  seconds: JOBS / 200,
  perSecond: 200,
});
const jobIds = (await bench.redis.zrange(`{soundpost}:sp:jobs:${bench.tenant}`, '0', '-1')).slice(0, JOBS);

const inputFile = {
  name: 'talk-1080p.mp4',
  size: 734_003_200,
  duration: 3612.4,
  format: 'mp4',
  tracks: [{ index: 0, codec: 'aac', channels: 2, sampleRate: 48_000, language: 'eng', default: true }],
};
const now = Date.now();
for (const [nth, jobId] of jobIds.entries()) {
  const hash = recordKey('extract', jobId);
  if (nth % 3 === 0) continue;
  const progress = { progress: 42, currentStep: 'extracting_audio', estimatedTimeRemaining: 21.5, inputFile };
  await bench.redis.hset(hash, { processedOn: now, progress: JSON.stringify(progress) });
  if (nth % 3 === 1) continue;
  const outputFile = {
    name: 'audio',
    filename: 'talk-1080p.mp3',
    size: 86_697_600,
    duration: 3612.4,
    format: 'mp3',
    bitrate: '192k',
    codec: 'mp3',
    channels: 2,
    sampleRate: 48_000,
    sha256: 'ab'.repeat(32),
    expiresAt: new Date(now + 86_400_000).toISOString(),
    timeline: { startOffset: 0, filledSeconds: 0 },
    copied: false,
    storageKey: `results/${jobId}/0123456789abcdef.mp3`,
  };
  await bench.redis.hset(hash, {
    finishedOn: now,
    returnvalue: JSON.stringify({ version: 1, inputFile, warnings: [], outputFile, voice: null }),
  });
}

const requests = jobIds.map((jobId) => bench.request('GET', `/v1/status/${jobId}`));
const bareRequests = jobIds.map((jobId) => bench.request('GET', `/${jobId}`));
const bare = bench.script('bare-status.ts', bench.redisSocket);
const barePort = Number(await bare.says(/^port (\d+)/m));
/** Microseconds of processor time for each, which say what it costs also where others keep the machine busy. */
const cost = { ours: [] as number[], theirs: [] as number[] };
const loaded = async (side: 'ours' | 'theirs', port: number, wanted: readonly string[]) => {
  const used = () => (side === 'ours' ? bench.usedSeconds() : usedSeconds(bare.pid));
  const before = used();
  const result = await load({ port, requests: wanted, status: 200, connections, seconds, perSecond: null });
  cost[side].push(((used() - before) * 1e6) / result.answered);
  return result.perSecond;
};
const ours = () => loaded('ours', bench.port, requests);
const theirs = () => loaded('theirs', barePort, bareRequests);
const figures = await inTurns(runs, ours, theirs);
const half = median(figures.ours) / 2;
const atHalf = await load({ port: bench.port, requests, status: 200, connections, seconds, perSecond: half });
printRow({
  what: `\`GET /v1/status\`, one API process, ${connections} connections`,
  against: 'bare HGETALL behind a plain node:http server',
  unit: '/s',
  ...figures,
  reach: null,
  remarks: [
    { what: `p99 at ${grouped(Math.round(half))}/s`, value: atHalf.p99, unit: 'ms' },
    { what: 'processor time of the API per request', value: median(cost.ours), unit: 'µs' },
    { what: 'of the plain server', value: median(cost.theirs), unit: 'µs' },
  ],
});
bare.signal('SIGTERM');
await bare.exited;
await bench.close();
