/** The worker's surroundings as they are in production: storage on a disk, the guarded way out, ffmpeg, a folder for workspaces. */

import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { DiskSpace } from 'soundpost-kit/storage/disk-space';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import type { Storage } from 'soundpost-kit/storage/storage';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { mediaTools } from 'soundpost-testing/media-tools';
import { Semaphore } from '../../src/jobs/semaphore.ts';
import type { WorkerServices } from '../../src/worker/step.ts';

export const logger = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');

export interface Surroundings {
  readonly folder: string;
  readonly storage: Storage;
  readonly outbound: Outbound;
  readonly services: WorkerServices;
  readonly workspaces: Workspaces;
  /** Folders of work that is under way, or was left behind. */
  left(): string[];
  close(): Promise<void>;
}

/** @param allow `host:port` rules of the servers that a test talks to */
export async function makeSurroundings(allow = ''): Promise<Surroundings> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-test-worker-'));
  const storage = createFileStorage({ root: join(folder, 'storage') });
  const outbound = createOutbound({
    allow: parseAllowRules(allow),
    ports: [80, 443],
    logger,
    userAgent: 'soundpost-tests',
  });
  const workspaces = await Workspaces.open(join(folder, 'workspaces'));
  return {
    folder,
    storage,
    outbound,
    workspaces,
    services: {
      outbound,
      storage,
      retryUntilUp: (_signal, work) => work(),
      logger,
      tools: mediaTools,
      sealer: new Sealer(Buffer.alloc(32, 1)),
      encoding: new Semaphore(4),
      disk: new DiskSpace(folder),
      limits: { maxInputBytes: 100 * 1024 * 1024, maxAudioSeconds: 3600, outputTtlSeconds: 3600 },
    },
    left: () =>
      readdirSync(join(folder, 'workspaces')).flatMap((owner) =>
        readdirSync(join(folder, 'workspaces', owner)),
      ),
    async close() {
      await outbound.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
