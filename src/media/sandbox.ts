/** What ffmpeg and ffprobe may reach and use up while they read a stranger's file (decision 8): a command prefix. */
import { resolve } from 'node:path';

/**
 * - `bubblewrap`: no network, no processes and no files but the tool's own, the run's input and its folder for outputs;
 * - `namespaces`: no network; files are kept from it only by the rules on demuxers and protocols;
 * - `none`: those rules alone.
 */
export const sandboxLevels = ['bubblewrap', 'namespaces', 'none'] as const;
export type SandboxLevel = (typeof sandboxLevels)[number];

export interface Sandbox {
  readonly level: SandboxLevel;
  /** Whether util-linux's prlimit is there to set {@link ResourceLimits}. */
  readonly hasLimits: boolean;
}

/** What a run has to reach; everything else is out of its sight. */
export interface FileAccess {
  /** Files. */
  readonly reads: readonly string[];
  /** Folders, with all that is in them. */
  readonly writes: readonly string[];
}

interface ResourceLimits {
  /** Heap, stacks and other private memory. Code of shared libraries, about 50 MB of ffmpeg's, comes on top. */
  readonly memoryBytes: number;
  /** Time on processors, of all threads together. */
  readonly cpuSeconds: number;
  /** The largest file that may be written. */
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

/** @param tool what is run: an absolute path, for it may lie outside of the system's folders */
export function sandboxPrefix(
  sandbox: Sandbox,
  tool: string,
  access: FileAccess,
  limits: ResourceLimits,
): string[] {
  return [...(sandbox.hasLimits ? prlimit(limits) : []), ...PREFIXES[sandbox.level](tool, access)];
}

function prlimit({ memoryBytes, cpuSeconds, fileBytes }: ResourceLimits): string[] {
  const cpu = Math.ceil(cpuSeconds);
  return [
    'prlimit',
    // Not the address space: 0.4 GB of that is libraries, whose size differs from build to build.
    `--data=${memoryBytes}`,
    `--cpu=${cpu}:${cpu + CPU_GRACE_SECONDS}`,
    `--fsize=${fileBytes}`,
    `--nofile=${OPEN_FILES}`,
    '--core=0',
    '--',
  ];
}

const PREFIXES: Readonly<Record<SandboxLevel, (tool: string, access: FileAccess) => string[]>> = {
  bubblewrap: (tool, { reads, writes }) => [
    'bwrap',
    ...['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'],
    ...SYSTEM_FOLDERS.flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
    // One that is not there is missed when it is to start, and not blamed on the input.
    ...['--ro-bind-try', tool, tool],
    ...bind('--bind', writes),
    // After the folders, one of which may hold the input: what comes later lies on top.
    ...bind('--ro-bind', reads),
    ...['--remount-ro', '/', '--chdir', '/', '--'],
  ],
  // The user namespace is what lets somebody who is not root have the other one.
  namespaces: () => ['unshare', '--user', '--map-current-user', '--net', '--'],
  none: () => [],
};

function bind(how: '--bind' | '--ro-bind', paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => resolve(path)))].flatMap((path) => [how, path, path]);
}
