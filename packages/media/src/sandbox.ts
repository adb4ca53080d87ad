/** What ffmpeg and ffprobe may reach and use up while they read a stranger's file (decision 33). */
import { resolve } from 'node:path';

/**
 * - `bubblewrap`: no network, no files but the tool's own, the run's input and its outputs, no other process, and few system calls (seccomp.ts);
 * - `landlock`: the same by Landlock and the same system calls, in no process but the tool's own (start.c), but among the machine's processes;
 * - `none`: only the rules on demuxers and protocols.
 */
export const sandboxLevels = ['bubblewrap', 'landlock', 'none'] as const;
export type SandboxLevel = (typeof sandboxLevels)[number];

export interface Sandbox {
  readonly level: SandboxLevel;
  /** Whether {@link ResourceLimits} hold: the starter sets them, or util-linux's prlimit. */
  readonly hasLimits: boolean;
  /** Whether the system's programs and libraries are shown, for a tool that is linked with them. */
  readonly showsSystem: boolean;
}

/** What a run has to reach; everything else is out of its sight. */
export interface FileAccess {
  readonly reads: readonly string[];
  /** Files, which exist: nothing else can be made. */
  readonly writes: readonly string[];
}

interface ResourceLimits {
  /** Heap, stacks and other private memory. Code of shared libraries, about 50 MB of ffmpeg's, comes on top. */
  readonly memoryBytes: number;
  /** Time on processors, of all threads together. */
  readonly cpuSeconds: number;
  /** How long each of the files may become that are written. */
  readonly fileBytes: number;
}

/** Most of what one run needs is 310 MB, for a frame of 8K with alpha; with its libraries a run stays under 512 MiB. */
export const MEMORY_BYTES = 448 * 1024 * 1024;

/** ffmpeg holds up to ten: input, metadata, outputs, pipes. */
const OPEN_FILES = 64;

/** Between the signal that ffmpeg ends tidily on, and the one that it cannot refuse. */
const CPU_GRACE_SECONDS = 5;

/** Where programs and their libraries lie; what a system does not have is left out. */
const SYSTEM_FOLDERS = [
  '/usr',
  '/lib',
  '/lib64',
  '/bin',
  '/etc/ld.so.cache',
  // Debian chooses among libraries (BLAS, which ffmpeg's filters need) by links here.
  '/etc/alternatives',
  '/nix/store',
];

const DEVICES = ['/dev/null', '/dev/urandom'];

/** Who the tool is inside: nobody, also where the service runs as root. */
const NOBODY = '65534';

/** Of the tool's descriptors, the one that its sandbox reads the filter from. */
export const FILTER_DESCRIPTOR = 5;

/** Each with its name of prlimit(1), where the tool is told by a signal, and where it ends. */
export function limitRows({
  memoryBytes,
  cpuSeconds,
  fileBytes,
}: ResourceLimits): readonly (readonly [name: string, soft: number, hard: number])[] {
  const cpu = Math.ceil(cpuSeconds);
  return [
    // Not the address space: 0.4 GB of that is libraries, whose size differs from build to build.
    ['data', memoryBytes, memoryBytes],
    ['cpu', cpu, cpu + CPU_GRACE_SECONDS],
    ['fsize', fileBytes, fileBytes],
    ['nofile', OPEN_FILES, OPEN_FILES],
    ['core', 0, 0],
  ];
}

/** Command prefix that sets limits. */
export function prlimit(limits: ResourceLimits): string[] {
  return ['prlimit', ...limitRows(limits).map(([name, soft, hard]) => `--${name}=${soft}:${hard}`), '--'];
}

/** Command prefix of the level `bubblewrap`. @param tool absolute, for it may lie outside of the system's folders */
export function bubblewrap(tool: string, { reads, writes }: FileAccess, showsSystem: boolean): string[] {
  return [
    'bwrap',
    ...['--unshare-all', '--unshare-user', '--uid', NOBODY, '--gid', NOBODY],
    ...['--die-with-parent', '--cap-drop', 'ALL', '--seccomp', String(FILTER_DESCRIPTOR)],
    ...(showsSystem ? SYSTEM_FOLDERS : []).flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
    // One that is not there is missed when it is to start, and not blamed on the input.
    ...['--ro-bind-try', tool, tool],
    ...absolute(writes).flatMap((path) => ['--bind', path, path]),
    ...absolute(reads).flatMap((path) => ['--ro-bind', path, path]),
    ...['--remount-ro', '/', '--chdir', '/', '--'],
  ];
}

/** What a tool sees at the level `landlock`, besides its own program. */
export function seenByLandlock({ reads, writes }: FileAccess, showsSystem: boolean): FileAccess {
  return {
    reads: [...(showsSystem ? SYSTEM_FOLDERS : []), ...DEVICES, ...absolute(reads)],
    writes: absolute(writes),
  };
}

function absolute(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => resolve(path)))];
}
