/**
 * Loaded into a worker: while a file called accept-stale lies in FAULT_KILLS, an attempt that lost its job takes it back
 * before it hands in its result, and does not notice the loss before. What refuses stale results is broken then.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Job, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const { FAULT_KILLS = '', REDIS_URL = '' } = process.env;
const { moveToCompleted } = Job.prototype;
const { extendJobLocks } = Worker.prototype;
const acceptsStale = (): boolean => existsSync(join(FAULT_KILLS, 'accept-stale'));

// A renewal that fails would end the attempt before it has anything to hand in, if it came first.
Worker.prototype.extendJobLocks = async function (this: Worker, ...args) {
  return acceptsStale() ? [] : extendJobLocks.apply(this, args);
};

Job.prototype.moveToCompleted = async function (this: Job, ...args) {
  const token = args[1];
  if (this.queueName === 'extract' && acceptsStale()) {
    const redis = new Redis(REDIS_URL.slice('unix://'.length));
    const queue = '{soundpost}:extract';
    await redis.set(`${queue}:${this.id}:lock`, token);
    await redis.lrem(`${queue}:active`, 0, this.id ?? '');
    await redis.lpush(`${queue}:active`, this.id ?? '');
    redis.disconnect();
  }
  return moveToCompleted.apply(this, args);
};
