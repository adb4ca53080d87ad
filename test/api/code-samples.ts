/** The samples of an OpenAPI document, and a folder in which those who copy them run them. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const ROOT = resolve(import.meta.dirname, '../..');
const execute = promisify(execFile);

const Sample = z.object({ lang: z.string(), label: z.string(), source: z.string() });
const Operation = z.looseObject({ operationId: z.string(), 'x-codeSamples': z.array(Sample) });
const Sampled = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

type Language = 'curl' | 'JavaScript' | 'Python';

export interface SampledOperation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly labels: readonly string[];
  readonly samples: Readonly<Record<Language, string>>;
}

/** Throws for an operation without samples. */
export function sampledOperations(document: unknown): SampledOperation[] {
  return Object.entries(Sampled.parse(document).paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== 'servers')
      .map(([method, operation]) => {
        const { operationId, 'x-codeSamples': all } = Operation.parse(operation);
        const sourceOf = (label: string): string =>
          all.find((sample) => sample.label === label)?.source ?? '';
        return {
          operationId,
          method,
          path,
          labels: all.map(({ label }) => label),
          samples: {
            curl: sourceOf('curl'),
            JavaScript: sourceOf('JavaScript'),
            Python: sourceOf('Python'),
          },
        };
      }),
  );
}

export interface SampleFolder extends AsyncDisposable {
  readonly path: string;
  /** What the sample printed. Rejects when it fails. */
  run(language: Language, source: string): Promise<string>;
}

/** With soundpost-client installed, and the file that samples send. */
export async function sampleFolder(video: string): Promise<SampleFolder> {
  const path = await mkdtemp(join(tmpdir(), 'soundpost-samples-'));
  const client = join(path, 'node_modules/soundpost-client');
  await mkdir(client, { recursive: true });
  await copyFile(join(ROOT, 'packages/client/package.json'), join(client, 'package.json'));
  await execute(join(ROOT, 'script/build-client'), [join(client, 'dist')]);
  await copyFile(video, join(path, 'video.mp4'));
  return {
    path,
    async run(language, source) {
      const file = join(path, `${randomUUID()}.mjs`);
      await writeFile(file, source);
      const [program, ...args] = {
        curl: ['bash', '-c', source.replace(/^curl /, 'curl --fail --silent --show-error ')],
        JavaScript: [process.execPath, file],
        Python: ['python3', '-c', source],
      }[language];
      return (await execute(program ?? '', args, { cwd: path, timeout: 120_000 })).stdout;
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}
