/**
 * Sources that misbehave, on the whole service: whatever a source does, its job has the right end within a bounded time, and
 * harms no other (decisions A7). The long run has the patience of an operator who sets none.
 */
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from 'soundpost-testing/client';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CrookedSource } from './crooked-source.ts';
import { cutDownload, cutFaults, drawCuts } from './cut-downloads.ts';
import { filmPlay, makeFilms } from './film-source.ts';
import { violations } from './invariants.ts';
import { isLong, randomFrom, report, runs, seed } from './runs.ts';
import { type SourceRow, sourceRows } from './source-rows.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

/** The sources are this process, which has to be in time for it. */
const PATIENCE_MS = isLong ? 20_000 : 4_000;
/** The pauses between three tries at their longest, the work on the file, and a machine with other things to do. */
const BESIDES_MS = 4_500 + runs(60_000, 20_000);
const ALL_ENDED_MS = isLong ? 300_000 : 120_000;
/** How much longer than the same row of a whole worker one that was sabotaged may take at most. */
const NOTICED_AFTER_MS = 3_000;
const MAX_INPUT_BYTES = 32 * 1024 * 1024;

const firstSeed = seed();
const random = randomFrom(firstSeed);
const cuts = drawCuts(runs(3, 100), random);
/** Films by what befalls them, in turn. */
const films = Array.from({ length: runs(4, 40) }, (_, index) => ({
  name: `film-${index}`,
  cuts: index % 2 === 0 ? 1 + ((index / 2) % 2) : 0,
  changes: index % 2 === 1,
}));
const sentByCut = new Map(cuts.map(({ name }) => [name, [] as number[]]));
const jobs = new Map<string, string>();
let source: CrookedSource;
let stand: Stand;
let content: Buffer;
/** Of a download that nothing happened to. */
let unbroken: Json;
let unbrokenFilm: Json;

beforeAll(async () => {
  source = await CrookedSource.start();
  stand = await startStand({ SOURCE_PATIENCE_SECONDS: String(PATIENCE_MS / 1000) });
  const noise = await cachedMedia('noise.wav', ['-f', 'lavfi', '-i', 'anoisesrc=a=0.2:r=24000:d=30']);
  await copyFile(noise, join(stand.folder, 'videos', 'noise.wav'));
  content = await readFile(noise);
  unbroken = await stand.observer.ended(await submit(stand, stand.web.url('noise.wav')));
  const { film, older } = await makeFilms();
  const asItIs = filmPlay(film, { random, cuts: 0, beginning: film });
  unbrokenFilm = await stand.observer.ended(await submit(stand, source.serve('film', asItIs)));
  await Promise.all(sourceRows.map((row) => begin(stand, row)));
  // What follows keeps the cores busy for minutes then, and the rows have limits.
  if (isLong) {
    await Promise.all(
      sourceRows.map((row) => stand.observer.ended(jobs.get(nameOf(stand, row)) ?? '', limitOf(row))),
    );
  }
  for (const { name, cuts, changes } of films) {
    const play = filmPlay(film, { random, cuts, beginning: changes ? older : film });
    jobs.set(name, await submit(stand, source.serve(name, play)));
  }
  await Promise.all(
    cuts.map(async (cut) => {
      const play = cutDownload(cut, content, sentByCut.get(cut.name) ?? []);
      jobs.set(cut.name, await submit(stand, source.serve(cut.name, play)));
    }),
  );
}, 300_000);
afterAll(async () => {
  await source.close();
  await stand.close();
});

const sabotagedRows = sourceRows.filter(({ what }) =>
  /^(sends 1 KiB a second|says nothing|.*disregarding If-Range)$/.test(what),
);

function startStand(environment: Record<string, string>, workerPreloads: string[] = []): Promise<Stand> {
  return Stand.start({
    allow: [source.allow],
    // Everything is fetched at the same time: each source has its own clock.
    environment: {
      ...LONG_LOCKS,
      DOWNLOADS_AHEAD: '200',
      MAX_INPUT_BYTES: String(MAX_INPUT_BYTES),
      ...environment,
    },
    workerPreloads,
  });
}

const submit = (at: Stand, url: string) => at.submit({ source: url, output: { format: 'flac' } });

/** Each stand asks under a name of its own. */
const nameOf = (at: Stand, { what }: SourceRow) =>
  `${at === stand ? 'row' : 'sabotaged'}-${what.replace(/\W+/g, '-')}`;

async function begin(at: Stand, row: SourceRow): Promise<void> {
  const name = nameOf(at, row);
  jobs.set(name, await submit(at, source.serve(name, row.play(content))));
}

/** What is wrong with the end of a job, as sentences. */
function endFaults(job: Json, end: SourceRow['end'], whole = unbroken): string[] {
  const said = job.status === 'completed' ? 'completed' : `${job.error?.code}: ${job.error?.details}`;
  if (end !== 'whole') return end.test(said) ? [] : [`ended as ${said}, and not as ${end}`];
  if (said !== 'completed') return [`ended as ${said}`];
  const same = job.outputFile.sha256 === whole.outputFile.sha256;
  return same ? [] : ['has another result than a download that nothing happened to'];
}

