/** A job of several outputs, from its source to its files, as the worker runs it. */
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { ExtractPayload, type ExtractProgress, type ExtractResult } from '../../../src/jobs/payloads.ts';
import { runExtraction } from '../../../src/worker/extraction.ts';
import type { Surroundings } from '../worker-fixture.ts';

export interface JobRun {
  readonly reports: readonly ExtractProgress[];
  readonly result: Promise<ExtractResult>;
}

/** @param asked `output` or `outputs`, as a client writes them */
export function runJob(around: Surroundings, url: string, asked: object, options: object = {}): JobRun {
  const reports: ExtractProgress[] = [];
  const result = runExtraction(
    {
      jobId: `job_${randomBytes(8).toString('hex')}`,
      attemptToken: 'thisattempt',
      order: 0,
      signal: new AbortController().signal,
      report: (state) => reports.push(state),
      takeTurn: async () => undefined,
      payload: ExtractPayload.parse({
        version: 1,
        tenant: 'tenant01',
        source: { type: 'url', url },
        ...asked,
        options: { priority: 'normal', ...options },
        batchId: null,
        retryOf: null,
      }),
    },
    around.services,
    around.workspaces,
  );
  result.catch(() => undefined);
  return { reports, result };
}

export async function contentOf(around: Surroundings, storageKey: string): Promise<Buffer> {
  return buffer(await around.storage.read(storageKey));
}
