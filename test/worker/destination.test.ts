/** A try to put a file to its destination: what ends it, and whether another one follows. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Sealer } from 'soundpost-kit/signing/sealer';
import type { StorageWatch } from 'soundpost-kit/storage/storage-watch';
import { type BucketServer, serveBucket } from 'soundpost-testing/bucket';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tryOnce } from '../../src/followups/kind.ts';
import { destinationKind } from '../../src/followups/kinds/destination.ts';
import { type DestinationReplay, sealDestination, sealDestinations } from '../../src/jobs/destinations.ts';
import { type JobRecord, readJobRecord } from '../../src/jobs/job-record.ts';
import { ExtractResult } from '../../src/jobs/payloads.ts';
import { resultOf } from '../jobs/job-result.ts';
import { payloadOf } from '../jobs/queue-fixture.ts';
import { logger, makeSurroundings, type Surroundings } from './worker-fixture.ts';

const JOB = 'job_0123456789abcdef';
const FILE = `files/${JOB}/one.mp3`;
/** More than lies in the buffers between two sockets. */
const SIZE_BYTES = 16 * 1024 * 1024;
const sealer = new Sealer(Buffer.alloc(32));

let around: Surroundings;
let store: BucketServer;
let record: JobRecord | undefined;
let replay: DestinationReplay | undefined;

beforeEach(async () => {
  store = await serveBucket();
  around = await makeSurroundings(store.allow);
  const file = join(around.folder, 'one.mp3');
  await writeFile(file, randomBytes(SIZE_BYTES));
  await around.storage.publish(file, FILE);
  record = recordOf();
  replay = undefined;
});
afterEach(async () => {
  await around.close();
  await store.close();
});

/** @param url default: one of the bucket */
function recordOf({
  url = `${store.url}/one.mp3?signature=abc`,
  expiresAt = '2100-01-01T00:00:00.000Z',
} = {}) {
  const { output, ...payload } = payloadOf('tenant01');
  const result = resultOf(JOB);
  return readJobRecord(JOB, {
    data: JSON.stringify({ ...payload, ...sealDestinations(sealer, JOB, { output, destination: { url } }) }),
    timestamp: '1',
    spConfirmed: '1',
    processedOn: '2',
    finishedOn: '3',
    returnvalue: JSON.stringify(
      ExtractResult.parse({
        ...result,
        outputFile: { ...result.outputFile, size: SIZE_BYTES, expiresAt },
      }),
    ),
  });
}

interface PutOptions {
  readonly last?: boolean;
  readonly signal?: AbortSignal;
  readonly longestMs?: number;
  readonly storage?: Pick<Surroundings['storage'], 'read'>;
  readonly retryUntilUp?: StorageWatch['retryUntilUp'];
}

function put(more: PutOptions = {}) {
  const { last = false, signal = new AbortController().signal, ...limits } = more;
  const services = {
    ...{ outbound: around.outbound, storage: around.storage, sealer, logger },
    retryUntilUp: <T>(_signal: AbortSignal, work: () => Promise<T>) => work(),
    readJob: async () => record,
    isErased: async () => record?.erased === true,
    readReplay: async () => replay,
    followUps: { addDestinationWebhook: async () => undefined, continuePut: async () => undefined },
    scheduleSeconds: [0, 5],
    logSeconds: 3600,
    idleMs: 60_000,
    ...limits,
  };
  const payload = { version: 1, tenant: 'tenant01', jobId: JOB, name: 'audio', origin: store.url } as const;
  return tryOnce(destinationKind(services), payload, { number: 1, last }, signal);
}

const failed = (message: string) => ({
  outcome: 'done',
  result: { status: 'failed', error: { code: 'DESTINATION_FAILED', message } },
});

/** The bucket reads the beginning and then nothing more, until it is let go. */
function takesNoMore(begun: () => void = () => undefined): () => void {
  const gate = Promise.withResolvers<void>();
  store.bucket.onBytes = () => {
    begun();
    return gate.promise;
  };
  return gate.resolve;
}

it('puts the file whole', async () => {
  expect(await put()).toEqual({
    outcome: 'done',
    httpStatus: 200,
    result: { status: 'completed', error: null },
  });
  expect(store.bucket.puts).toMatchObject([
    { target: '/one.mp3?signature=abc', sizeBytes: SIZE_BYTES, isWhole: true },
  ]);
});

