/** What is removed, when, and above all what is not. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ServiceError } from 'soundpost-contract/errors';
import { OutputsRequest, outputsOf } from 'soundpost-contract/output-request';
import { ownKey } from 'soundpost-kit/redis/keys';
import { fileInventory } from 'soundpost-kit/storage/inventory';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Janitor } from '../../../src/jobs/janitor/janitor.ts';
import { attemptFiles, destinationId, transcriptId, voiceId } from '../../../src/jobs/names.ts';
import { ExtractResult } from '../../../src/jobs/payloads.ts';
import { tenantJobsKey } from '../../../src/jobs/reservation.ts';
import {
  beginUpload,
  completeUpload,
  findUpload,
  holdUpload,
  newUploadId,
  uploadLease,
  withdrawUpload,
} from '../../../src/jobs/uploads/record.ts';
import { removeUnnamed, shelvesOf } from '../../../src/process/shelves.ts';
import { jobKey, queueKey } from '../bullmq-keys.ts';
import { resultOf } from '../job-result.ts';
import { destinedPayload, logger, newJobId, payloadOf, TENANT, useQueue } from '../queue-fixture.ts';

/** Of a job that asks for an output alone. */
function filesOfAttempt(jobId: string, attemptToken = ''): { output: string; voice: string } {
  const { outputs, voice } = attemptFiles(jobId, attemptToken, outputsOf(payloadOf(TENANT)));
  return { output: outputs[0] ?? '', voice };
}

const HOUR = 3600;
const OUTPUT_TTL_SECONDS = 2 * HOUR;
const JOB_TTL_SECONDS = 24 * HOUR;

const queue = useQueue();
/** Keys of the storage, and ids of uploads, that were asked to be removed. */
let removed: string[] = [];
beforeEach(() => {
  removed = [];
});
afterEach(() => {
  vi.useRealTimers();
});

/** Moves the clock; timers go on as they are. */
function timePasses(seconds: number): void {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(now + seconds * 1000);
}

function janitor(
  options: { removeObject?: (key: string) => Promise<void>; outputTtlSeconds?: number } = {},
): Janitor {
  return new Janitor({
    redis: queue().redis,
    outputTtlSeconds: OUTPUT_TTL_SECONDS,
    jobTtlSeconds: JOB_TTL_SECONDS,
    async removeObject(key) {
      removed.push(key);
    },
    async removeUpload(file) {
      removed.push(file);
    },
    logger,
    ...options,
  });
}

async function upload({ expiresInMs = -1, complete = true } = {}): Promise<string> {
  const file = newUploadId();
  const expiresAtMs = Date.now() + expiresInMs;
  await beginUpload(queue().redis, { file, tenant: TENANT, name: 'talk.mp4', sizeBytes: 10, expiresAtMs });
  if (complete) {
    await completeUpload(queue().redis, { file, sizeBytes: 10, expiresAtMs });
  }
  return file;
}

/** An upload that a job took hold of before it expired. */
async function heldBy(jobId: string): Promise<string> {
  const file = await upload({ expiresInMs: 60_000 });
  expect(await holdUpload(queue().redis, file, jobId)).toBe(true);
  await withdrawUpload(queue().redis, file);
  return file;
}

