/**
 * Every command that a route of the table sends to Redis is in the budget of its request, so that a Redis that hangs, at whichever command, is waited for once (packages/kit/test/redis/request-budget.test.ts).
 * The gateway's routes: test/gateway/authorisation.test.ts.
 */
import { commandsOfRequests } from 'soundpost-testing/commands-of-requests';
import { expect, it } from 'vitest';
import { useClips, useService } from './api-fixture.ts';
import { makeSubjects, routeRequests } from './route-requests.ts';

const clip = useClips('tone.mp4');
const service = useService();
/** Probes of Redis and its clock, the worker's beats and looks, and its count of what waits. */
const background = /^(exists|time|set|ping) |sp:written|sp:workers|:active|^evalsha \{soundpost\}:extract:$/;

it('A6. each route waits for Redis once', async () => {
  const subjects = await makeSubjects(service(), clip('tone.mp4'));
  const requests = await routeRequests(subjects);
  const counted = commandsOfRequests();
  try {
    for (const { method, path, ask } of requests) {
      if (!path.endsWith('/events')) await service().call(method, path, ask);
    }
  } finally {
    counted.stop();
    subjects.letGo();
  }
  expect(counted.ofRequests).toBeGreaterThan(requests.length);
  expect(counted.requests).toBeGreaterThanOrEqual(requests.length - 2);
  expect([...counted.others].filter((command) => !background.test(command))).toEqual([]);
});
