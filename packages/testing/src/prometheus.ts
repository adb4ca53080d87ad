/** A real Prometheus, on a port and a folder of the test's own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetch } from './http.ts';
import { freePort } from './ports.ts';
import { startProcess } from './service.ts';
import { until } from './until.ts';

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Prometheus {
  /** What a query answers now. Rejects, with what Prometheus says, where it cannot be read. */
  query(expression: string): Promise<Series[]>;
  close(): Promise<void>;
}

/** @param targets `host:port` by the name of their scrape job */
export async function startPrometheus(
  targets: Readonly<Record<string, string>>,
  ruleFile: string,
): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-prometheus-'));
  const port = await freePort();
  const configuration = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '1s' },
    rule_files: [ruleFile],
    scrape_configs: Object.entries(targets).map(([name, target]) => ({
      job_name: name,
      static_configs: [{ targets: [target] }],
    })),
  };
  // JSON is YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configuration));
  const server = startProcess(
    [
      'prometheus',
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    {},
  );
  await server.says(/(Server is ready to receive web requests)/);
  const prometheus: Prometheus = {
    async query(expression) {
      const body = new URLSearchParams({ query: expression });
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query`, { method: 'POST', body });
      const answer = (await response.json()) as Answer;
      if (answer.status !== 'success') throw new Error(`${expression}: ${answer.error}`);
      return answer.data.result.map(({ metric, value: [, value] }) => ({
        labels: metric,
        value: Number(value),
      }));
    },
    async close() {
      server.signal('SIGKILL');
      await server.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
  await until('every target was scraped', async () => {
    const up = await prometheus.query('up == 1');
    return up.length === Object.keys(targets).length;
  });
  return prometheus;
}

interface Answer {
  readonly status: 'success' | 'error';
  readonly error?: string;
  readonly data: { readonly result: readonly { metric: Record<string, string>; value: [number, string] }[] };
}
