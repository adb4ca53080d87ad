/**
 * A volume whose server does not answer any more, as a network file system hangs: a FUSE mount over a folder, behind which nobody reads.
 * Whatever touches the folder waits in the kernel until the volume is let go.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Hides the folder behind a hanging volume; throws where this machine does not let us. @returns what ends it */
export function hangVolume(folder: string): () => void {
  const device = openSync('/dev/fuse', 'r+');
  const { status, stderr } = spawnSync(
    'mount',
    // -i: without the programs of the package fuse3, which would start a server.
    ['-i', '-t', 'fuse', '-o', 'fd=3,rootmode=40000,user_id=0,group_id=0', 'hanging', folder],
    { stdio: ['ignore', 'ignore', 'pipe', device], encoding: 'utf8' },
  );
  if (status !== 0) {
    closeSync(device);
    throw new Error(`no volume could be mounted over ${folder}: ${stderr}`);
  }
  return () => {
    // Closing the device fails everything that waits, with ENOTCONN; then the folder itself is there again.
    closeSync(device);
    spawnSync('umount', ['-l', folder]);
  };
}

/** Why this machine does not let us; only the administrator may mount, and in few containers. */
export function whyNoHangingVolumes(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'soundpost-hang-'));
  try {
    hangVolume(folder)();
    return undefined;
  } catch {
    return 'they mount a volume that hangs, which takes root and /dev/fuse';
  } finally {
    rmdirSync(folder);
  }
}
