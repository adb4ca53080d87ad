/** The volume of DATA_DIR: whether it is writable, has room, and is persistent. */
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { shellWord } from 'soundpost-base/launcher';
import { reserveBytesOf } from 'soundpost-kit/storage/disk-space';
import { type Finding, messageOf, ok } from './check.ts';
import type { System } from './system.ts';

interface DiskFacts {
  readonly dataDir: string;
  /** DISK_RESERVE_BYTES; undefined: depends on the volume's size; 0: not checked. */
  readonly reserveBytes: number | undefined;
  /** Whether the embedded Redis stores jobs there. */
  readonly holdsRedis: boolean;
}

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** File systems by number (statfs(2)), and the risk of having data there. */
const FILE_SYSTEMS: Readonly<Record<number, { name: string; trouble?: string }>> = {
  16914836: { name: 'tmpfs', trouble: 'is in memory: everything is lost when the machine restarts' },
  2035054128: {
    name: 'overlayfs',
    trouble: 'is the container’s own layer: everything is lost with the container',
  },
  26985: { name: 'NFS', trouble: 'is on the network: when it hangs, everything hangs' },
  4283649346: { name: 'CIFS', trouble: 'is on the network: when it hangs, everything hangs' },
  4266872130: { name: 'SMB', trouble: 'is on the network: when it hangs, everything hangs' },
  61267: { name: 'ext4' },
  1481003842: { name: 'XFS' },
  2435016766: { name: 'Btrfs' },
  801189825: { name: 'ZFS' },
};

/** Virtual file systems: nobody can create a file, although root appears to have the right. */
const WITHOUT_FILES: Readonly<Record<number, string>> = {
  40864: 'proc',
  1650812274: 'sysfs',
  1667723888: 'cgroup2',
};

/** Read-only. */
export async function checkDisk(facts: DiskFacts, system: System): Promise<Finding[]> {
  const { dataDir } = facts;
  const folder = await nearestThatExists(dataDir);
  const where =
    folder === dataDir ? dataDir : `${dataDir} (does not exist yet; will be created in ${folder})`;
  try {
    if (!(await stat(folder)).isDirectory()) {
      return [elsewhere(`${folder} is not a folder`)];
    }
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const command = `${system.root}install -d -o "$(id -un)" -m 0700 ${shellWord(dataDir)}`;
    return [
      {
        verdict: 'fault',
        found: `cannot write to DATA_DIR=${where} (${messageOf(error)})`,
        remedy: 'make it writable for the user that runs the service, or choose another DATA_DIR',
        command,
      },
    ];
  }
  const { bavail, blocks, bsize, files, ffree, type } = await statfs(folder);
  const kind = FILE_SYSTEMS[type];
  const withoutFiles = WITHOUT_FILES[type];
  if (withoutFiles !== undefined) {
    return [elsewhere(`DATA_DIR=${where}: its file system (${withoutFiles}) cannot hold files`)];
  }
  return [
    room(facts, where, { freeBytes: bavail * bsize, sizeBytes: blocks * bsize, name: kind?.name }),
    ...(files > 0 && ffree === 0
      ? [
          {
            verdict: 'fault' as const,
            found: `the volume of ${folder} has no inodes left`,
            remedy: 'delete files there',
            command: `df -i ${shellWord(folder)}`,
          },
        ]
      : []),
    ...(kind?.trouble === undefined ? [] : [trouble(facts, kind.name, kind.trouble)]),
  ];
}

function elsewhere(found: string): Finding {
  return {
    verdict: 'fault',
    found,
    remedy: 'choose another DATA_DIR',
    command: 'export DATA_DIR=./data',
  };
}

function room(
  { reserveBytes, dataDir }: DiskFacts,
  where: string,
  {
    freeBytes,
    sizeBytes,
    name = 'a file system',
  }: { freeBytes: number; sizeBytes: number; name: string | undefined },
): Finding {
  const reserve = reserveBytesOf(sizeBytes, reserveBytes);
  const found = `DATA_DIR=${where}: ${sized(freeBytes)} free of ${sized(sizeBytes)} (${name}), ${sized(reserve)} reserved`;
  // The service does not check a file system without a size either.
  if (reserve === 0 || sizeBytes === 0 || freeBytes >= reserve) return ok(found);
  return {
    verdict: 'fault',
    found: `${found}: no jobs are accepted`,
    remedy: 'free some space (this lists what uses it), choose another DATA_DIR, or lower DISK_RESERVE_BYTES',
    command: `du -xh ${shellWord(dataDir)} | sort -h | tail`,
  };
}

function trouble({ holdsRedis }: DiskFacts, name: string, what: string): Finding {
  return {
    verdict: 'warning',
    found: `its file system (${name}) ${what}${holdsRedis ? ', jobs and API keys included' : ''}`,
    remedy: 'set DATA_DIR to a folder on a local disk, or in a container on a volume',
    command: 'export DATA_DIR=/var/lib/soundpost',
  };
}

async function nearestThatExists(folder: string): Promise<string> {
  const isThere = await stat(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  );
  return isThere || dirname(folder) === folder ? folder : nearestThatExists(dirname(folder));
}

function sized(bytes: number): string {
  return bytes < GIB ? `${Math.floor(bytes / MIB)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;
}
