/** WebM: a header and clusters, with timestamps of the presentation. */
import { elementHeader, IDS, MAX_ELEMENT_HEADER_BYTES } from '../../sparse/matroska/elements.ts';
import { UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { unsupported, unusable } from '../presentation.ts';
import { copy, type Joiner, type Output, type Part, readAt } from './part.ts';

/** What a segment may begin with (RFC 9559): Cluster, or Void and Cues before one. */
const BEGINNINGS = new Set(['1f43b675', '1c53bb6b', 'ec']);

export async function beginsWithCluster(file: Part['file']): Promise<boolean> {
  const id = (await readAt(file, 0, 4)).toString('hex');
  return BEGINNINGS.has(id) || BEGINNINGS.has(id.slice(0, 2));
}

/** Up to where a segment's clusters are whole, bytes; 0 where the first is not. */
export async function wholeClusters(file: Part['file'], sizeBytes: number): Promise<number> {
  let whole = 0;
  try {
    for (let at = 0; at < sizeBytes; ) {
      const { id, headerBytes, payloadBytes } = elementHeader(
        await readAt(file, at, MAX_ELEMENT_HEADER_BYTES),
      );
      // A cluster without a length extends to the end.
      at = payloadBytes === null ? sizeBytes : at + headerBytes + payloadBytes;
      if (at > sizeBytes) break;
      if (id === IDS.cluster) whole = at;
    }
  } catch (error) {
    if (!(error instanceof UnsupportedLayout)) throw error;
  }
  return whole;
}

export class ClusterJoiner implements Joiner {
  readonly startSeconds = 0;
  #init: Uint8Array | undefined;

  async append({ segment, file, sizeBytes, init }: Part, output: Output): Promise<void> {
    if (init === undefined || !(await beginsWithCluster(file)))
      throw unusable('a segment of the stream does not begin with a WebM cluster');
    if (this.#init === undefined) await output.write(init);
    else if (segment.breaksClock || !Buffer.from(this.#init).equals(init))
      throw unsupported('WebM streams in several parts cannot be joined');
    this.#init = init;
    await copy(file, 0, sizeBytes, output);
  }
}
