/**
 * What taking a job costs: `POST /v1/extract` of one API process against bare `queue.add` with as many in flight, on the same Redis. The load and Redis share the
 * machine with the API.
 *
 *     node bench/accept.ts [--seconds 5] [--runs 5] [--connections 64]
 */
import { load, openApiBench, typicalAllow, typicalJob } from './measuring/api.ts';
import { askedFor, grouped, inTurns, median, printRow } from './measuring/comparison.ts';

const { seconds, runs, connections } = askedFor({ seconds: 5, runs: 5, connections: 64 });
const bench = await openApiBench(typicalAllow);
const requests = [bench.request('POST', '/v1/extract', typicalJob)];
/** Microseconds of processor time for each, which say what it costs also where others keep the machine busy. */
const cost = { ours: [] as number[], theirs: [] as number[] };

const accept = async (perSecond: number | null = null, port = bench.port) => {
  await bench.empty();
  const before = bench.usedSeconds();
  const loaded = await load({ port, requests, status: 202, connections, seconds, perSecond });
  cost.ours.push(((bench.usedSeconds() - before) * 1e6) / loaded.answered);
  return loaded;
};
const ours = async () => (await accept()).perSecond;
const theirs = async () => {
  await bench.empty();
  const bare = bench.script('bare-add.ts', bench.redisSocket, String(connections), String(seconds));
  cost.theirs.push(Number(await bare.says(/^used (\S+)/m)));
  return Number(await bare.says(/^added (\S+)/m));
};

const figures = await inTurns(runs, ours, theirs);
const costs = { ours: median(cost.ours), theirs: median(cost.theirs) };
const half = median(figures.ours) / 2;
const atHalf = await accept(half);
const server = bench.script('bare-add.ts', bench.redisSocket, '0', '0', 'served');
const port = Number(await server.says(/^port (\d+)/m));
const served: number[] = [];
for (let run = 0; run < runs; run += 1) served.push((await accept(null, port)).perSecond);
server.signal('SIGTERM');
await server.exited;
printRow({
  what: `\`POST /v1/extract\` accepted, one API process, ${connections} connections`,
  against: 'bare `queue.add`, same Redis',
  unit: '/s',
  ...figures,
  reach: null,
  remarks: [
    { what: `p99 at ${grouped(Math.round(half))}/s`, value: atHalf.p99, unit: 'ms', reach: { atMost: 50 } },
    { what: 'p50 at the same rate', value: atHalf.p50, unit: 'ms' },
    { what: '`queue.add` behind a plain node:http server', value: median(served), unit: '/s' },
    { what: 'processor time of the API per request', value: costs.ours, unit: 'µs' },
    { what: 'of bare `queue.add`', value: costs.theirs, unit: 'µs' },
  ],
});
await bench.close();
