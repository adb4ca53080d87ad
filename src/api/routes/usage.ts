/** GET /v1/usage: what the key used and may use (decisions A4, A6). */
import { Usage } from 'soundpost-contract/answers';
import { lookAtRate, type RateState } from 'soundpost-kit/redis/rate';
import { unfinishedIds } from '../../jobs/job-index.ts';
import { uploadsOf } from '../../jobs/uploads/record.ts';
import { sendData } from '../answer.ts';
import { openStreams } from '../event-streams.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';

export const usageRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/usage',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'getUsage',
      summary: 'What the key used and may use',
      tag: 'Service',
      answers: { 200: { description: 'The key, its rates, and what it has at the moment', data: Usage } },
      errors: [],
    },
    handle: usage,
  },
];

async function usage(context: RouteContext): Promise<void> {
  const { response, services } = context;
  const { id, name, scopes, instances } = keyOf(context);
  const { redis, settings, jobs } = services;
  const [submit, read, ids, uploads, streams] = await Promise.all([
    lookAtRate(redis, 'submit', id, settings.submitPerMinute),
    lookAtRate(redis, 'read', id, settings.readPerMinute),
    unfinishedIds(redis, id),
    uploadsOf(redis, id),
    openStreams(redis, id),
  ]);
  const unfinished = (await jobs.readMany(ids)).filter(({ finishedAtMs }) => finishedAtMs === null);
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {
    key: { id, name, scopes, instances },
    submissions: rateOf(submit),
    reads: rateOf(read),
    unfinishedJobs: { limit: settings.unfinishedPerKey, used: unfinished.length },
    uploads: { limit: settings.uploadsPerKey, used: uploads.uploads },
    uploadBytes: { limit: settings.uploadBytesPerKey, used: uploads.bytes },
    eventStreams: { limit: settings.eventStreamsPerKey, used: streams },
  });
}

function rateOf({ limit, remaining, resetSeconds }: RateState): object {
  return { limit, remaining, resetSeconds };
}
