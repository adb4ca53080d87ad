/** WebM: a header and clusters, whose timestamps are those of the presentation. */
import { unsupported, unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';

/** What a segment may begin with (RFC 9559): Cluster, or Void and Cues before one. */
const BEGINNINGS = new Set(['1f43b675', '1c53bb6b', 'ec']);

export class ClusterJoiner implements Joiner {
  readonly startSeconds = 0;
  #init: Uint8Array | undefined;

  async append({ segment, file, sizeBytes, init }: Part, output: Output): Promise<void> {
    const id = (await readAt(file, 0, 4)).toString('hex');
    if (init === undefined || !(BEGINNINGS.has(id) || BEGINNINGS.has(id.slice(0, 2))))
      throw unusable('a segment of the stream does not begin with a cluster of WebM');
    if (this.#init === undefined) await output.write(init);
    else if (segment.breaksClock || !Buffer.from(this.#init).equals(init))
      throw unsupported('streams of WebM in several parts cannot be put together');
    this.#init = init;
    await copy(file, 0, sizeBytes, output);
  }
}
