import { createLogger } from 'soundpost-kit/observe/logger';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Refused } from '../src/api.ts';
import { ChatActions } from '../src/chat-actions.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function shown(answer: () => Promise<unknown> = async () => true) {
  const asked: unknown[] = [];
  const call = async (_method: string, parameters: unknown) => {
    asked.push(parameters);
    return answer();
  };
  return { asked, actions: new ChatActions({ call } as never, createLogger('silent')) };
}

it('is shown at once and renewed every 4.5 s, before its 5 s are over, until it is stopped', async () => {
  const { asked, actions } = shown();
  await actions.show(-5, 'record_voice');
  expect(asked).toEqual([{ chat_id: -5, action: 'record_voice' }]);
  await vi.advanceTimersByTimeAsync(45_000);
  expect(asked).toHaveLength(11);
  actions.stop(-5);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(11);
});

it('ends by itself soon after the longest delay', async () => {
  const { asked, actions } = shown();
  await actions.show(5, 'typing');
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked).toHaveLength(15);
});

it('is not renewed after a request to slow down, which is no error', async () => {
  const { asked, actions } = shown(async () => {
    throw new Refused(429, 'Too Many Requests: retry after 7', { retryAfterSeconds: 7 });
  });
  await actions.show(5, 'typing');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(1);
});

it('throws other refusals', async () => {
  const { actions } = shown(async () => {
    throw new Refused(403, 'Forbidden: bot was blocked by the user');
  });
  await expect(actions.show(5, 'typing')).rejects.toThrow('blocked');
});
