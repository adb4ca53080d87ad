/** The process that reads strangers' descriptions for its parent (reader.ts); ends with it. */
import { serialize } from 'node:v8';
import type { ByteSource } from '../sparse/mp4/top-level.ts';
import {
  failureOf,
  type Order,
  REPLY_HEAD_BYTES,
  type Reply,
  type SourceState,
  type Want,
} from './messages.ts';
import { tasks } from './tasks.ts';

/** By the id of the task that waits for what it wants to read. */
const waiting = new Map<number, PromiseWithResolvers<unknown>>();
const sources = new Map<number, SourceState>();

let used = process.cpuUsage();

type Said<One> = One extends unknown ? Omit<One, 'processorSeconds'> : never;

function reply(said: Said<Reply>): void {
  const { user, system } = process.cpuUsage(used);
  used = process.cpuUsage();
  const bytes = serialize({ ...said, processorSeconds: (user + system) / 1e6 });
  const head = Buffer.alloc(REPLY_HEAD_BYTES);
  head.writeUInt32BE(bytes.length);
  process.stdout.write(head);
  process.stdout.write(bytes);
}

async function begin(id: number, kind: keyof typeof tasks, input: unknown): Promise<void> {
  const task = tasks[kind] as (input: unknown, source: ByteSource) => Promise<unknown>;
  try {
    reply({ ended: await task(input, sourceOf(id)) });
  } catch (error) {
    reply({ failed: failureOf(error) });
  } finally {
    sources.delete(id);
  }
}

/** Asks the parent for each read. One at a time, as all readers do. */
function sourceOf(id: number): ByteSource {
  const state = (): SourceState => sources.get(id) ?? { sizeBytes: 0, roundTripBytes: 0, rangeBytes: 0 };
  const ask = (wants: Want): Promise<unknown> => {
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    reply({ wants });
    return answer.promise;
  };
  return {
    get sizeBytes() {
      return state().sizeBytes;
    },
    get roundTripBytes() {
      return state().roundTripBytes;
    },
    get rangeBytes() {
      return state().rangeBytes;
    },
    read: (start, end) => ask({ from: 'read', start, end }) as Promise<Uint8Array>,
    readEach: (spans) => ask({ from: 'readEach', spans }) as Promise<Uint8Array[] | undefined>,
  };
}

process.on('message', (order: Order) => {
  const { id, source } = order;
  if (source !== undefined) sources.set(id, source);
  if ('kind' in order) {
    void begin(id, order.kind, order.input);
    return;
  }
  const wanted = waiting.get(id);
  waiting.delete(id);
  if ('read' in order) wanted?.resolve(order.read);
  else if (wanted !== undefined) wanted.reject(new Error('nobody waits for it any more'));
  else reply({ ended: undefined });
});
process.on('disconnect', () => process.exit());