describe('uploads', () => {
  it('go when they have expired, complete or not, and nothing of them stays', async () => {
    const over = [await upload(), await upload({ complete: false })];
    const kept = [
      await upload({ expiresInMs: 60_000 }),
      await upload({ expiresInMs: 60_000, complete: false }),
    ];
    expect(await janitor().sweep()).toMatchObject({ uploads: 2 });
    expect(removed.sort()).toEqual([...over].sort());
    for (const file of over) {
      expect(await queue().redis.keys(`*${file}*`)).toEqual([]);
    }
    expect(await queue().redis.zrange(ownKey('uploads'), '0', '-1')).toEqual(expect.arrayContaining(kept));
    expect(await findUpload(queue().redis, TENANT, kept[0] ?? '')).toBeDefined();
    expect(await janitor().sweep()).toMatchObject({ uploads: 0 });
  });

  it('go in any number', async () => {
    const held = await heldBy(await queue().submit());
    await Promise.all(Array.from({ length: 120 }, () => upload()));
    expect(await janitor().sweep()).toMatchObject({ uploads: 120 });
    expect(removed).not.toContain(held);
  });

  it('stay while a job waits for them or works with them, and go when it has ended', async () => {
    const jobId = await queue().submit();
    const file = await heldBy(jobId);
    await janitor().sweep();
    const gate = Promise.withResolvers<void>();
    const { started } = observe(gate.promise);
    await until('the job runs', () => started() > 0);
    await janitor().sweep();
    expect(removed).not.toContain(file);
    gate.resolve();
    await queue().reaches(jobId, 'completed');
    await janitor().sweep();
    expect(removed).toContain(file);
  });

  it('stay while the last of several jobs needs them', async () => {
    const [first = '', second = ''] = await queue().submitMany(2);
    const file = await heldBy(first);
    await queue().redis.hset(ownKey('upload', file), 'expiresAtMs', Date.now() + 60_000);
    await holdUpload(queue().redis, file, second);
    await withdrawUpload(queue().redis, file);
    await queue().jobs.cancel(first);
    await janitor().sweep();
    expect(removed).toEqual([]);
    await queue().jobs.cancel(second);
    await janitor().sweep();
    expect(removed).toContain(file);
  });

  it('stay for a job that is about to be queued, but not for one that never was', async () => {
    const file = await heldBy(newJobId());
    await janitor().sweep();
    expect(removed).toEqual([]);
    const holders = ownKey('upload-holders', file);
    const [jobId = ''] = await queue().redis.zrange(holders, '0', '-1');
    await queue().redis.zadd(holders, Date.now() - 61_000, jobId);
    await janitor().sweep();
    expect(removed).toEqual([file]);
  });

  it('can no longer be held when they have expired', async () => {
    const file = await upload();
    expect(await holdUpload(queue().redis, file, newJobId())).toBe(false);
    expect(
      await holdUpload(queue().redis, await upload({ expiresInMs: 60_000, complete: false }), newJobId()),
    ).toBe(false);
    expect(await holdUpload(queue().redis, newUploadId(), newJobId())).toBe(false);
  });

  it('stay while somebody writes to them', async () => {
    const file = await upload({ complete: false });
    const { redis } = queue();
    const lease = uploadLease(file);
    const { holder } = await lease.take(redis, { leaseMs: 60_000 });
    await janitor().sweep();
    expect(removed).toEqual([]);
    expect(await lease.renew(redis, holder, 60_000)).toBe('held');
    await lease.release(redis, holder);
    await janitor().sweep();
    expect(removed).toEqual([file]);
  });

  it('are tried again when their bytes could not be removed', async () => {
    const file = await upload();
    const failing = new Janitor({
      redis: queue().redis,
      outputTtlSeconds: OUTPUT_TTL_SECONDS,
      jobTtlSeconds: JOB_TTL_SECONDS,
      removeObject: async () => undefined,
      removeUpload: async () => {
        throw new Error('the storage is away');
      },
      logger,
    });
    await expect(failing.sweep()).rejects.toThrow('the storage is away');
    await janitor().sweep();
    expect(removed).toEqual([file]);
  });
});

/** A worker that waits, then makes what a job makes. @returns how many attempts it has begun */
function observe(
  gate: Promise<void> = Promise.resolve(),
  failing = 0,
): { started: () => number; tokens: string[] } {
  const tokens: string[] = [];
  queue().consume(async ({ jobId, attemptToken, payload }) => {
    tokens.push(attemptToken);
    await gate;
    if (tokens.length <= failing) {
      throw new Error('no disk');
    }
    const result = resultOf(jobId);
    const { output, voice } = filesOfAttempt(jobId, attemptToken);
    return ExtractResult.parse({
      ...result,
      outputFile: { ...result.outputFile, storageKey: output },
      voice: payload.options.voiceMessage ? { storageKey: voice, fitsVoiceBubble: true, seconds: 1 } : null,
    });
  });
  return { started: () => tokens.length, tokens };
}