function limitOf(row: SourceRow): number {
  return (row.patient ?? 0) * PATIENCE_MS * 1.2 + 2 * (row.restMs ?? 0) + BESIDES_MS;
}

/** How long after its first request the job was seen to have ended. */
function tookMs(at: Stand, row: SourceRow): number {
  const name = nameOf(at, row);
  const { endedSeenAtMs } = at.observer.of(jobs.get(name) ?? '');
  return (endedSeenAtMs ?? Number.POSITIVE_INFINITY) - (source.requestsFor(name)[0]?.atMs ?? 0);
}

async function rowFaults(at: Stand, row: SourceRow, limitMs: number): Promise<string[]> {
  const name = nameOf(at, row);
  const jobId = jobs.get(name) ?? '';
  await until(`${name} is asked for`, () => source.requestsFor(name).length > 0);
  const [first, second] = source.requestsFor(name);
  const late = (first?.atMs ?? 0) + limitMs - Date.now();
  const job = await at.observer.ended(jobId, Math.max(0, late)).catch(() => undefined);
  if (job === undefined) return [`has no end after ${limitMs} ms`];
  const faults = endFaults(job, row.end);
  if (tookMs(at, row) > limitMs) faults.push(`took ${tookMs(at, row)} ms`);
  const { length } = source.requestsFor(name);
  if (row.requests !== undefined && length !== row.requests) faults.push(`was asked ${length} times`);
  const restedMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
  if (row.restMs !== undefined && restedMs < row.restMs) faults.push(`was asked again after ${restedMs} ms`);
  return faults;
}

describe('a source that', () => {
  it.each(sourceRows)('$what', async (row) => {
    expect(await rowFaults(stand, row, limitOf(row))).toEqual([]);
  });
});

it('downloads that are cut at random bytes give the same as whole ones, continued where that is possible', {
  timeout: ALL_ENDED_MS * 2,
}, async () => {
  const faults = await Promise.all(
    cuts.map(async (cut) => {
      const job = await stand.observer.ended(jobs.get(cut.name) ?? '', ALL_ENDED_MS);
      const asked = cutFaults(cut, source.requestsFor(cut.name), sentByCut.get(cut.name) ?? []);
      return [...endFaults(job, 'whole'), ...asked].map((fault) => `${JSON.stringify(cut)}: ${fault}`);
    }),
  );
  expect(faults.flat(), `FAULTS_SEED=${firstSeed}`).toEqual([]);
});

// Broken by hand (isOfVersion in packages/outbound/src/exchange.ts always true). Reported: INVALID_VIDEO or another result for films that change.
it('films whose sound is fetched in parts have the right sound, cut off or changed in between', {
  timeout: ALL_ENDED_MS * 2,
}, async () => {
  expect(source.requestsFor('film').length).toBeGreaterThan(1);
  const faults = await Promise.all(
    films.map(async (film) => {
      const job = await stand.observer.ended(jobs.get(film.name) ?? '', ALL_ENDED_MS);
      return endFaults(job, 'whole', unbrokenFilm).map((fault) => `${JSON.stringify(film)}: ${fault}`);
    }),
  );
  expect(faults.flat(), `FAULTS_SEED=${firstSeed}`).toEqual([]);
});

describe.runIf(isLong)('it is noticed that', () => {
  /** A service whose worker has lost its limits and its caution. */
  let broken: Stand;
  beforeAll(async () => {
    broken = await startStand({ SOURCE_PATIENCE_SECONDS: '600', SOURCE_MIN_BYTES_PER_SECOND: '1' }, [
      join(import.meta.dirname, 'sabotage', 'forgotten-versions.ts'),
    ]);
    await Promise.all(sabotagedRows.map((row) => begin(broken, row)));
  }, 120_000);
  afterAll(() => broken.close());

  it.each(sabotagedRows)('a worker without limits and caution is deceived by one that $what', async (row) => {
    // One with a patience is compared with the whole worker; of the other the result is looked at.
    const limitMs = row.patient === undefined ? limitOf(row) : tookMs(stand, row) + NOTICED_AFTER_MS;
    expect(await rowFaults(broken, row, limitMs)).not.toEqual([]);
  });
});

it('none of them has harmed the worker, and nothing of them is left', async () => {
  const next = await stand.observer.ended(await submit(stand, stand.web.url('noise.wav')));
  expect(endFaults(next, 'whole')).toEqual([]);
  expect(stand.workers.map(({ starts }) => starts)).toEqual([1]);
  expect(await violations(stand)).toEqual([]);
  report('Source', {
    rows: sourceRows.length,
    patienceSeconds: PATIENCE_MS / 1000,
    cutDownloads: cuts.length,
    filmsInParts: films.length,
    continued: source.requests.filter(({ start }) => start > 0).length,
    seed: firstSeed,
  });
});
