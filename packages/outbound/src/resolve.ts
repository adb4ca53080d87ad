/** From a host name to its addresses, within a deadline. */
import { promises as dns } from 'node:dns';
import { within } from 'soundpost-base/deadline';
import { OutboundFailed } from './errors.ts';

/** All addresses of a name. `signal` aborts at the deadline. */
type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Codes by which DNS says that the name has no address; any other failure may pass. */
const noSuchName = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * Asks DNS directly, so that the hosts file and local name services have no say, and so that name servers which never
 * answer hold nobody up: Node runs two `dns.lookup` at a time in a process (half of libuv's threads), and each waits 10 s
 * or more for such a server. Only the names that the operator's own rules hold go through the system's `lookup`,
 * because they may well stand in a hosts file.
 * @param servers addresses of name servers, each with an optional port; default: the system's
 */
export function systemResolver(ruleHosts: ReadonlySet<string>, servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    if (ruleHosts.has(hostname)) {
      return (await dns.lookup(hostname, { all: true })).map(({ address }) => address);
    }
    // Both tries (1 s, then 2 s) fit into the deadline at connect: a server that drops AAAA questions leaves time for A.
    const resolver = new dns.Resolver({ timeout: 1_000, tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel);
    try {
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const addresses = [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      if (addresses.length > 0) return addresses;
      throw firstReason([v4, v6]);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** The reason that may pass, if there is one: a name is only gone when both questions say so. */
function firstReason(answers: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  return reasons.find((reason) => !noSuchName.has(reason?.code)) ?? reasons[0];
}

/** @throws OutboundFailed of kind `dns`, retryable unless the name does not exist; an aborted `signal` is its cause. */
export async function resolveWithin(
  resolve: Resolve,
  hostname: string,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  signal?.throwIfAborted();
  const reason = () => new Error('no answer in time');
  try {
    const ask = (giveUp: AbortSignal) => resolve(hostname, giveUp);
    const addresses = await within(deadlineMs, ask, { signal, reason });
    if (addresses.length === 0) throw Object.assign(new Error('empty answer'), { code: 'ENODATA' });
    return addresses;
  } catch (cause) {
    const gone = cause instanceof Error && 'code' in cause && noSuchName.has(String(cause.code));
    throw new OutboundFailed('dns', 'the server could not be reached', !gone, { cause });
  }
}
