/** A temporary folder, removed with its process unless that is killed. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

const open = new Set<string>();
// For an immediate exit, such as after a second Ctrl-C.
process.once('exit', () => {
  // A tool that is ending may still write, so retry.
  for (const path of open) rmSync(path, { recursive: true, force: true, maxRetries: 10 });
});

/** Mode 0700, in TMPDIR or else /tmp. */
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
