/** Something small from a stranger, read into memory. */
import { deadline } from 'soundpost-base/deadline';
import { OutboundFailed } from './errors.ts';
import { discard, get, type Route, refuseEncoded, statusFailure } from './exchange.ts';
import { limitedBody } from './limited-body.ts';

export interface FetchBytesOptions {
  readonly url: string;
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

const TIMEOUT_MS = 60_000;
const limits = {
  headersTimeoutMs: 15_000,
  idleTimeoutMs: 20_000,
  minBytesPerSecond: 1_024,
  rateWindowMs: 10_000,
};

/** One try. @throws OutboundRefused, OutboundFailed; the reason of `signal` when that aborts */
export async function fetchBytes(
  route: Route,
  { url, maxBytes, signal }: FetchBytesOptions,
): Promise<Uint8Array> {
  const reason = () => new OutboundFailed('timeout', 'the server took too long', true);
  using limit = deadline(TIMEOUT_MS, { signal, reason });
  const answer = await get(route, { ...limits, url, headers: {}, signal: limit.signal });
  try {
    if (answer.status !== 200) throw statusFailure(answer);
    refuseEncoded(answer.headers);
  } catch (error) {
    discard(answer.body);
    throw error;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of limitedBody(answer.body, { ...limits, maxBytes }, limit.signal))
    chunks.push(chunk);
  return Buffer.concat(chunks);
}
