/**
 * Every process is told to stop and started again, one after the other, while clients submit, ask and download: nobody who was let in is
 * turned away, no job fails, and each process ends in order.
 */
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { Agent, buildConnector, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { isLong, report, runs } from './runs.ts';
import { Stand } from './stand.ts';
import { requestOf } from './submission.ts';
import { Supervised } from './supervised.ts';

const connect = buildConnector({});

const ROUNDS = runs(1, 5);
const CLIENTS = 4;
const MOST_KILLS = 20;
/** What a client sees of a connection whose other end is no more. */
const TORN = /^(GET|POST) \S+: (UND_ERR_SOCKET|ECONNRESET|EPIPE)/;
/** Between two requests of a client; some of its connections lie idle for a while. */
const PAUSES_MS = [0, 20, 300];

let stand: Stand;
let second: Supervised;
/** Base addresses of both APIs. */
let addresses: string[] = [];
beforeAll(async () => {
  stand = await Stand.start({ workers: 2, environment: { SHUTDOWN_SECONDS: '15', WORKER_CONCURRENCY: '1' } });
  const port = String(await freePort());
  second = new Supervised('second api', /^API\s+(http\S+)/m, () =>
    stand.home.start('api', {
      API_PORT: port,
      PUBLIC_URL: stand.apiUrl,
      GATEWAY_EVENTS_URL: `${stand.apiUrl}/hooks/gateway`,
    }),
  );
  addresses = [stand.apiUrl, await second.ready()];
  await stand.warmUp();
});
afterAll(async () => {
  await second.release();
  await stand.close();
});

interface Figures {
  answers: number;
  /** Connections that were not let in: the client goes to the other API. */
  refused: number;
  /** Connections that the system had let in and the listener had not, when it went: the client cannot tell them from refused ones. */
  resetInBacklog: number;
  submitted: number;
  readonly faults: string[];
}

/** A client with kept-alive connections of its own, that goes to the other API when one does not let it in. */
class RestlessClient {
  readonly figures: Figures = { answers: 0, refused: 0, resetInBacklog: 0, submitted: 0, faults: [] };
  readonly #sockets = new Set<Socket>();
  readonly #agents = addresses.map(
    () =>
      new Agent({ connections: 2, pipelining: 1, connect: (options, done) => this.#connect(options, done) }),
  );
  readonly #home: number;
  #stopped = false;

  constructor(number: number) {
    this.#home = number % addresses.length;
  }

  #connect(options: buildConnector.Options, done: buildConnector.Callback): void {
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket) this.#sockets.add(socket);
      done(...result);
    });
  }

  /** Whether a connection has just ended on which no byte was ever answered; asked once for each. */
  #diedInBacklog(): boolean {
    const ended = [...this.#sockets].filter(({ destroyed }) => destroyed);
    for (const socket of ended) this.#sockets.delete(socket);
    return ended.some(({ bytesRead }) => bytesRead === 0);
  }

  async run(): Promise<void> {
    let jobId = '';
    for (let turn = 0; !this.#stopped; turn++) {
      if (turn % 40 === 0) {
        const answer = await this.#ask(
          'POST',
          '/v1/extract',
          202,
          requestOf({ webhook: true, voice: true }, stand.web.url, stand.hooks.url),
        );
        if (answer !== undefined) {
          jobId = JSON.parse(answer.toString()).data.jobId;
          stand.accept(jobId, { webhook: true, voice: true });
          this.figures.submitted += 1;
        }
      }
      const state = jobId && (await this.#ask('GET', `/v1/jobs/${jobId}`, 200));
      const job: Json = state ? JSON.parse(state.toString()).data : undefined;
      if (job?.status === 'completed') {
        const bytes = await this.#ask('GET', `/v1/download/${jobId}`, 200);
        if (bytes && createHash('sha256').update(bytes).digest('hex') !== job.outputFile.sha256) {
          this.figures.faults.push(`the file of ${jobId} is not what its sha256 says`);
        }
      }
      await delay(PAUSES_MS[turn % PAUSES_MS.length]);
    }
    await Promise.all(this.#agents.map((agent) => agent.close()));
  }

  stop(): void {
    this.#stopped = true;
  }

  /** The body of the answer; undefined when there was none or it had another status. */
  async #ask(
    method: 'GET' | 'POST',
    path: string,
    wanted: number,
    json?: object,
  ): Promise<Buffer | undefined> {
    for (let at = this.#home; at < this.#home + 200; at++) {
      const index = at % addresses.length;
      try {
        const answer = await request(`${addresses[index]}${path}`, {
          dispatcher: this.#agents[index] ?? new Agent(),
          method,
          headers: { 'x-api-key': stand.home.key, 'content-type': 'application/json' },
          body: json === undefined ? null : JSON.stringify(json),
        });
        const bytes = Buffer.from(await answer.body.arrayBuffer());
        this.figures.answers += 1;
        if (answer.statusCode === wanted) return bytes;
        this.figures.faults.push(`${method} ${path}: ${answer.statusCode} ${bytes.toString().slice(0, 200)}`);
        return undefined;
      } catch (error) {
        const { code = 'unknown', syscall } = error as { code?: string; syscall?: string };
        if (code === 'ECONNRESET' && (syscall === 'connect' || this.#diedInBacklog())) {
          this.figures.resetInBacklog += 1;
        } else if (code === 'ECONNREFUSED') {
          this.figures.refused += 1;
        } else {
          this.figures.faults.push(`${method} ${path}: ${code} ${(error as Error).message}`);
          return undefined;
        }
        await delay(20);
      }
    }
    this.figures.faults.push(`${method} ${path}: no API lets anybody in`);
    return undefined;
  }
}

