// @module-tag helm
// @module-tag prometheus
/** What KEDA asks Prometheus for, asked of Prometheus' own engine. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';

import { type Outcome, run } from '../house/command.ts';
import { type Manifest, namespace as own, render } from './chart.ts';
import { valueSets } from './value-sets.ts';

let scaled: Manifest | undefined;
let query: string;
let folder: string;
beforeAll(async () => {
  const rendered = await render(valueSets['keda, with a PodMonitor']);
  scaled = rendered.find(({ kind }) => kind === 'ScaledObject');
  query = scaled?.spec.triggers[0].metadata.query;
  folder = await mkdtemp(join(tmpdir(), 'soundpost-keda-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Whether the query gives this number, or nothing, where these series are. */
async function gives(series: Readonly<Record<string, number>>, value: number | undefined): Promise<Outcome> {
  const file = join(folder, 'test.yml');
  const test = {
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: Object.entries(series).map(([name, one]) => ({ series: name, values: String(one) })),
        promql_expr_test: [
          { expr: query, eval_time: '0m', exp_samples: value === undefined ? [] : [{ labels: '{}', value }] },
        ],
      },
    ],
  };
  await writeFile(file, stringify(test));
  return run(folder, 'promtool', ['test', 'rules', file]);
}

const jobs = (labels: string, namespace = own): string =>
  `soundpost_queue_jobs{namespace="${namespace}",${labels}}`;

it('it is jobs that wait and jobs that run, however many processes tell of them', async () => {
  const series = {
    [jobs('queue="extract",state="waiting",instance="api-1"')]: 7,
    [jobs('queue="extract",state="waiting",instance="api-2"')]: 7,
    [jobs('queue="extract",state="active",instance="api-1"')]: 3,
    [jobs('queue="extract",state="active",instance="worker-1"')]: 3,
    [jobs('queue="extract",state="delayed",instance="api-1"')]: 100,
    [jobs('queue="webhook",state="waiting",instance="api-1"')]: 100,
  };
  expect(await gives(series, 10)).toMatchObject({ code: 0 });
  expect(await gives(series, 20)).toMatchObject({ code: 1 });
});

it('an empty queue is 0, and a Prometheus that knows nothing gives nothing', async () => {
  const empty = { [jobs('queue="extract",state="waiting"')]: 0, [jobs('queue="extract",state="active"')]: 0 };
  expect(await gives(empty, 0)).toMatchObject({ code: 0 });
  // Which KEDA takes for an error, and not for 0, where it is told so.
  expect(await gives({}, undefined)).toMatchObject({ code: 0 });
  expect(scaled?.spec.triggers[0].metadata.ignoreNullValues).toBe('false');
});

it('the jobs of another Soundpost start no worker of this one', async () => {
  const series = {
    [jobs('queue="extract",state="waiting"')]: 2,
    [jobs('queue="extract",state="active"')]: 1,
    [jobs('queue="extract",state="waiting"', 'cell-2')]: 500,
    [jobs('queue="extract",state="active"', 'cell-2')]: 40,
  };
  expect(await gives(series, 3)).toMatchObject({ code: 0 });
});
