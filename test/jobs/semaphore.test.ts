/** Room that is shared: how much, in which order, and what a change of mind does. */
import { expect, it } from 'vitest';
import { Semaphore, type SemaphoreRequest } from '../../src/jobs/semaphore.ts';

const never = new AbortController().signal;

/** Asks for room under a name; `inside` tells who has it. */
function room(capacity: number, beyond = 0) {
  const semaphore = new Semaphore(capacity, beyond);
  const inside: string[] = [];
  return {
    semaphore,
    inside,
    async enter(name: string, wish: Partial<SemaphoreRequest> = {}): Promise<() => void> {
      const leave = await semaphore.acquire({ signal: never, ...wish });
      inside.push(name);
      return leave;
    },
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

it('lets in as many as there is room for, and the next when one leaves', async () => {
  const { enter, inside } = room(2);
  const leave = await enter('a');
  await enter('b');
  const c = enter('c');
  await settled();
  expect(inside).toEqual(['a', 'b']);
  leave();
  await c;
  expect(inside).toEqual(['a', 'b', 'c']);
});

it('a second leaving makes no second room', async () => {
  const { enter, inside } = room(1);
  const leave = await enter('a');
  leave();
  leave();
  await enter('b');
  enter('c').catch(() => undefined);
  await settled();
  expect(inside).toEqual(['a', 'b']);
});

it('lets in by order, and of one order who asked first', async () => {
  const { enter, inside } = room(1);
  const leave = await enter('first');
  const later = ['d', 'e'].map((name) => enter(name, { order: 7 }));
  const sooner = ['b', 'c'].map((name) => enter(name, { order: 3 }));
  leave();
  for (const waiting of [...sooner, ...later]) (await waiting)();
  expect(inside).toEqual(['first', 'b', 'c', 'd', 'e']);
});

it('who needs all of it waits for the last to leave, and nobody overtakes', async () => {
  const { enter, inside } = room(3);
  const leaveA = await enter('a');
  const leaveB = await enter('b');
  const whole = enter('whole', { weight: 3 });
  const after = enter('after');
  leaveA();
  await settled();
  expect(inside).toEqual(['a', 'b']);
  leaveB();
  const leaveWhole = await whole;
  await settled();
  expect(inside).toEqual(['a', 'b', 'whole']);
  leaveWhole();
  await after;
});

it('a weight above the capacity means all of it', async () => {
  const { enter, inside } = room(2);
  await enter('a', { weight: 9 });
  expect(inside).toEqual(['a']);
});

it('who gives up gets the reason, and those behind come forward', async () => {
  const { enter, inside } = room(2);
  await enter('a');
  const giving = new AbortController();
  const whole = enter('whole', { weight: 2, signal: giving.signal });
  const after = enter('after');
  giving.abort(new Error('no longer wanted'));
  await expect(whole).rejects.toThrow('no longer wanted');
  await after;
  expect(inside).toEqual(['a', 'after']);
});

it('an abort after the entrance changes nothing, one before it is obeyed', async () => {
  const { enter, inside } = room(1);
  const controller = new AbortController();
  const leave = await enter('a', { signal: controller.signal });
  controller.abort(new Error('too late'));
  leave();
  await enter('b');
  expect(inside).toEqual(['a', 'b']);
  await expect(enter('c', { signal: controller.signal })).rejects.toThrow('too late');
});

it('what is free can be taken without waiting, and is given back once', async () => {
  const { semaphore, enter, inside } = room(3);
  await enter('a');
  expect(semaphore.takeFree(9, 2).weight).toBe(0);
  const taken = semaphore.takeFree(9);
  expect(taken.weight).toBe(2);
  expect(semaphore.takeFree(1).weight).toBe(0);
  const b = enter('b');
  const c = enter('c');
  const d = enter('d');
  await settled();
  expect(inside).toEqual(['a']);
  taken.release();
  taken.release();
  await Promise.all([b, c]);
  await settled();
  expect(inside).toEqual(['a', 'b', 'c']);
  d.catch(() => undefined);
});

it('what somebody waits for is not free', async () => {
  const { semaphore, enter } = room(2);
  await enter('a');
  enter('whole', { weight: 2 }).catch(() => undefined);
  expect(semaphore.takeFree(1).weight).toBe(0);
});

it('lets in a key below its share first, whatever the order', async () => {
  const { enter, inside } = room(2);
  const leave = await enter('a1', { key: 'a', order: 1 });
  await enter('a2', { key: 'a', order: 2 });
  const a3 = enter('a3', { key: 'a', order: 3 });
  const b1 = enter('b1', { key: 'b', order: 9 });
  leave();
  await b1;
  expect(inside).toEqual(['a1', 'a2', 'b1']);
  a3.catch(() => undefined);
});

it('goes by the order among keys below their share, and lets a key alone have all', async () => {
  const { enter, inside } = room(4);
  const leave = await enter('whole', { weight: 4 });
  const asked = [
    enter('b1', { key: 'b', order: 2 }),
    enter('b2', { key: 'b', order: 3 }),
    enter('a1', { key: 'a', order: 1 }),
    enter('b3', { key: 'b', order: 4 }),
  ];
  leave();
  await Promise.all(asked);
  expect(inside).toEqual(['whole', 'a1', 'b1', 'b2', 'b3']);
});

it('forgets a key that has left', async () => {
  const { semaphore, enter, inside } = room(4);
  for (const key of ['b', 'c']) (await enter(key, { key }))();
  await enter('a1', { key: 'a' });
  const others = semaphore.takeFree(3);
  // The share of two keys is two, of four it would be one.
  const asked = [enter('a2', { key: 'a', order: 1 }), enter('d1', { key: 'd', order: 2 })];
  others.release();
  await Promise.all(asked);
  expect(inside).toEqual(['b', 'c', 'a1', 'a2', 'd1']);
});

it('lets in a key that holds none beyond its capacity, up to a limit, and nobody else until that has evened out', async () => {
  const { semaphore, enter, inside } = room(2, 2);
  const leaves = [];
  for (const name of ['a1', 'a2']) leaves.push(await enter(name, { key: 'a' }));
  const a3 = enter('a3', { key: 'a', order: 1 });
  const leaveB = await enter('b1', { key: 'b', order: 2 });
  const b2 = enter('b2', { key: 'b', order: 2 });
  await enter('c1', { key: 'c', order: 3 });
  const d1 = enter('d1', { key: 'd', order: 4 });
  await settled();
  expect(inside).toEqual(['a1', 'a2', 'b1', 'c1']);
  expect([semaphore.free, semaphore.takeFree(1).weight]).toEqual([0, 0]);
  leaves[0]?.();
  await d1;
  leaveB();
  await b2;
  leaves[1]?.();
  await a3;
  expect(inside).toEqual(['a1', 'a2', 'b1', 'c1', 'd1', 'b2', 'a3']);
});