/** Moves the end of a job into the past. */
async function ended(jobId: string, secondsAgo: number): Promise<void> {
  const { redis } = queue();
  const endedMs = Date.now() - secondsAgo * 1000;
  for (const set of ['completed', 'failed']) {
    await redis.zadd(queueKey('extract', set), 'XX', endedMs, jobId);
  }
  await redis.hset(jobKey('extract', jobId), 'finishedOn', endedMs, 'timestamp', endedMs - 1000);
  await redis.zadd(tenantJobsKey(TENANT), endedMs - 1000, jobId);
}

describe('results', () => {
  it('go when their time is over, and only then', async () => {
    observe();
    const jobIds = await queue().submitMany(3);
    for (const jobId of jobIds) {
      await queue().reaches(jobId, 'completed');
    }
    const [fresh = '', young = '', old = ''] = jobIds;
    await ended(young, OUTPUT_TTL_SECONDS - 60);
    await ended(old, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    const { result } = await queue().reaches(old, 'completed');
    expect(removed).toEqual([result?.outputFile?.storageKey]);
    await janitor().sweep();
    expect(removed).toHaveLength(1);
    timePasses(61);
    await janitor().sweep();
    expect(removed).toHaveLength(2);
    expect(removed[1]).toContain(young);
    timePasses(OUTPUT_TTL_SECONDS);
    await janitor().sweep();
    expect(removed).toHaveLength(3);
    expect(removed[2]).toContain(fresh);
  });

  it('of a probe are none', async () => {
    queue().consume(async ({ jobId }) => ({ ...resultOf(jobId), outputFile: null }));
    const jobId = newJobId();
    await queue().jobs.submit(TENANT, [
      { jobId, payload: { ...payloadOf(TENANT), output: { format: 'probe' } } },
    ]);
    await queue().reaches(jobId, 'completed');
    await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    expect(removed).toEqual([]);
  });

  it('go with their voice rendition, which stays until its message has ended', async () => {
    const { tokens } = observe();
    const voiceMessage = { instance: 'main', number: '491500000000' };
    const jobId = await queue().submit(TENANT, { voiceMessage });
    await queue().reaches(jobId, 'completed');
    await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    const { output, voice } = filesOfAttempt(jobId, tokens[0]);
    // After an outage the message is sent later than that.
    expect(removed).toEqual([output]);
    await janitor().sweep();
    expect(removed).toEqual([output]);
    await queue().redis.hset(jobKey('voice', voiceId(jobId)), 'finishedOn', Date.now());
    await janitor().sweep();
    expect(removed).toEqual([output, voice]);
  });

  it('stay until they are put to their destination', async () => {
    const { tokens } = observe();
    const jobId = newJobId();
    await queue().jobs.submit(TENANT, [{ jobId, payload: destinedPayload(jobId) }]);
    await queue().reaches(jobId, 'completed');
    await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    await janitor().sweep();
    expect(removed).toEqual([]);
    await queue().redis.hset(jobKey('destination', destinationId(jobId, 'audio')), 'finishedOn', Date.now());
    await janitor().sweep();
    expect(removed).toEqual([filesOfAttempt(jobId, tokens[0]).output]);
    await janitor().sweep();
    expect(removed).toHaveLength(1);
  });

  it('go with what a transcript is made of when that has ended, and with its text when its own time is over', async () => {
    const audio = (jobId: string) => ({
      ...{ name: 'words', storageKey: `files/${jobId}/one-words.wav`, subtitles: 'vtt', filename: 'a.vtt' },
      timeline: { startOffset: 0, filledSeconds: 0 },
    });
    queue().consume(async ({ jobId }) =>
      ExtractResult.parse({ ...resultOf(jobId), transcripts: [audio(jobId)] }),
    );
    const jobId = await queue().submit();
    const { result } = await queue().reaches(jobId, 'completed');
    const output = result?.outputFile?.storageKey ?? '';
    const [wav, heard, text] = ['wav', 'heard.json', 'vtt'].map((end) => `files/${jobId}/one-words.${end}`);
    await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    const ofAttempts = removed.filter((key) => !key.includes('/one'));
    expect(removed).toEqual([...ofAttempts, output]);

    const file = {
      ...{ name: 'words', storageKey: text, filename: 'a.vtt', size: 1, duration: 1, sha256: '0'.repeat(64) },
      ...{ format: 'transcript', subtitles: 'vtt', language: 'en' },
      timeline: { startOffset: 0, filledSeconds: 0 },
      expiresAt: new Date(Date.now() + HOUR * 1000).toISOString(),
    };
    const record = jobKey('transcript', transcriptId(jobId, 'words'));
    const returnvalue = JSON.stringify({ status: 'completed', files: [file] });
    await queue().redis.hset(record, { finishedOn: Date.now(), returnvalue });
    await janitor().sweep();
    expect(removed).toEqual([...ofAttempts, output, wav, heard]);
    timePasses(HOUR + 60);
    await janitor().sweep();
    expect(removed).toEqual([...ofAttempts, output, wav, heard, text]);
  });

  it('go each when nothing needs it any more, where a put and a transcript are both under way', async () => {
    const audio = (jobId: string) => ({
      ...{ name: 'words', storageKey: `files/${jobId}/one-words.wav`, subtitles: 'vtt', filename: 'a.vtt' },
      timeline: { startOffset: 0, filledSeconds: 0 },
    });
    queue().consume(async ({ jobId }) =>
      ExtractResult.parse({ ...resultOf(jobId), transcripts: [audio(jobId)] }),
    );
    const jobId = newJobId();
    await queue().jobs.submit(TENANT, [{ jobId, payload: destinedPayload(jobId) }]);
    const { result } = await queue().reaches(jobId, 'completed');
    const output = result?.outputFile?.storageKey ?? '';
    const made = ['wav', 'heard.json', 'vtt'].map((end) => `files/${jobId}/one-words.${end}`);
    const ofJob = () => removed.filter((key) => [output, ...made].includes(key)).toSorted();
    await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    await janitor().sweep();
    expect(ofJob()).toEqual([]);
    await queue().redis.hset(jobKey('destination', destinationId(jobId, 'audio')), 'finishedOn', Date.now());
    await janitor().sweep();
    expect(ofJob()).toEqual([output]);
    await queue().redis.hset(jobKey('transcript', transcriptId(jobId, 'words')), 'finishedOn', Date.now());
    await janitor().sweep();
    expect(ofJob()).toEqual([output, ...made].toSorted());
  });

  it('go in any number, also of one millisecond', async () => {
    // So many commands at once take longer on a busy machine than somebody who waits for an answer is kept waiting.
    const redis = queue().connect('worker');
    const endedMs = Date.now() - (OUTPUT_TTL_SECONDS + 60) * 1000;
    const jobIds = Array.from({ length: 603 }, () => newJobId());
    await Promise.all(
      jobIds.map(async (jobId, index) => {
        const at = endedMs - Math.floor(index / 7);
        await redis.hset(jobKey('extract', jobId), {
          data: JSON.stringify(payloadOf(TENANT)),
          timestamp: at,
          processedOn: at,
          finishedOn: at,
          returnvalue: JSON.stringify(resultOf(jobId)),
        });
        await redis.zadd(queueKey('extract', 'completed'), at, jobId);
      }),
    );
    await janitor().sweep();
    expect(removed.sort()).toEqual(jobIds.map((jobId) => `files/${jobId}/one.mp3`).sort());
    await janitor().sweep();
    expect(removed).toHaveLength(jobIds.length);
  });

  it('are not kept longer than their record', async () => {
    observe();
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed');
    await ended(jobId, JOB_TTL_SECONDS + 60);
    await janitor({ outputTtlSeconds: 30 * JOB_TTL_SECONDS }).sweep();
    expect(removed).toHaveLength(1);
  });

  it('are tried again when the storage failed, from where it failed', async () => {
    observe();
    const jobIds = (await queue().submitMany(3)).sort();
    for (const jobId of jobIds) {
      await queue().reaches(jobId, 'completed');
      await ended(jobId, OUTPUT_TTL_SECONDS + 60);
    }
    const away = async (): Promise<void> => {
      throw new Error('the storage is away');
    };
    await expect(janitor({ removeObject: away }).sweep()).rejects.toThrow('the storage is away');
    await janitor().sweep();
    expect(removed).toHaveLength(3);
  });

  it('of other jobs go although one record cannot be read, and those that it mentions', async () => {
    const { tokens } = observe();
    const [broken = '', jobId = ''] = await queue().submitMany(2);
    for (const id of [broken, jobId]) {
      await queue().reaches(id, 'completed');
      await ended(id, OUTPUT_TTL_SECONDS + 60);
    }
    await queue().redis.hset(jobKey('extract', broken), 'data', '{"version":2}');
    await janitor().sweep();
    expect(removed.filter((key) => key.includes(jobId))).toHaveLength(1);
    expect(removed).toContain(filesOfAttempt(broken, tokens[0]).output);
  });
});

describe('files of attempts', () => {
  it('that lost go a minute after their job has ended; those of the winner stay', async () => {
    const { tokens } = observe(Promise.resolve(), 1);
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed');
    await janitor().sweep();
    expect(removed).toEqual([]);
    timePasses(61);
    await janitor().sweep();
    expect(tokens).toHaveLength(2);
    expect(removed).toEqual([filesOfAttempt(jobId, tokens[0]).output]);
  });

  it('of a job of several outputs go, each of them', async () => {
    const tokens: string[] = [];
    queue().consume(async ({ attemptToken }) => {
      tokens.push(attemptToken);
      throw new ServiceError('EXTRACTION_FAILED', 'no audio');
    });
    const outputs = OutputsRequest.parse([
      { name: 'full', format: 'mp3' },
      { name: 'voice', format: 'voice' },
      { name: 'peaks', format: 'waveform' },
    ]);
    const { output: _, ...payload } = payloadOf(TENANT);
    const jobId = newJobId();
    await queue().jobs.submit(TENANT, [{ jobId, payload: { ...payload, outputs } }]);
    await queue().reaches(jobId, 'failed');
    timePasses(61);
    await janitor().sweep();
    const base = `files/${jobId}/${tokens[0]}`;
    expect(removed.toSorted()).toEqual([`${base}-peaks.json`, `${base}-voice.ogg`, `${base}.mp3`]);
  });

  it('of a failed job go, and once more when a result would have gone', async () => {
    const tokens: string[] = [];
    queue().consume(async ({ attemptToken }) => {
      tokens.push(attemptToken);
      throw new ServiceError('EXTRACTION_FAILED', 'no audio');
    });
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'failed');
    timePasses(61);
    await janitor().sweep();
    const file = filesOfAttempt(jobId, tokens[0]).output;
    expect(removed).toEqual([file]);
    timePasses(OUTPUT_TTL_SECONDS);
    await janitor().sweep();
    expect(removed).toEqual([file, file]);
  });

  it('of a job that was cancelled while it finished go too', async () => {
    const { tokens } = observe();
    const jobId = await queue().submit();
    await queue().reaches(jobId, 'completed');
    await queue().redis.hset(jobKey('extract', jobId), 'spCancelled', '1');
    await ended(jobId, 61);
    await janitor().sweep();
    expect(removed).toEqual([filesOfAttempt(jobId, tokens[0]).output]);
  });
});

