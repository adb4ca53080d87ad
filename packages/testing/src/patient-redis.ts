/**
 * Connections for tests that are not about deadlines: on a busy machine Redis may be late by more
 * than a request waits in production.
 */
import { pino } from 'pino';
import { connectRedis, type Redis } from 'soundpost-kit/redis/connection';

const DEADLINE_MS = 30_000;

/** The caller closes it. */
export function connectPatiently(url: string): Redis {
  return connectRedis({ url, role: 'request', deadlineMs: DEADLINE_MS, logger: pino({ level: 'silent' }) });
}
