/** Jobs over streams, and what ffmpeg itself makes of the same stream. */
import { randomBytes } from 'node:crypto';
import { ExtractPayload, type ExtractResult } from '../../src/queue/payloads.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import { ffmpeg } from '../media/oracle.ts';
import type { Surroundings } from '../worker/worker-fixture.ts';

/** A job over what lies at a URL. @param output several as a list */
export function extract(
  around: Surroundings,
  url: string,
  output: object | readonly object[],
): Promise<ExtractResult> {
  return extractFrom(around, { type: 'url', url }, output);
}

export async function extractFrom(
  around: Surroundings,
  source: ExtractPayload['source'],
  output: object | readonly object[],
): Promise<ExtractResult> {
  return runExtraction(
    {
      jobId: `job_${randomBytes(8).toString('hex')}`,
      attemptToken: 'attempt',
      order: 0,
      signal: new AbortController().signal,
      report: () => undefined,
      takeTurn: async () => undefined,
      payload: ExtractPayload.parse({
        version: 1,
        tenant: 'tenant01',
        source,
        ...(Array.isArray(output) ? { outputs: output } : { output }),
        options: { priority: 'normal' },
        batchId: null,
        retryOf: null,
      }),
    },
    around.services,
    around.workspaces,
  );
}

/** What a job made. */
export function fileOf(around: Surroundings, { outputFile }: ExtractResult): Promise<string> {
  return around.storage.localCopy(outputFile.storageKey, around.folder);
}

/** MD5 of the samples of a job's result. The format has to be lossless. */
export async function samplesOf(around: Surroundings, result: ExtractResult): Promise<string> {
  return samples(await fileOf(around, result));
}

/** MD5 of the samples as ffmpeg decodes them, of a file or of a stream at a URL. */
export async function samples(input: string, map = '0:a:0'): Promise<string> {
  const { stdout } = await ffmpeg(
    '-v',
    'error',
    '-i',
    input,
    '-map',
    map,
    '-c:a',
    'pcm_s16le',
    '-f',
    'md5',
    '-',
  );
  return stdout.toString().trim();
}
