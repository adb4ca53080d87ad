import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveWithin, systemResolver } from '../src/connector.ts';
import { OutboundFailed } from '../src/errors.ts';

/** What the name server says to a question: addresses, a response code (RFC 1035 §4.1.1), or nothing at all. */
type DnsAnswer = readonly string[] | number | 'silence';

const SERVFAIL = 2;
const NXDOMAIN = 3;

/** A real name server on loopback that knows two answers, one for A and one for AAAA. */
let server: Socket;
let answers: { a: DnsAnswer; aaaa: DnsAnswer };
let questions: number;

beforeEach(async () => {
  questions = 0;
  server = createSocket('udp4');
  server.on('message', (query, sender) => {
    questions++;
    const reply = replyTo(query);
    if (reply !== undefined) server.send(reply, sender.port, sender.address);
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise<void>((resolve) => server.close(() => resolve())));

/** RFC 1035 §4: the header, the question as it came, and one record an address. */
function replyTo(query: Buffer): Buffer | undefined {
  let end = 12;
  while (query[end] !== 0) end += (query[end] ?? 0) + 1;
  const question = query.subarray(12, end + 5);
  const type = query.readUInt16BE(end + 1);
  const answer = type === 1 ? answers.a : answers.aaaa;
  if (answer === 'silence') return undefined;
  const addresses = typeof answer === 'number' ? [] : answer;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  return Buffer.concat([header, question, ...addresses.map((address) => record(type, address))]);
}

function record(type: number, address: string): Buffer {
  const data = isIPv6(address)
    ? Buffer.from(
        address
          .split(':')
          .map((group) => group.padStart(4, '0'))
          .join(''),
        'hex',
      )
    : Buffer.from(address.split('.').map(Number));
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 1, 0, data.length]);
  return Buffer.concat([head, data]);
}

/** Two tries take three seconds; the deadline is the business of one test. */
function resolveName(deadlineMs = 60_000, signal?: AbortSignal): Promise<readonly string[]> {
  const resolver = systemResolver(new Set(), [`127.0.0.1:${server.address().port}`]);
  return resolveWithin(resolver, 'media.example', deadlineMs, signal);
}

async function failureOf(resolving: Promise<unknown>): Promise<unknown> {
  const error = await resolving.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OutboundFailed);
  expect(error).toMatchObject({ kind: 'dns', message: 'the server could not be reached' });
  return error;
}

test('a name has all its addresses of both kinds', async () => {
  answers = { a: ['93.184.215.14', '10.0.0.1'], aaaa: ['2001:db8:1:2:3:4:5:6'] };
  expect(await resolveName()).toEqual(['93.184.215.14', '10.0.0.1', '2001:db8:1:2:3:4:5:6']);
});

test.each([
  ['no AAAA record', { a: ['93.184.215.14'], aaaa: [] }, ['93.184.215.14']],
  ['no A record', { a: [], aaaa: ['2001:db8:1:2:3:4:5:6'] }, ['2001:db8:1:2:3:4:5:6']],
  ['a name server that fails on AAAA', { a: ['93.184.215.14'], aaaa: SERVFAIL }, ['93.184.215.14']],
  ['a name server that is silent on AAAA', { a: ['93.184.215.14'], aaaa: 'silence' }, ['93.184.215.14']],
] as [string, typeof answers, string[]][])(
  'a name with %s has the other addresses',
  async (_what, given, addresses) => {
    answers = given;
    expect(await resolveName()).toEqual(addresses);
  },
);

test.each([
  ['does not exist', { a: NXDOMAIN, aaaa: NXDOMAIN }, false],
  ['has no address', { a: [], aaaa: [] }, false],
  ['cannot be asked for', { a: SERVFAIL, aaaa: SERVFAIL }, true],
  ['can be asked for in part', { a: SERVFAIL, aaaa: [] }, true],
] as [string, typeof answers, boolean][])('a name that %s fails', async (_what, given, retryable) => {
  answers = given;
  expect(await failureOf(resolveName())).toMatchObject({ retryable });
});

test('a silent name server is left at the deadline', async () => {
  answers = { a: 'silence', aaaa: 'silence' };
  expect(await failureOf(resolveName(50))).toMatchObject({ retryable: true });
  expect(questions).toBeLessThanOrEqual(2);
});

test('a name of an allow rule is not asked of DNS', async () => {
  answers = { a: ['93.184.215.14'], aaaa: [] };
  const resolver = systemResolver(new Set(['localhost']), [`127.0.0.1:${server.address().port}`]);
  expect(await resolveWithin(resolver, 'localhost', 60_000)).toContain('127.0.0.1');
  expect(questions).toBe(0);
});
