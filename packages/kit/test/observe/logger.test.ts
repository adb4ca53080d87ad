/** What a log line keeps to itself. */
import { expect, it } from 'vitest';
import { createLogger } from '../../src/observe/logger.ts';

const SECRET = 'CANARY5d41402abc4b2a76b9719d911017c592';

function written(record: object): { line: string; json: { err: Record<string, unknown> } } {
  let line = '';
  createLogger('trace', {
    write: (text) => {
      line += text;
    },
  }).error(record, 'said');
  return { line, json: JSON.parse(line) };
}

const names = ['apiKey', 'apikey', 'secret', 'mediaKey', 'signature', 'password', 'token'];

it.each<[string, object]>([
  ...names.flatMap((name): [string, object][] => [
    [name, { [name]: SECRET }],
    [`${name} within`, { request: { [name]: SECRET } }],
  ]),
  ['headers', { headers: { 'x-api-key': SECRET, authorization: SECRET, cookie: SECRET, apikey: SECRET } }],
  ['headers within', { request: { headers: { 'x-api-key': SECRET, apikey: SECRET } } }],
])('%s is blanked', (_what, record) => {
  expect(written(record).line).not.toContain(SECRET);
  expect(written(record).line).toContain('[redacted]');
});

const carrying = (error: Error, more: object): Error => Object.assign(error, more);
const badUrl = (): Error => {
  try {
    return new Error(new URL(`//?${SECRET}`).href);
  } catch (error) {
    return error as Error;
  }
};

it.each([
  [
    'the command of an error of Redis',
    carrying(new Error('x'), { command: { name: 'set', args: [SECRET] } }),
  ],
  [
    'the commands of a transaction that was given up',
    carrying(new Error('EXECABORT'), { previousErrors: [{ command: { args: [SECRET] } }] }),
  ],
  ['the stanza of an error of XMPP', carrying(new Error('x'), { element: { children: [SECRET] } })],
  ['the address that cannot be read', badUrl()],
  ['all of this in a cause', new Error('x', { cause: carrying(new Error('y'), { args: [SECRET] }) })],
  ['all of this in one of several errors', new AggregateError([carrying(new Error('y'), { input: SECRET })])],
])('%s is not written', (_what, error) => {
  for (const record of [{ err: error }, { error }]) expect(written(record).line).not.toContain(SECRET);
});

it('an error tells its name, message, stack, code and causes', () => {
  const cause = carrying(new Error('no room'), { code: 'ENOSPC', syscall: 'write' });
  const { err } = written({ err: new TypeError('not written', { cause }) }).json;
  expect(err).toMatchObject({
    type: 'TypeError',
    message: 'not written',
    stack: expect.stringContaining('logger.test.ts'),
    cause: { type: 'Error', message: 'no room', code: 'ENOSPC', syscall: 'write' },
  });
});

it('an error that is its own cause is written once in a while, not for ever', () => {
  const error = new Error('again');
  error.cause = error;
  expect(written({ err: error }).line.length).toBeLessThan(20_000);
});
