/** A hundred voice messages over the Cloud API, with statuses that come twice and out of order. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../gateway-fixture.ts';
import { ada, type CloudUnderTest, hedy, startCloud } from './cloud-fixture.ts';

const MESSAGES = 100;
/** An instance sends one after the other, and on a busy machine more would wait for a minute. */
const AT_ONCE = 10;

let cloud: CloudUnderTest;

beforeAll(async () => {
  cloud = await startCloud();
});
afterAll(() => cloud.close());

it('all of them arrive once and become PLAYED', { timeout: 300_000 }, async () => {
  cloud.graph.follow = ['delivered', 'sent', 'played', 'read', 'played'];
  const answers: Answer[] = [];
  while (answers.length < MESSAGES) {
    const some = Array.from({ length: AT_ONCE }, (_, nth) => cloud.voice(nth % 2 ? ada.number : hedy.number));
    answers.push(...(await Promise.all(some)));
  }
  expect(answers.map(({ status }) => status)).toEqual(Array(MESSAGES).fill(200));
  const ids = answers.map(({ body }) => String(body.key.id));
  const marks = cloud.graph.taken.map(({ body }) => String(body.biz_opaque_callback_data));
  expect(marks.toSorted()).toEqual(ids.toSorted());
  for (const id of ids) {
    await cloud.event(
      `${id} is played`,
      ({ event, data }) => event === 'messages.update' && data.key.id === id && data.status === 'PLAYED',
    );
  }
});
