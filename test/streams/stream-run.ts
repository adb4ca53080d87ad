/** Jobs over streams, and what ffmpeg itself makes of the same stream. */
import { randomBytes } from 'node:crypto';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from 'soundpost-testing/media-cache';
import { ffmpeg, trackSamples } from 'soundpost-testing/oracle';
import type { MediaFolder } from 'soundpost-testing/sources';
import { ExtractPayload } from '../../src/jobs/payloads.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import { type Made, madeOf } from '../jobs/job-result.ts';
import type { Surroundings } from '../worker/worker-fixture.ts';

/** A job over what lies at a URL. @param output several as a list */
export function extract(
  around: Surroundings,
  url: string,
  output: object | readonly object[],
): Promise<Made> {
  return extractFrom(around, { type: 'url', url }, output);
}

export async function extractFrom(
  around: Surroundings,
  source: ExtractPayload['source'],
  output: object | readonly object[],
): Promise<Made> {
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
  ).then(madeOf);
}

/** What a job made. */
export function fileOf(around: Surroundings, { outputFile }: Made): Promise<string> {
  return around.storage.localCopy(outputFile.storageKey, around.folder);
}

/** The samples of a job's result. The format has to be lossless. */
export async function samplesOf(around: Surroundings, result: Made): Promise<Buffer> {
  return trackSamples(await fileOf(around, result));
}

/**
 * Puts a stream that ffmpeg makes into a folder that is served.
 * @param args of ffmpeg, with its output, for the place where it is made
 * @returns where it lies, for questions whose answers are kept
 */
export async function placeStream(
  folder: MediaFolder,
  name: string,
  args: (place: string) => readonly string[],
): Promise<string> {
  const made = await cachedFolder(['stream', args('.')], async (place) => {
    await writeFile(join(place, 'key'), 'sixteen bytes...');
    await writeFile(join(place, 'key-info'), `key\n${place}/key\n0123456789abcdef0123456789abcdef\n`);
    await ffmpeg('-v', 'error', ...args(place));
  });
  await symlink(made, folder.at(name));
  return made;
}
