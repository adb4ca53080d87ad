/** What a command reads and writes: the process's own streams, or others that are handed in. */
import type { Readable, Writable } from 'node:stream';

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
}