it.each([
  [403, 'failed'],
  [503, 'retry'],
])('is refused with %i: %s', async (status, end) => {
  store.bucket.answer = () => ({ status });
  const message = `the destination answered with status ${status}`;
  expect(await put()).toMatchObject(
    end === 'failed' ? failed(message) : { outcome: 'retry', error: message },
  );
});

describe('a bucket that takes no more', () => {
  const TOO_LONG = 'the destination took too long for the whole file';

  it('is given up in time, however long it may be idle, and is tried again', async () => {
    takesNoMore();
    expect(await put({ longestMs: 100 })).toMatchObject({ outcome: 'retry', error: TOO_LONG });
  });

  it('has failed in the last try', async () => {
    takesNoMore();
    expect(await put({ longestMs: 100, last: true })).toMatchObject(failed(TOO_LONG));
  });

  it('is let go when the worker stops, with the reason of that', async () => {
    const stopping = new AbortController();
    const reason = new Error('the worker stops');
    takesNoMore(() => stopping.abort(reason));
    await expect(put({ signal: stopping.signal })).rejects.toBe(reason);
  });

  it('is let go when the delivery gets another address, where it begins anew', async () => {
    const letGo = takesNoMore(() => {
      const address = sealDestination(sealer, JOB, 'audio', { url: `${store.url}/two.mp3?signature=def` });
      replay = { id: 'r1', address };
    });
    expect(await put()).toMatchObject({ outcome: 'step', error: 'it was given another address' });
    letGo();
    store.bucket.onBytes = () => undefined;
    expect(await put()).toMatchObject({ outcome: 'done', result: { status: 'completed', replay: 'r1' } });
    expect(store.bucket.puts.map(({ target, isWhole }) => [target, isWhole])).toEqual([
      ['/one.mp3?signature=abc', false],
      ['/two.mp3?signature=def', true],
    ]);
  });

  it('is let go when the files are erased, for good', async () => {
    const letGo = takesNoMore(() => {
      record = record && { ...record, erased: true };
    });
    expect(await put()).toMatchObject(failed('the files of the job were erased before this one was put'));
    letGo();
    const [broken] = await store.bucket.got(1);
    expect(broken?.isWhole).toBe(false);
  });
});

it('a file whose time is over is put as long as it is stored', async () => {
  record = recordOf({ expiresAt: '2000-01-01T00:00:00.000Z' });
  expect(await put()).toMatchObject({ result: { status: 'completed' } });
});

it('our own storage breaks off in the middle: the file is put again from its beginning, in the same attempt', async () => {
  const whole = around.storage;
  let reads = 0;
  const storage: Pick<Surroundings['storage'], 'read'> = {
    read: async (key) => {
      reads += 1;
      return reads > 1 ? whole.read(key) : Readable.from(breakingOff(await whole.read(key)));
    },
  };
  const retryUntilUp: StorageWatch['retryUntilUp'] = (_signal, work) => work().catch(work);
  expect(await put({ storage, retryUntilUp })).toMatchObject({ result: { status: 'completed' } });
  expect(store.bucket.puts.filter(({ isWhole }) => isWhole)).toHaveLength(1);
});

async function* breakingOff(file: Readable) {
  for await (const chunk of file) {
    yield chunk;
    throw Object.assign(new Error('the storage went away'), { code: 'ECONNRESET' });
  }
}

it.each<[string, () => unknown, string]>([
  ['that is no longer stored', () => around.storage.remove(FILE), 'the file is no longer stored'],
  [
    'whose time is over, and that was removed,',
    () => {
      record = recordOf({ expiresAt: '2000-01-01T00:00:00.000Z' });
      return around.storage.remove(FILE);
    },
    'the file expired before it was put',
  ],
  [
    'whose job was erased',
    () => {
      record = record && { ...record, erased: true };
    },
    'the files of the job were erased before this one was put',
  ],
  [
    'whose job has expired',
    () => {
      record = undefined;
    },
    'the record of the job has expired',
  ],
  [
    'whose destination is an address of ours',
    () => {
      record = recordOf({ url: 'http://127.0.0.1:1/one.mp3' });
    },
    expect.stringMatching(/^the destination: the address is not allowed: .*OUTBOUND_ALLOW$/),
  ],
])('a file %s is sent nowhere, and not tried again', async (_what, happens, message) => {
  await happens();
  expect(await put()).toMatchObject(failed(message));
  expect(store.bucket.begun).toBe(0);
});