describe('indexes of tenants', () => {
  it('lose the jobs that are no longer answered, and no others', async () => {
    const { redis } = queue();
    await redis.sadd(ownKey('keys'), TENANT);
    observe();
    const ids = await queue().submitMany(4);
    const [recent = '', late = '', over = '', vanished = ''] = ids;
    for (const jobId of ids) {
      await queue().reaches(jobId, 'completed');
    }
    // Submitted long ago, ended lately.
    await redis.zadd(tenantJobsKey(TENANT), Date.now() - 2 * JOB_TTL_SECONDS * 1000, late);
    await ended(over, JOB_TTL_SECONDS + 60);
    await ended(vanished, JOB_TTL_SECONDS + 60);
    // Else it may still confirm the job, find it gone, and add it again.
    await queue().jobs.close();
    await redis.del(jobKey('extract', vanished));
    expect(await janitor().sweep()).toMatchObject({ indexEntries: 2 });
    expect((await redis.zrange(tenantJobsKey(TENANT), '0', '-1')).sort()).toEqual([recent, late].sort());
  });

  it('keep a job that has not ended, however old', async () => {
    const { redis } = queue();
    await redis.sadd(ownKey('keys'), TENANT);
    const jobId = await queue().submit();
    await redis.zadd(tenantJobsKey(TENANT), 1, jobId);
    await redis.zadd(tenantJobsKey(TENANT), ...Array.from({ length: 1100 }, () => [2, newJobId()]).flat());
    expect(await janitor().sweep()).toMatchObject({ indexEntries: 1100 });
    expect(await redis.zrange(tenantJobsKey(TENANT), '0', '-1')).toEqual([jobId]);
  });
});

