/** The volumes that the service writes to. */
import { mkdir, stat } from 'node:fs/promises';
import type { Config } from '../config.ts';
import { DiskSpace } from '../storage/disk-space.ts';
import { workspacesFolder } from './places.ts';

export interface Disk {
  /** Where jobs work. */
  readonly workspaces: DiskSpace;
  /** Where results and uploads lie: the same one, unless the workspaces have a volume of their own. A bucket is never full. */
  readonly files: DiskSpace;
}

export async function openDisk(config: Config): Promise<Disk> {
  const { DATA_DIR, DISK_RESERVE_BYTES, STORAGE_URL } = config;
  await mkdir(workspacesFolder(config), { recursive: true, mode: 0o700 });
  const [ofFiles, ofWorkspaces] = await Promise.all([stat(DATA_DIR), stat(workspacesFolder(config))]);
  if (STORAGE_URL !== undefined) {
    const workspaces = new DiskSpace(workspacesFolder(config), DISK_RESERVE_BYTES);
    return { workspaces, files: new DiskSpace(DATA_DIR, 0) };
  }
  const files = new DiskSpace(DATA_DIR, DISK_RESERVE_BYTES);
  const isOne = ofFiles.dev === ofWorkspaces.dev;
  return { files, workspaces: isOne ? files : new DiskSpace(workspacesFolder(config), DISK_RESERVE_BYTES) };
}