/** Tells one process after the other to stop, each once the one before is back. @param seconds adds what each took */
async function restartAll(seconds: Map<string, number[]>): Promise<void> {
  for (const each of [stand.api, second, ...stand.workers, stand.gateway]) {
    const startedMs = Date.now();
    const replaced = each.replaced();
    each.signal('SIGTERM');
    await replaced;
    seconds.set(each.name, [...(seconds.get(each.name) ?? []), (Date.now() - startedMs) / 1000]);
  }
}

it(
  'nobody who was let in is turned away, and no job fails',
  async () => {
    const clients = Array.from({ length: CLIENTS }, (_unused, number) => new RestlessClient(number));
    const running = clients.map((client) => client.run());
    const seconds = new Map<string, number[]>();
    for (let round = 0; round < ROUNDS; round++) await restartAll(seconds);
    for (const client of clients) client.stop();
    await Promise.all(running);
    const sum = (of: (figures: Figures) => number): number =>
      clients.reduce((total, { figures }) => total + of(figures), 0);
    expect(clients.flatMap(({ figures }) => figures.faults)).toEqual([]);
    // A client may meet the instant between the last look at the backlog and the end of the listener.
    const resetInBacklog = sum((figures) => figures.resetInBacklog);
    expect(resetInBacklog).toBeLessThanOrEqual(CLIENTS * ROUNDS);
    expect(await violations(stand, { restMs: 120_000 })).toEqual([]);
    for (const { jobId } of stand.accepted) {
      const { last } = stand.observer.of(jobId);
      expect([jobId, last.status, last.voiceMessage.status]).toEqual([jobId, 'completed', 'sent']);
    }
    const processes = [stand.api, second, ...stand.workers, stand.gateway];
    expect(processes.map(({ name, exits }) => [name, exits])).toEqual(
      processes.map(({ name }) => [name, Array.from({ length: ROUNDS }, () => 0)]),
    );
    report('SIGTERM rolling restart of every process under load', {
      rounds: ROUNDS,
      restarts: ROUNDS * processes.length,
      secondsMax: Object.fromEntries([...seconds].map(([name, each]) => [name, Math.max(...each)])),
      answers: sum(({ answers }) => answers),
      refusedByTheRestartingListener: sum(({ refused }) => refused),
      resetInBacklog,
      requestsLost: 0,
      jobs: sum(({ submitted }) => submitted),
      failedJobs: 0,
    });
  },
  isLong ? 30 * 60_000 : 120_000,
);

it('processes that just end are noticed', async () => {
  const clients = Array.from({ length: CLIENTS }, (_unused, number) => new RestlessClient(number));
  const running = clients.map((client) => client.run());
  const isNoticed = () => clients.some(({ figures }) => figures.faults.some((fault) => TORN.test(fault)));
  const answers = () => clients.reduce((total, { figures }) => total + figures.answers, 0);
  // Whether a request is on its way just then is a matter of luck.
  for (let kill = 0; kill < MOST_KILLS && !isNoticed(); kill++) {
    const api = kill % 2 === 0 ? stand.api : second;
    const before = answers();
    await until('clients are at it', () => answers() > before + 10 * CLIENTS);
    const replaced = api.replaced();
    await api.kill();
    await replaced;
  }
  for (const client of clients) client.stop();
  await Promise.all(running);
  expect(isNoticed()).toBe(true);
});