describe('janitors', () => {
  it('work one at a time', async () => {
    const file = await upload();
    const gate = Promise.withResolvers<void>();
    const busy = new Janitor({
      redis: queue().redis,
      outputTtlSeconds: OUTPUT_TTL_SECONDS,
      jobTtlSeconds: JOB_TTL_SECONDS,
      removeObject: async () => undefined,
      async removeUpload(id) {
        removed.push(id);
        await gate.promise;
      },
      logger,
    });
    const sweeping = busy.sweep();
    await until('the first is at it', () => removed.length === 1);
    expect(await janitor().sweep()).toBeUndefined();
    gate.resolve();
    expect(await sweeping).toMatchObject({ uploads: 1 });
    expect(removed).toEqual([file]);
    expect(await janitor().sweep()).toBeDefined();
  });

  it('sweep by themselves when they are started, and stop when they are closed', async () => {
    const started = janitor();
    const first = await upload();
    started.start(10);
    await until('the first is gone', () => removed.includes(first));
    const second = await upload();
    await until('the second is gone', () => removed.includes(second));
    await started.close();
    await upload();
    expect(await queue().redis.exists(ownKey('lease', 'janitor'))).toBe(0);
    await expect(started.sweep()).rejects.toThrow('closing');
    expect(removed).toEqual([first, second]);
  });
});

