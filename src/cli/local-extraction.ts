/** A job without a service: the worker's steps in a temporary folder, without Redis or a port. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { ServiceError } from 'soundpost-contract/errors';
import type { JobOptions } from 'soundpost-contract/job-request';
import type { AskedOutputs } from 'soundpost-contract/output-request';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { DiskSpace, outOfDiskSpace } from 'soundpost-kit/storage/disk-space';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import type { Storage } from 'soundpost-kit/storage/storage';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { OutboundRefused } from 'soundpost-outbound/errors';
import { type ExtractProgress, type ExtractResult, filesOf, type TranscriptAudio } from '../jobs/payloads.ts';
import { Semaphore } from '../jobs/semaphore.ts';
import { sealSource } from '../jobs/sources.ts';
import type { Config } from '../process/config.ts';
import { confinedTools, guardedOutbound } from '../process/tools.ts';
import { runExtraction } from '../worker/extraction.ts';
import { temporaryFolder } from './temporary-folder.ts';

interface LocalJob extends AskedOutputs {
  readonly source:
    | { readonly url: string; readonly headers?: Readonly<Record<string, string>> | undefined }
    /** A readable file, left unchanged. */
    | { readonly path: string; readonly name: string };
  readonly options: JobOptions;
}

interface LocalResult extends ExtractResult {
  /** Paths in the folder, in the order of the outputs. */
  readonly outputPaths: readonly string[];
  readonly voicePath: string | null;
  /** Audio for the transcripts; no path if there is nothing to hear. */
  readonly recordings: readonly { readonly path: string | undefined; readonly audio: TranscriptAudio }[];
}

interface LocalExtraction {
  /** Whether ffmpeg has no access to files and network. */
  readonly isConfined: boolean;
  /** Contains everything written; removed at the end. */
  readonly folder: string;
  /**
   * @returns the result; its files stay until `close`
   * @throws ServiceError when the job fails; the signal's reason
   */
  run(job: LocalJob, signal: AbortSignal, report: (state: ExtractProgress) => void): Promise<LocalResult>;
  close(): Promise<void>;
}

/** Used only for names inside the folder. */
const JOB_ID = 'job_0000000000000000';
const UPLOAD_ID = 'upl_0000000000000000';
const TENANT = 'no0tenant';

/** @throws ConfigurationError without ffmpeg, or if SANDBOX demands more than there is */
export async function openLocalExtraction(config: Config): Promise<LocalExtraction> {
  // The job's error already reports what it logs.
  const logger = createLogger('silent');
  const tools = await confinedTools(config, logger);
  const outbound = guardedOutbound(config, logger);
  const temporary = await temporaryFolder();
  const folder = temporary.path;
  const files = createFileStorage({ root: join(folder, 'files') });
  const workspaces = await Workspaces.open(join(folder, 'work'));
  const disk = new DiskSpace(folder, config.DISK_RESERVE_BYTES);
  const sealer = new Sealer(randomBytes(32));
  const encoding = new Semaphore(Math.min(config.WORKER_CONCURRENCY, availableParallelism()));
  const limits = {
    maxInputBytes: config.MAX_INPUT_BYTES,
    maxAudioSeconds: config.MAX_AUDIO_SECONDS,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
  };
  return {
    isConfined: tools.sandbox?.level !== 'none',
    folder,
    async run({ source, output, outputs, options }, signal, report) {
      const isUrl = 'url' in source;
      const storage = isUrl ? files : withInput(files, source.path);
      if (isUrl) await demandAddress(() => outbound.checkUrl(source.url, 'source', signal));
      const result = await runExtraction(
        {
          jobId: JOB_ID,
          payload: {
            version: 1,
            tenant: TENANT,
            source: isUrl
              ? sealSource(sealer, JOB_ID, { type: 'url', url: source.url, headers: source.headers })
              : { type: 'upload', file: UPLOAD_ID, name: source.name },
            output,
            outputs,
            options,
            batchId: null,
            retryOf: null,
          },
          attemptToken: randomBytes(8).toString('hex'),
          order: 0,
          signal,
          report,
          takeTurn: async () => undefined,
        },
        {
          ...{ outbound, storage, tools, sealer, logger, limits, encoding, disk },
          retryUntilUp: (_signal, work) => work(),
        },
        workspaces,
      ).catch((error: unknown) => {
        throw withReason(error, folder);
      });
      const copies = filesOf(result).map(({ storageKey }) => files.localCopy(storageKey, folder));
      const recordings = (result.transcripts ?? []).map(async (audio) => ({
        path: audio.notMade === undefined ? await files.localCopy(audio.storageKey, folder) : undefined,
        audio,
      }));
      return {
        ...result,
        recordings: await Promise.all(recordings),
        outputPaths: await Promise.all(copies),
        voicePath: result.voice === null ? null : await files.localCopy(result.voice.storageKey, folder),
      };
    },
    async close() {
      await outbound.close();
      await temporary.remove();
    },
  };
}

/** The only upload lies where its owner keeps it. */
function withInput(files: Storage, path: string): Storage {
  return {
    ...files,
    localCopy: (key, ...rest) =>
      key.endsWith(UPLOAD_ID) ? Promise.resolve(path) : files.localCopy(key, ...rest),
  };
}

async function demandAddress(check: () => Promise<void>): Promise<void> {
  await check().catch((error: unknown) => {
    if (!(error instanceof OutboundRefused)) throw error;
    throw new ServiceError('INVALID_SOURCE', `the URL is not allowed: ${error.reason}`, {
      details: 'OUTBOUND_ALLOW=host:port allows an address that is not public',
    });
  });
}

/** The user can see what a service's caller cannot: redirect targets, and why a start failed. */
function withReason(error: unknown, folder: string): unknown {
  if (error instanceof ServiceError && error.message === outOfDiskSpace().message) {
    return new Error(
      `not enough disk space for temporary files in ${dirname(folder)}: set TMPDIR to a folder on another volume, or lower DISK_RESERVE_BYTES`,
      { cause: error },
    );
  }
  if (error instanceof ServiceError && error.cause instanceof OutboundRefused) {
    return new ServiceError(error.code, error.message, { details: error.cause.reason, cause: error });
  }
  return error;
}
