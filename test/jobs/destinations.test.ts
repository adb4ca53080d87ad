/** Putting files to their destinations, as a job of its own: added once, tried again, handed on, told of once. */
import { ServiceError } from 'soundpost-contract/errors';
import { OutputsRequest } from 'soundpost-contract/output-request';
import { ownKey } from 'soundpost-kit/redis/keys';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { consumeCompletions } from '../../src/followups/completion.ts';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import type { Attempt, Tried } from '../../src/followups/kind.ts';
import { destinationKind } from '../../src/followups/kinds/destination.ts';
import { readDestinations, readPut } from '../../src/followups/state/destinations.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { openDestination, openDestinations, sealDestinations } from '../../src/jobs/destinations.ts';
import { findJobRecord } from '../../src/jobs/job-record.ts';
import { destinationId, webhookId } from '../../src/jobs/names.ts';
import type { DestinationOutcome, DestinationPayload } from '../../src/jobs/payloads.ts';
import { resultOf } from './job-result.ts';
import { destinedPayload, logger, newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();
const HOOK = 'https://client.example/hook';
const TAKEN: DestinationOutcome = { status: 'completed', error: null };
const done = { outcome: 'done', result: TAKEN } as const;

type Put = (
  payload: DestinationPayload,
  attempt: Attempt,
  signal: AbortSignal,
) => Promise<Tried<DestinationOutcome>>;

let followUps: JobFollowUps;

async function consume(put: Put, scheduleSeconds: readonly number[] = [0, 0.01, 0.02]) {
  const redis = queue().connect('worker');
  followUps = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
  const readJob = (jobId: string) => findJobRecord(redis, jobId);
  const shared = { redis, lockSeconds: 30, logger, followUps };
  const readReplay = async (jobId: string, name: string) => (await readPut(redis, jobId, name)).replay;
  const services = { ...shared, readJob, readReplay, logSeconds: 3600, scheduleSeconds };
  const kind = {
    ...destinationKind(services as unknown as Parameters<typeof destinationKind>[0]),
    prepare: async () => ({ ready: undefined }),
    try: (_: undefined, ...told: Parameters<Put>) => put(...told),
  };
  const { destination } = followUps.queues;
  const completions = consumeCompletions(shared);
  const puts = await FollowUpWorker.start({
    ...{ ...shared, queue: destination, kindOf: () => kind, isAlone: false, concurrency: 64 },
  });
  const opened = followUps;
  queue().onClose(() => opened.close());
  queue().onClose(() => completions.close(0));
  queue().onClose(() => puts.close(0));
  return puts;
}

async function submit(options: Record<string, unknown> = {}): Promise<string> {
  const jobId = newJobId();
  await queue().take(TENANT, { jobId, payload: destinedPayload(jobId, options) });
  return jobId;
}

const stateOf = async (jobId: string) => {
  const record = await queue().jobs.read(jobId);
  return record && (await readDestinations(queue().redis, record, [])).job;
};
const reaches = (jobId: string, status: string) =>
  until(`the put is ${status}`, async () => {
    const state = await stateOf(jobId);
    return state?.status === status && state;
  });
const complete = () => queue().consume(async ({ jobId }) => resultOf(jobId));

describe('a put', () => {
  it('begins when its job is completed, and is told of by its webhook', async () => {
    const seen: unknown[] = [];
    await consume(async (payload, attempt) => {
      seen.push({ payload, attempt });
      return done;
    });
    const jobId = await submit({ webhook: HOOK });
    expect(await stateOf(jobId)).toEqual({
      url: 'https://bucket.example/talk.mp3',
      status: 'pending',
      error: null,
    });
    complete();
    const state = await reaches(jobId, 'completed');
    expect(seen).toEqual([
      {
        payload: { version: 1, tenant: TENANT, jobId, name: 'audio', origin: 'https://bucket.example' },
        attempt: { number: 1, last: false },
      },
    ]);
    const events = await queue().toldWebhook(2);
    expect(Object.keys(events).sort()).toEqual(['destination.updated', 'job.completed']);
    expect(events['destination.updated']).toMatchObject({
      deliveryId: webhookId(destinationId(jobId, 'audio')),
      name: 'audio',
      destination: state,
    });
  });

  it('is tried as often as the schedule says, and each try is listed with its reason', async () => {
    const attempts: unknown[] = [];
    await consume(async (_payload, attempt) => {
      attempts.push(attempt);
      const error = { code: 'DESTINATION_FAILED', message: 'no' } as const;
      return attempt.last
        ? { outcome: 'done', result: { status: 'failed', error }, error: 'no', httpStatus: 503 }
        : { outcome: 'retry', error: 'no', retryAfterSeconds: 0 };
    });
    complete();
    const jobId = await submit();
    expect(await reaches(jobId, 'failed')).toMatchObject({ error: { message: 'no' } });
    expect(await followUps.list(jobId, () => ({ event: '' }))).toMatchObject([
      {
        ...{ deliveryId: destinationId(jobId, 'audio'), kind: 'destination', name: 'audio' },
        ...{ status: 'failed', nextAttemptAt: null },
        attempts: [
          { httpStatus: null, error: 'no' },
          { httpStatus: null, error: 'no' },
          { httpStatus: 503, error: 'no' },
        ],
      },
    ]);
    expect(attempts).toEqual([
      { number: 1, last: false },
      { number: 2, last: false },
      { number: 3, last: true },
    ]);
  });

  it('of a job that failed is never made', async () => {
    const made: string[] = [];
    await consume(async ({ jobId }) => {
      made.push(jobId);
      return done;
    });
    const failing = await submit();
    queue().consume(async ({ jobId }) => {
      if (jobId === failing) throw new ServiceError('EXTRACTION_FAILED', 'no audio');
      return resultOf(jobId);
    });
    expect(await reaches(failing, 'failed')).toMatchObject({
      error: { code: 'DESTINATION_FAILED', message: 'the job itself failed' },
    });
    // Goes the same way, behind it.
    const later = await submit();
    await reaches(later, 'completed');
    expect(made).toEqual([later]);
  });

  it('ends at once where no further try can help: its job says so, and its webhook is told', async () => {
    let puts = 0;
    await consume(async () => {
      puts += 1;
      return { outcome: 'final', error: 'no try will ever help' };
    });
    complete();
    const jobId = await submit({ webhook: HOOK });
    expect(await reaches(jobId, 'failed')).toMatchObject({ error: { code: 'DESTINATION_FAILED' } });
    const events = await queue().toldWebhook(2);
    expect(events['destination.updated']).toMatchObject({
      deliveryId: webhookId(destinationId(jobId, 'audio')),
      name: 'audio',
      destination: await stateOf(jobId),
    });
    expect(puts).toBe(1);
  });

  it('of a bucket that is away is made when it is back: 50 of 50, each taken once', async () => {
    let isAway = true;
    const refused = new Set<string>();
    const taken: string[] = [];
    const away: Tried<DestinationOutcome> = { outcome: 'retry', error: 'away' };
    const ten = [0, 0.01, ...Array.from({ length: 8 }, (_, nth) => nth + 1)];
    await consume(async ({ jobId }) => {
      if (isAway) refused.add(jobId);
      else taken.push(jobId);
      return isAway ? away : done;
    }, ten);
    complete();
    const jobIds = await Promise.all(Array.from({ length: 50 }, () => submit()));
    await until('all were refused', () => refused.size === 50, 60_000);
    isAway = false;
    for (const jobId of jobIds) await reaches(jobId, 'completed');
    expect(taken.toSorted()).toEqual(jobIds.toSorted());
  });

  it('that failed before leaves two places of its key to others', async () => {
    const gates: (() => void)[] = [];
    const tried = new Map<string, number>();
    await consume(
      async ({ jobId }) => {
        tried.set(jobId, (tried.get(jobId) ?? 0) + 1);
        if (tried.get(jobId) === 1 && tried.size <= 10) return { outcome: 'retry', error: 'away' };
        await new Promise<void>((resolve) => gates.push(resolve));
        return done;
      },
      [0, 0.01, 0.02],
    );
    complete();
    for (let nth = 0; nth < 10; nth++) await submit();
    await until('six are under way', () => gates.length === 6);
    await until('the others wait', async () => (await queue().redis.zcard(heldPuts)) === 6);
    await submit();
    await until('another one begins', () => gates.length === 7);
    expect(tried.size).toBe(11);
    await until('all are let go', () => {
      for (const letGo of gates.splice(0)) letGo();
      return [...tried.values()].reduce((sum, tries) => sum + tries, 0) === 21;
    });
    for (const letGo of gates) letGo();
  });

  it('of one key is one of eight at a time', async () => {
    const gates: (() => void)[] = [];
    await consume(
      () =>
        new Promise((resolve) => {
          gates.push(() => resolve(done));
        }),
    );
    complete();
    const jobIds = await Promise.all(Array.from({ length: 9 }, () => submit()));
    await until('the ninth waits', async () => (await queue().queue('destination').getDelayedCount()) === 1);
    await until('eight have begun', () => gates.length === 8);
    expect(gates).toHaveLength(8);
    gates[0]?.();
    await until('the ninth has begun', () => gates.length === 9);
    for (const letGo of gates) letGo();
    for (const jobId of jobIds) await reaches(jobId, 'completed');
  });
});

const heldPuts = `${ownKey('places', 'destination')}:key:${TENANT}:2`;

describe('a replay', () => {
  const address = { url: 'https://other.example/talk.mp3', sealed: 'SEALED' };
  const recordOf = async (jobId: string) => {
    const record = await queue().jobs.read(jobId);
    if (record === undefined) throw new Error('no record');
    return record;
  };

  it('of one that failed has the whole schedule, shows its address and is announced on its own', async () => {
    const attempts: number[] = [];
    await consume(async ({ jobId, name }, { number, last }) => {
      attempts.push(number);
      const { replay } = await readPut(queue().redis, jobId, name);
      if (replay !== undefined && number === 2) return { ...done, result: { ...TAKEN, replay: replay.id } };
      const error = { code: 'DESTINATION_FAILED', message: 'no' } as const;
      return last
        ? { outcome: 'done', result: { status: 'failed', error } }
        : { outcome: 'retry', error: 'no' };
    });
    complete();
    const jobId = await submit({ webhook: HOOK });
    await reaches(jobId, 'failed');
    await followUps.replayPut(await recordOf(jobId), 'audio', address);
    await reaches(jobId, 'completed');
    expect(attempts).toEqual([1, 2, 3, 1, 2]);
    const { files } = await readDestinations(queue().redis, await recordOf(jobId), []);
    expect(files.get('audio')).toEqual({ url: address.url, status: 'completed', error: null });
    const updates = await until('both ends are announced', async () => {
      const all = await followUps.list(jobId, ({ event, destination }) => ({ event, destination }));
      const of = all.flatMap((one) =>
        one.kind === 'webhook' && one.event === 'destination.updated' ? [one] : [],
      );
      return of.length === 2 && of;
    });
    expect(updates.map(({ body }) => body.destination)).toMatchObject([
      { status: 'failed', url: 'https://bucket.example/talk.mp3' },
      { status: 'completed', url: address.url },
    ]);
  });

  it('of one that waits for its next try makes that at once, and it keeps the tries that are left', async () => {
    const attempts: number[] = [];
    await consume(
      async (_payload, { number }) => {
        attempts.push(number);
        return attempts.length < 3 ? { outcome: 'retry', error: 'no' } : done;
      },
      [0, 3600, 7200, 9000],
    );
    complete();
    const jobId = await submit();
    for (const tries of [1, 2]) {
      await until('the next try is far', async () => {
        const waits = (await queue().queue('destination').getDelayedCount()) === 1;
        return waits && attempts.length === tries;
      });
      await followUps.replayPut(await recordOf(jobId), 'audio', undefined);
    }
    await reaches(jobId, 'completed');
    expect(attempts).toEqual([1, 2, 3]);
  });

  it('that comes in the moment in which the put ends is not lost', async () => {
    let puts = 0;
    await consume(async ({ jobId, name }) => {
      puts += 1;
      const { replay } = await readPut(queue().redis, jobId, name);
      if (puts === 1) await followUps.replayPut(await recordOf(jobId), name, address);
      return { outcome: 'done', result: { ...TAKEN, ...(replay && { replay: replay.id }) } };
    });
    complete();
    const jobId = await submit();
    await reaches(jobId, 'completed');
    expect(puts).toBe(2);
  });
});

describe('what is secret of a destination', () => {
  const sealer = new Sealer(Buffer.alloc(32, 1));
  const own = { url: 'https://one.example/a?s=SECRET', headers: { 'X-Key': 'SECRET' } };
  const asked = {
    outputs: OutputsRequest.parse([
      { name: 'full', format: 'mp3' },
      { name: 'small', format: 'opus', destination: own },
    ]),
    destination: { url: 'https://all.example/{name}?s=SECRET' },
  };

  it('is sealed, and opened again by who has the key', () => {
    const kept = sealDestinations(sealer, 'job_1', asked);
    expect(JSON.stringify(kept)).not.toContain('SECRET');
    expect(kept.destinations).toMatchObject({
      job: { url: 'https://all.example/{name}' },
      outputs: { small: { url: 'https://one.example/a', headers: ['X-Key'] } },
    });
    const read = JSON.parse(JSON.stringify(kept));
    expect(JSON.parse(JSON.stringify(openDestinations(sealer, 'job_1', read)))).toEqual(asked);
    expect(openDestination(sealer, 'job_1', read, 'full')).toEqual({
      url: 'https://all.example/full?s=SECRET',
    });
    expect(openDestination(sealer, 'job_1', read, 'small')).toEqual(own);
  });

  it('is not opened for another job or output, nor with another key', () => {
    const { destinations } = sealDestinations(sealer, 'job_1', asked);
    const swapped = { destinations: { outputs: { full: destinations?.outputs?.small } } } as never;
    expect(() => openDestination(sealer, 'job_1', swapped, 'full')).toThrow();
    expect(() => openDestination(sealer, 'job_2', { destinations }, 'full')).toThrow();
    expect(() => openDestination(new Sealer(Buffer.alloc(32)), 'job_1', { destinations }, 'full')).toThrow();
  });
});