describe('what no record names', () => {
  it('goes when it has had its time, and nothing that a record names or that is not ours', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-unnamed-'));
    const known = [
      `files/${await queue().submit()}/a.mp3`,
      `uploads/${await upload({ expiresInMs: 100 * HOUR * 1000 })}`,
    ];
    const media = '0123456789abcdef'.repeat(2);
    await queue().redis.zadd('{soundpost}:gateway:media-expiry', Date.now(), media);
    known.push(`media/${media}.enc`, 'files/of-another-application.mp3', 'uploads/theirs/x');
    const unknown = [
      `files/${newJobId()}/a.mp3`,
      `uploads/${newUploadId()}`,
      `uploads/.incoming/${newUploadId()}`,
      `media/${media.replaceAll('0', 'f')}.enc`,
    ];
    for (const key of [...known, ...unknown]) {
      await mkdir(join(folder, dirname(key)), { recursive: true });
      await writeFile(join(folder, key), 'sound');
    }
    const ttls = { OUTPUT_TTL_SECONDS, UPLOAD_TTL_SECONDS: HOUR, MEDIA_TTL_SECONDS: 48 * HOUR };
    const { redis } = queue();
    const sweep = () =>
      new Janitor({
        redis,
        outputTtlSeconds: OUTPUT_TTL_SECONDS,
        jobTtlSeconds: JOB_TTL_SECONDS,
        removeObject: async () => undefined,
        removeUpload: async () => undefined,
        sweepStorage: (proceed) =>
          removeUnnamed(fileInventory(folder), shelvesOf(ttls, redis), Date.now, proceed),
        logger,
      }).sweep();
    const left = () => [...known, ...unknown].filter((key) => existsSync(join(folder, key)));

    await sweep();
    expect(left()).toEqual([...known, ...unknown]);
    timePasses(3 * HOUR);
    expect(await sweep()).toMatchObject({ leftovers: 2 });
    expect(left()).toEqual([...known, ...unknown.slice(2)]);
    timePasses(46 * HOUR);
    expect(await sweep()).toMatchObject({ leftovers: 2 });
    expect(left()).toEqual(known);
    await rm(folder, { recursive: true });
  });
});
