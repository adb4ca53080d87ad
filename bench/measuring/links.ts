/** Starts {@link file://./link.ts} in a thread of its own. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { inputFolder } from './inputs.ts';
import type { LinkCount, LinkReady, LinkSettings } from './link.ts';

export interface Link {
  /** Of a file in the folder of inputs. */
  url(name: string): string;
  /** For OUTBOUND_ALLOW. */
  readonly allow: string;
  count(): Promise<LinkCount>;
  close(): Promise<void>;
}

export async function openLink(settings: Omit<LinkSettings, 'folder'>): Promise<Link> {
  const worker = new Worker(new URL('./link.ts', import.meta.url), {
    workerData: { ...settings, folder: inputFolder } satisfies LinkSettings,
  });
  const [{ allow }] = (await once(worker, 'message')) as [LinkReady];
  return {
    url: (name) => `http://${allow}/${name}`,
    allow,
    async count() {
      worker.postMessage('count');
      const [count] = (await once(worker, 'message')) as [LinkCount];
      return count;
    },
    async close() {
      await worker.terminate();
    },
  };
}
