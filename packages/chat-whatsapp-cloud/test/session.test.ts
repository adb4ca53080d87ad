/** Connecting, while a caller logs the instance out. */
import { expect, it } from 'vitest';
import { CloudSession } from '../src/session.ts';

it('an answer that comes after the logout opens nothing', async () => {
  const asked = Promise.withResolvers<{ display_phone_number: string }>();
  const states: string[] = [];
  const session = new CloudSession({
    instance: { id: 'i', name: 'shop', loggedOut: false },
    connection: { phoneNumberId: '1' },
    graph: { ask: () => asked.promise },
    reports: { connectionChanged: async (_id: string, state: string) => void states.push(state) },
    closing: new AbortController().signal,
  } as never);
  await session.connect();
  await session.logout();
  asked.resolve({ display_phone_number: '+1 555-078-3881' });
  await new Promise((resolve) => setImmediate(resolve));
  expect([session.state(), states]).toEqual(['close', ['close']]);
});
