/** What an answer of the Graph API means: refused for certain, later, or unknown. */
import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { CallAnswer } from 'soundpost-outbound/call';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { Graph } from '../src/graph.ts';

const connection = { phoneNumberId: '1', accessToken: 'secret-token', appSecret: 's', verifyToken: 'v' };
const plain = { retryAfterSeconds: undefined };
const fault = (status: number, code: number, more: Partial<CallAnswer> = {}): CallAnswer => ({
  ...{ ...plain, status, text: JSON.stringify({ error: { message: `(#${code}) words`, code } }) },
  ...more,
});
const page = (status: number): CallAnswer => ({ ...plain, status, text: '<html>' });

interface Asked {
  readonly error: GatewayError | undefined;
  readonly calls: number;
  readonly expired: readonly string[];
}

async function ask(outcomes: readonly (CallAnswer | Error)[], isSend = true): Promise<Asked> {
  let calls = 0;
  const expired: string[] = [];
  const graph = new Graph({
    connection,
    graphUrl: 'https://graph.example/v23.0',
    retryDelaysMs: [0, 0],
    onTokenExpired: (reason) => expired.push(reason),
    outbound: {
      async call() {
        const outcome = outcomes[Math.min(calls, outcomes.length - 1)];
        calls += 1;
        if (outcome instanceof Error || outcome === undefined) throw outcome;
        return outcome;
      },
    },
  });
  const question = {
    method: 'POST',
    path: '1/messages',
    json: {},
    answer: z.object({ id: z.string() }),
    isSend,
  } as const;
  const error = await graph.ask(question).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error !== undefined && !(error instanceof GatewayError)) throw error;
  return { error, calls, expired };
}

const reset = new OutboundFailed('reset', 'the connection broke before the end', true);
const unreachable = new OutboundFailed('connect', 'the server could not be reached', true);

it.each<[string, CallAnswer | Error, GatewayErrorCode, GatewayErrorCode]>([
  // What happened, the error of a send, the error of anything else.
  ['a connection that breaks', reset, 'timeout', 'not_connected'],
  ['nobody listens', unreachable, 'not_connected', 'not_connected'],
  ['an address that is not allowed', new OutboundRefused('private'), 'network_refused', 'network_refused'],
  ['an error of the server', fault(500, 2), 'timeout', 'network_refused'],
  ['"something went wrong"', fault(500, 131000), 'timeout', 'network_refused'],
  ['a page with 502', page(502), 'timeout', 'not_connected'],
  ['a page with 200', page(200), 'timeout', 'network_refused'],
  ['a page with 403', page(403), 'network_refused', 'network_refused'],
  ['a closed window', fault(400, 131047), 'network_refused', 'network_refused'],
  ['an unknown code with 500', fault(500, 999), 'timeout', 'network_refused'],
  ['a closed window with 500', fault(500, 131047), 'network_refused', 'network_refused'],
  ['an unknown code', fault(400, 999), 'network_refused', 'network_refused'],
])('%s', async (_, outcome, ofSend, ofOthers) => {
  expect((await ask([outcome])).error?.code).toBe(ofSend);
  expect((await ask([outcome], false)).error?.code).toBe(ofOthers);
});

it('asks again after a limit, and hands Retry-After on when it lasts', async () => {
  const limited = fault(429, 130429, { retryAfterSeconds: 17 });
  const taken: CallAnswer = { ...plain, status: 200, text: '{"id":"wamid.1"}' };
  expect(await ask([limited, taken])).toMatchObject({ error: undefined, calls: 2 });
  expect(await ask([limited])).toMatchObject({
    error: { code: 'rate_limited', retryAfterSeconds: 17 },
    calls: 3,
  });
});

it('says in a sentence what Meta refused, tells of an expired token once, and shows no token', async () => {
  const { error, expired, calls } = await ask([fault(401, 190)]);
  expect(error?.message).toContain('expired or was withdrawn');
  expect([expired, calls]).toEqual([[error?.message], 1]);
  expect((await ask([fault(400, 999)])).error?.message).toBe('WhatsApp refused: (#999) words (999)');
  expect(JSON.stringify(await ask([fault(400, 131026)]))).not.toContain('secret-token');
});
