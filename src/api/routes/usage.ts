/** GET /v1/usage: the caller's key, its limits and the rest of each (decisions A4, A6). */
import { Usage } from 'soundpost-contract/answers';
import { redisNow } from 'soundpost-kit/redis/clock';
import { lookAtRate, type RateState } from 'soundpost-kit/redis/rate';
import { z } from 'zod';
import { countUnfinished } from '../../jobs/job-index.ts';
import { MINUTE_MS, processorDebtKey, RECORD_BYTES_PER_MINUTE } from '../../jobs/reservation.ts';
import { streamRequestsLeft } from '../../jobs/stream-requests.ts';
import { spendTranscript } from '../../jobs/transcript-minutes.ts';
import { uploadsOf } from '../../jobs/uploads/record.ts';
import { readUsageDays } from '../../jobs/usage-days.ts';
import { sendData } from '../answer.ts';
import { openStreams } from '../event-streams.ts';
import { parseRequest } from '../request.ts';
import { type ApiServices, keyOf, type Route, type RouteContext } from '../route.ts';

const UsageQuery = z
  .object({
    from: z.iso.date().optional().meta({ description: 'First day (UTC), at most 89 days ago' }),
    to: z.iso.date().optional().meta({ description: 'Last day (UTC); default today' }),
  })
  .refine(({ from = '', to = from }) => from <= to, { path: ['to'], error: 'must not be before from' });

export const usageRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/usage',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'getUsage',
      summary: 'Show the key’s limits, and what is left of each',
      description:
        'With `from` or `to`, also shows what its jobs used each day, for the last 90 days. A job counts on the day it ended.',
      tag: 'Service',
      query: UsageQuery,
      answers: { 200: { description: 'The key, its limits, and what is left of each', data: Usage } },
      errors: ['INVALID_REQUEST'],
    },
    handle: usage,
  },
];

async function usage(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const span = parseRequest(UsageQuery, request.query);
  const isByDay = span.from !== undefined || span.to !== undefined;
  const { id, name, scopes, instances } = keyOf(context);
  const { redis, settings } = services;
  const { transcriptMinutesPerDay } = settings;
  const [submit, read, records, transcripts, processor, unfinished, uploads, streams, requests, days] =
    await Promise.all([
      lookAtRate(redis, 'submit', id, settings.submitPerMinute),
      lookAtRate(redis, 'read', id, settings.readPerMinute),
      lookAtRate(redis, 'records', id, RECORD_BYTES_PER_MINUTE),
      transcriptMinutesPerDay && spendTranscript(redis, id, transcriptMinutesPerDay),
      processorLeft(services, id),
      countUnfinished(redis, id),
      uploadsOf(redis, id),
      openStreams(redis, id),
      streamRequestsLeft(redis, id),
      isByDay ? readUsageDays(redis, id, span) : undefined,
    ]);
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {
    key: { id, name, scopes, instances },
    submissions: rateOf(submit),
    reads: rateOf(read),
    recordBytes: rateOf(records),
    transcriptSeconds: transcripts ? rateOf(transcripts) : null,
    processorSeconds: processor,
    unfinishedJobs: budgetOf(settings.unfinishedPerKey, unfinished),
    uploads: budgetOf(settings.uploadsPerKey, uploads.uploads),
    uploadBytes: budgetOf(settings.uploadBytesPerKey, uploads.bytes),
    eventStreams: budgetOf(settings.eventStreamsPerKey, streams),
    streamRequests: requests,
    days,
  });
}

function rateOf({ limit, remaining, resetSeconds }: RateState): RateState {
  return { limit, remaining, resetSeconds };
}

function budgetOf(limit: number, used: number): object {
  return { limit, used, remaining: Math.max(0, limit - used) };
}

/** Processor time is a debt that time pays off: a minute's worth may be open. */
async function processorLeft(
  { redis, settings: { processorPerMinute: limit } }: ApiServices,
  tenant: string,
): Promise<RateState | null> {
  if (limit === undefined) return null;
  const debtMs = Math.max(0, Number(await redis.get(processorDebtKey(tenant))) - redisNow());
  const remaining = Math.max(0, Math.floor(limit * (1 - debtMs / MINUTE_MS)));
  return { limit, remaining, resetSeconds: Math.ceil(debtMs / 1000) };
}
