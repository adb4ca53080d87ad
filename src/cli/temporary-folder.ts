/** A folder for the moment, gone with the process that made it, unless that is killed. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

const open = new Set<string>();
// An end that waits for nothing, such as a second Ctrl-C's.
process.once('exit', () => {
  // A tool that is ending may still write: then once more.
  for (const path of open) rmSync(path, { recursive: true, force: true, maxRetries: 10 });
});

/** Mode 0700, where TMPDIR says, else in /tmp. */
export async function temporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), 'soundpost-'));
  open.add(path);
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true });
      open.delete(path);
    },
  };
}
