import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Logger } from 'soundpost-base/logger';
import { expect, it } from 'vitest';
import { noticeForwarded } from '../../src/http/routes.ts';

const asked = (headers: Record<string, string>): IncomingMessage =>
  Object.assign(new IncomingMessage(new Socket()), { headers });

it.each([
  [0, 'x-forwarded-for', 1],
  [0, 'forwarded', 1],
  [0, 'x-forwarded-proto', 0],
  [1, 'x-forwarded-for', 0],
])('TRUST_PROXY=%i and %s: %i warnings, whatever follows', (trustProxy, header, warnings) => {
  const warned: string[] = [];
  const logger = { warn: (text: string) => warned.push(text) } as unknown as Logger;
  const notice = noticeForwarded(trustProxy, logger);
  notice(asked({}));
  expect(warned).toEqual([]);
  for (let nth = 0; nth < 3; nth += 1) notice(asked({ [header]: '203.0.113.7' }));
  expect(warned.length).toBe(warnings);
  for (const text of warned) expect(text).toContain('TRUST_PROXY');
});
