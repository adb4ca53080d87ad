/** Messages between this process and the reader process. */
import { MediaFailure } from '../failure.ts';
import { UnsupportedLayout } from '../sparse/mp4/boxes.ts';
import type { ByteSource } from '../sparse/mp4/top-level.ts';
import { CutOff } from '../streams/presentation.ts';
import type { tasks } from './tasks.ts';

export type Kind = keyof typeof tasks;

/** What changes of a source while it is read. */
export type SourceState = Pick<ByteSource, 'sizeBytes' | 'roundTripBytes' | 'rangeBytes'>;

/** Each gets one {@link Reply}: the time between them is the time of one task. */
export type Order = { readonly id: number; readonly source?: SourceState } & (
  | { readonly kind: Kind; readonly input: unknown }
  /** The bytes read from the source; undefined if reading them is not worth it. */
  | { readonly read: unknown }
  /** Nobody waits for it any more. */
  | { readonly forget: true }
);

export type Reply = {
  /** On processors, since the last reply. */
  readonly processorSeconds: number;
} & (
  | { readonly ended: unknown }
  | { readonly failed: Failure }
  /** Bytes of the source. */
  | { readonly wants: Want }
);

/**
 * Before each serialized reply: its length, a 32-bit integer. Replies come by a pipe, because Node
 * copies a message of its own channel with each 64 KiB: half a second for 16 MiB.
 */
export const REPLY_HEAD_BYTES = 4;

export type Want =
  | { readonly from: 'read'; readonly start: number; readonly end: number }
  | { readonly from: 'readEach'; readonly spans: Parameters<ByteSource['readEach']>[0] };

type Failure =
  | { readonly name: 'MediaFailure'; readonly code: MediaFailure['code']; readonly details: string }
  | { readonly name: string; readonly message: string };

export function failureOf(error: unknown): Failure {
  if (error instanceof MediaFailure) {
    const { code, details } = error;
    return { name: 'MediaFailure', code, details };
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name: error instanceof CutOff ? 'CutOff' : name, message };
}

export function errorOf(failure: Failure): Error {
  if ('code' in failure) return new MediaFailure(failure.code, failure.details);
  const { name, message } = failure;
  if (name === 'CutOff') return new CutOff(message);
  if (name === 'UnsupportedLayout') return new UnsupportedLayout(message);
  return name === 'RangeError' ? new RangeError(message) : new Error(`${name}: ${message}`);
}
