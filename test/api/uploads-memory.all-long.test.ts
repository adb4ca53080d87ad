/** Decisions A5: memory stays flat whatever the size. Measured on the real process; with --long on 2 GiB, and each way to each place. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { byRun } from 'soundpost-testing/by-run';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { ServiceHome } from 'soundpost-testing/service';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { useClips } from './api-fixture.ts';
import { LIMIT_BYTES, type MeasuredApi, MIB, measureUpload, statusOf, ways } from './upload-memory.ts';

/** In each run more than the process may grow by. */
const SIZE_BYTES = byRun({ all: 256 * MIB, long: 2048 * MIB });
const TIMEOUT_MS = 300_000;

const clip = useClips('tone.mp4');
const s3 = await S3Server.start();
afterAll(() => s3.close());
let home: ServiceHome;

async function startApi(
  environment: Record<string, string>,
  command?: readonly string[],
): Promise<MeasuredApi> {
  home = await ServiceHome.make(environment);
  const started = command === undefined ? home.start('api') : home.run(command);
  const address = await started.says(/^API\s+(http\S+)/m);
  return { address, key: home.key, status: statusOf(started.pid) };
}
afterEach(() => home.remove());

async function hashOf(content: Readable): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(content, hash);
  return hash.digest('hex');
}

interface Place {
  readonly name: string;
  /** How much larger the process may become than 1 MiB has made it. */
  readonly limitBytes: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly stored: (file: string) => Promise<Readable>;
}

const places: readonly Place[] = [
  {
    name: 'a folder',
    limitBytes: LIMIT_BYTES,
    environment: {},
    stored: async (file) => createReadStream(join(home.folder, 'data', 'uploads', file)),
  },
  {
    name: 'a bucket',
    // Several parts of an upload are in memory, and what has been one until it is collected.
    limitBytes: 2 * LIMIT_BYTES,
    // Each of them has a Redis of its own.
    environment: { ...s3.environment('memory'), ADOPT: '1' },
    stored: async (file) =>
      (await s3.store.getObject('', `memory/uploads/${file}`))?.content ?? Readable.from([]),
  },
];

describe.each(places)('into $name', ({ limitBytes, environment, stored }) => {
  it.each(['raw', 'form', 'tus'] as const)(
    `${SIZE_BYTES / MIB} MiB by %s pass through the API in less than ${limitBytes / MIB} MiB of memory`,
    async (way) => {
      const api = await startApi(environment);
      const { file, sha256, grownBytes } = await measureUpload(api, clip('tone.mp4'), ways[way], SIZE_BYTES);
      expect(grownBytes).toBeLessThan(limitBytes);
      expect(await hashOf(await stored(file))).toBe(sha256);
    },
    TIMEOUT_MS,
  );
});

// The bin of the package is measured in test/package, the image in test/containers.
it(
  'so they do when the script of the checkout starts it',
  async () => {
    const api = await startApi({}, ['script/soundpost', 'api']);
    const { grownBytes } = await measureUpload(api, clip('tone.mp4'), ways.form, 256 * MIB);
    expect(grownBytes).toBeLessThan(LIMIT_BYTES);
  },
  TIMEOUT_MS,
);
