/** Jobs as a worker runs them, download to stored result, in this process and without a queue; and raw ffmpeg beside them. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { link, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Storage } from 'soundpost-kit/storage/storage';
import { detectSandbox } from 'soundpost-media/abilities';
import { ExtractPayload, type ExtractResult, storageKeysOf } from '../../src/jobs/payloads.ts';
import { Semaphore } from '../../src/jobs/semaphore.ts';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import type { WorkerServices } from '../../src/worker/step.ts';
import { makeSurroundings } from '../../test/worker/worker-fixture.ts';

const run = promisify(execFile);
const GIB = 1024 ** 3;

export interface JobBench {
  /** For files of the benchmark's own; removed with the rest. */
  readonly folder: string;
  readonly services: WorkerServices;
  readonly storage: Storage;
  /** A file of this machine becomes an upload without being copied. @returns its id */
  upload(file: string): Promise<string>;
  /** The result lies in the storage until {@link JobBench.discard}. */
  run(
    source: { url: string } | { upload: string },
    /** Several as a list. */
    output: object | readonly object[],
    options?: object,
  ): Promise<ExtractResult>;
  discard(result: ExtractResult): Promise<void>;
  close(): Promise<void>;
}

/** @param allow the servers that jobs may download from, and the jobs that are encoded at a time */
export async function openJobBench({ allow = '', encodings = 2 } = {}): Promise<JobBench> {
  const around = await makeSurroundings(allow);
  const { storage, folder, workspaces } = around;
  const sandbox = await detectSandbox(around.services.tools);
  const services: WorkerServices = {
    ...around.services,
    tools: { ...around.services.tools, sandbox },
    encoding: new Semaphore(encodings),
    limits: { ...around.services.limits, maxInputBytes: 8 * GIB, maxAudioSeconds: 6 * 3600 },
  };
  return {
    folder,
    services,
    storage,
    async upload(file) {
      const id = `upl_${randomBytes(8).toString('hex')}`;
      const path = join(folder, 'storage', uploadStorageKey(id));
      await mkdir(join(path, '..'), { recursive: true });
      await link(file, path);
      return id;
    },
    run(source, output, options = {}) {
      const payload = ExtractPayload.parse({
        version: 1,
        tenant: 'benches1',
        source:
          'url' in source
            ? { type: 'url', url: source.url }
            : { type: 'upload', file: source.upload, name: 'video.mp4' },
        ...(Array.isArray(output) ? { outputs: output } : { output }),
        options: { priority: 'normal', ...options },
        batchId: null,
        retryOf: null,
      });
      const { signal } = new AbortController();
      const jobId = `job_${randomBytes(8).toString('hex')}`;
      const unheard = { report: () => undefined, takeTurn: async () => undefined };
      const job = { jobId, attemptToken: 'bench', order: 0, signal, payload, ...unheard };
      return runExtraction(job, services, workspaces);
    },
    async discard(result) {
      for (const key of storageKeysOf(result)) await storage.remove(key);
    },
    close: () => around.close(),
  };
}

/** ffmpeg on a local file, as one would type it: the first sound, without pictures. @returns what it wrote to standard error */
export async function rawFfmpeg(file: string, ...output: readonly string[]): Promise<string> {
  return ffmpegBy('ffmpeg', file, ...output);
}

/** @param ffmpeg its path */
export async function ffmpegBy(ffmpeg: string, file: string, ...output: readonly string[]): Promise<string> {
  const { stderr } = await run(ffmpeg, ['-nostdin', '-hide_banner', '-y', '-i', file, '-vn', ...output]);
  return stderr;
}
