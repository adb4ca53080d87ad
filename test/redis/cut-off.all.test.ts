/** Who asks whether a process lives learns that its connection to Redis has ended for good while Redis is there: starting it again helps. */

import { RequestRedis } from 'soundpost-kit/redis/clients';
import { fetch } from 'soundpost-testing/http';
import { afterAll, expect, it, vi } from 'vitest';
import { useService } from '../api/api-fixture.ts';

const sent = vi.spyOn(RequestRedis.prototype, 'sendCommand');
afterAll(() => sent.mockRestore());

const service = useService({ parts: ['gateway'] });

const healths = (which: 'live' | 'ready') =>
  Promise.all(
    [service().url, service().gatewayUrl].map(async (base) => {
      const { status } = await fetch(`${base}/health/${which}`);
      return status;
    }),
  );

it('of the API and the gateway, within half a minute', async () => {
  expect(await healths('ready')).toEqual([200, 200]);
  expect(await healths('live')).toEqual([200, 200]);
  for (const client of new Set(sent.mock.contexts as RequestRedis[])) client.disconnect();
  await expect.poll(() => healths('live'), { timeout: 30_000 }).toEqual([503, 503]);
});
