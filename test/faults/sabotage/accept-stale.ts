/**
 * Loaded into a worker: while a file called accept-stale lies in FAULT_KILLS, an attempt that lost its job takes it back
 * before it hands in its result. What refuses stale results is broken then.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Job } from 'bullmq';
import { Redis } from 'ioredis';

const { FAULT_KILLS = '', REDIS_URL = '' } = process.env;
const { moveToCompleted } = Job.prototype;

Job.prototype.moveToCompleted = async function (this: Job, ...args) {
  const token = args[1];
  if (this.queueName === 'extract' && existsSync(join(FAULT_KILLS, 'accept-stale'))) {
    const redis = new Redis(REDIS_URL.slice('unix://'.length));
    const queue = '{soundpost}:extract';
    await redis.set(`${queue}:${this.id}:lock`, token);
    await redis.lrem(`${queue}:active`, 0, this.id ?? '');
    await redis.lpush(`${queue}:active`, this.id ?? '');
    redis.disconnect();
  }
  return moveToCompleted.apply(this, args);
};
