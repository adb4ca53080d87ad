// @module-tag chromium
/** The gateway's OpenAPI document as a page in a real browser. Its examples are checked by script/check. */
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { lookAtReference } from 'soundpost-testing/reference-page';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let document: Answer['body'];

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  document = (await gateway.call('GET', '/openapi.json', undefined, { apikey: '' })).body;
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const summaries = (): string[] =>
  Object.values(document.paths as Record<string, Record<string, { summary: string }>>).flatMap((item) =>
    Object.values(item).map(({ summary }) => summary),
  );

it('GET /docs is a page with every operation and error that asks nobody else, about which the browser has no complaint', async () => {
  expect(summaries().length).toBeGreaterThan(20);
  const awaited = [...summaries(), ...Object.keys(gatewayErrorCatalogue)];
  const seen = await lookAtReference(`${gateway.url}/docs`, { width: 1280, height: 900 }, awaited);
  expect(seen.complaints).toEqual([]);
  expect(seen.origins).toEqual([new URL(gateway.url).origin]);
  expect(seen.width).toBe(1280);
}, 120_000);
