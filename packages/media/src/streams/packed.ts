/**
 * A presentation between two processes. Its segments go in batches, which are put together one at a
 * time: 10,000 with long addresses took 0.2 s at once.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import type { Presentation, Segment } from './presentation.ts';

const AT_ONCE = 500;

export interface PackedPresentation extends Omit<Presentation, 'segments'> {
  readonly batches: readonly Uint8Array[];
}

export function packed({ segments, ...rest }: Presentation): PackedPresentation {
  const batches: Uint8Array[] = [];
  for (let at = 0; at < segments.length; at += AT_ONCE)
    batches.push(serialize(segments.slice(at, at + AT_ONCE)));
  return { ...rest, batches };
}

export async function unpacked({ batches, ...rest }: PackedPresentation): Promise<Presentation> {
  const segments: Segment[] = [];
  for (const batch of batches) {
    segments.push(...(deserialize(batch) as Segment[]));
    await nextTurn();
  }
  return { ...rest, segments };
}
