/** What ffmpeg and ffprobe may reach and use up while they read a stranger's file (decision 33). */
import { resolve } from 'node:path';

/**
 * - `bubblewrap`: no network, few files (tool, input, outputs), no other process, few calls
 * (seccomp.ts);
 * - `landlock`: the same by Landlock (start.c), but among the machine's processes;
 * - `none`: only the rules on demuxers and protocols.
 */
export const sandboxLevels = ['bubblewrap', 'landlock', 'none'] as const;
export type SandboxLevel = (typeof sandboxLevels)[number];

export interface Sandbox {
  readonly level: SandboxLevel;
  /** Whether {@link ResourceLimits} hold: set by the starter, or by util-linux's prlimit. */
  readonly hasLimits: boolean;
  /** Whether the system's programs and libraries are shown, for a tool that is linked with them. */
  readonly showsSystem: boolean;
}

/** What a run needs to reach; everything else is hidden. */
export interface FileAccess {
  readonly reads: readonly string[];
  /** Existing files: no others can be created. */
  readonly writes: readonly string[];
}

interface ResourceLimits {
  /** Heap, stacks and other private memory; not the code of shared libraries, about 50 MB. */
  readonly memoryBytes: number;
  /** Time on processors, of all threads together. */
  readonly cpuSeconds: number;
  /** How long each written file may become. */
  readonly fileBytes: number;
}

/**
 * The largest need is 310 MB, for an 8K frame with alpha; with libraries it is below 512 MiB.
 * ffmpeg 7.1 takes 28 MiB for one output, 65 for 8, 170 for 32.
 */
export const MEMORY_BYTES = 448 * 1024 * 1024;

/**
 * Of each thread, counted as a whole. ffmpeg has two threads an output since 7.0: with the usual
 * 8 MiB, 32 outputs took 653 MiB. Arguments may take a quarter of it (execve(2)), of 32 outputs
 * 45 KB.
 */
const STACK_BYTES = 1024 * 1024;

/** 32 outputs, each with a file of tags, and ten more: the input, pipes. */
const OPEN_FILES = 128;

/** Between the signal that ffmpeg handles and SIGKILL. */
const CPU_GRACE_SECONDS = 5;

/** Where programs and their libraries are; missing folders are left out. */
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

/** The tool's user inside: nobody, even if the service runs as root. */
const NOBODY = '65534';

/** The tool's descriptor from which its sandbox reads the filter. */
export const FILTER_DESCRIPTOR = 5;

/** Names of prlimit(1), with the limit that signals the tool and the limit that ends it. */
export function limitRows({
  memoryBytes,
  cpuSeconds,
  fileBytes,
}: ResourceLimits): readonly (readonly [name: string, soft: number, hard: number])[] {
  const cpu = Math.ceil(cpuSeconds);
  return [
    // Not the address space: 0.4 GB of that is libraries, whose size differs from build to build.
    ['data', memoryBytes, memoryBytes],
    ['stack', STACK_BYTES, STACK_BYTES],
    ['cpu', cpu, cpu + CPU_GRACE_SECONDS],
    ['fsize', fileBytes, fileBytes],
    ['nofile', OPEN_FILES, OPEN_FILES],
    ['core', 0, 0],
  ];
}

export function prlimit(limits: ResourceLimits): string[] {
  return ['prlimit', ...limitRows(limits).map(([name, soft, hard]) => `--${name}=${soft}:${hard}`), '--'];
}

/**
 * Command prefix of level `none` without a starter, for a service that runs as root. bubblewrap
 * drops capabilities itself, and needs them before, where user namespaces are root's alone.
 * @param launcher with util-linux's setpriv; another one can drop none
 */
export function withoutCapabilities([launcher]: readonly string[]): string[] {
  return launcher === 'setpriv' && process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all', '--no-new-privs', '--']
    : [];
}

/** Command prefix of level `bubblewrap`. @param tool absolute: it may be in any folder */
export function bubblewrap(tool: string, { reads, writes }: FileAccess, showsSystem: boolean): string[] {
  return [
    'bwrap',
    ...['--unshare-all', '--unshare-user', '--uid', NOBODY, '--gid', NOBODY],
    ...['--die-with-parent', '--cap-drop', 'ALL', '--seccomp', String(FILTER_DESCRIPTOR)],
    ...(showsSystem ? SYSTEM_FOLDERS : []).flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
    // A missing one fails to start, and is not blamed on the input.
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
