/** A body from a stranger, cut off when it grows too large or comes too slowly. */
import type { Readable } from 'node:stream';
import { OutboundFailed, toBodyError } from './errors.ts';
import { discard } from './exchange.ts';

export interface BodyLimits {
  /** Counted while reading; a declared length is not believed. */
  readonly maxBytes: number;
  /** Averaged over `rateWindowMs`; unlike the idle timeout it also stops a sender that drips. */
  readonly minBytesPerSecond: number;
  readonly rateWindowMs: number;
}

/**
 * @param signal aborts the reading with its reason
 * @param isWhole whether all declared bytes were taken: what the socket says after them is no part of the body
 * @throws OutboundFailed of kind `too-large`, `too-slow`, `timeout` or `reset`
 */
export async function* limitedBody(
  body: Readable,
  limits: BodyLimits,
  signal: AbortSignal,
  isWhole: () => boolean = () => false,
): AsyncGenerator<Uint8Array> {
  const reading = { receivedBytes: 0, takenAtMs: Number.POSITIVE_INFINITY };
  const watch = watchRate(body, limits, reading);
  try {
    for await (const chunk of body) {
      reading.receivedBytes += chunk.length;
      if (reading.receivedBytes > limits.maxBytes) throw tooLarge();
      reading.takenAtMs = performance.now();
      yield chunk;
      reading.takenAtMs = Number.POSITIVE_INFINITY;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!isWhole()) throw toBodyError(error);
  } finally {
    clearInterval(watch);
    discard(body);
  }
}

export function tooLarge(): OutboundFailed {
  return new OutboundFailed('too-large', 'the file is larger than allowed', false);
}

const SAMPLES_PER_WINDOW = 10;

interface Reading {
  receivedBytes: number;
  /** Since when the reader is busy with what it was given; infinite while it waits for the sender. */
  takenAtMs: number;
}

function watchRate(body: Readable, limits: BodyLimits, reading: Reading): NodeJS.Timeout {
  let samples = [0];
  const minBytesPerWindow = (limits.minBytesPerSecond * limits.rateWindowMs) / 1_000;
  const everyMs = limits.rateWindowMs / SAMPLES_PER_WINDOW;
  return setInterval(() => {
    const now = reading.receivedBytes;
    // Nothing was asked of the sender since the last look: it is not the one that is slow.
    if (performance.now() - reading.takenAtMs >= everyMs) samples = [];
    const oldest = samples.length === SAMPLES_PER_WINDOW ? samples.shift() : undefined;
    samples.push(now);
    if (oldest !== undefined && now - oldest < minBytesPerWindow) {
      body.destroy(new OutboundFailed('too-slow', 'the server sends too slowly', true));
    }
  }, everyMs);
}
