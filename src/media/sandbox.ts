/** What ffmpeg and ffprobe may reach and use up while they read a stranger's file (decision 8): a command prefix. */
import { resolve } from 'node:path';

/**
 * - `bubblewrap`: no network, no files but the tool's own, the run's input and its outputs, no other process, and few system calls (seccomp.ts);
 * - `landlock`: the same by Landlock and the same system calls, where there may be no user namespaces (confine.c), but among the machine's processes;
 * - `none`: only the rules on demuxers and protocols.
 */
export const sandboxLevels = ['bubblewrap', 'landlock', 'none'] as const;
export type SandboxLevel = (typeof sandboxLevels)[number];

export interface Sandbox {
  readonly level: SandboxLevel;
  /** Whether util-linux's prlimit is there to set {@link ResourceLimits}. */
  readonly hasLimits: boolean;
  /** Whether the system's programs and libraries are shown, for a tool that is linked with them. */
  readonly showsSystem: boolean;
}

/** Absolute, for they may lie outside of the system's folders. */
interface Programs {
  /** What is run. */
  readonly tool: string;
  /** What `landlock` is started with: confine.c, built. */
  readonly confine?: string | undefined;
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

export function sandboxPrefix(
  sandbox: Sandbox,
  programs: Programs,
  access: FileAccess,
  limits: ResourceLimits,
): string[] {
  return [
    ...(sandbox.hasLimits ? prlimit(limits) : []),
    ...PREFIXES[sandbox.level](programs, access, sandbox),
  ];
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

type Prefix = (programs: Programs, access: FileAccess, sandbox: Sandbox) => string[];

const PREFIXES: Readonly<Record<SandboxLevel, Prefix>> = {
  bubblewrap: ({ tool }, { reads, writes }, { showsSystem }) => [
    'bwrap',
    ...['--unshare-all', '--unshare-user', '--uid', NOBODY, '--gid', NOBODY],
    ...['--die-with-parent', '--cap-drop', 'ALL', '--seccomp', String(FILTER_DESCRIPTOR)],
    ...(showsSystem ? SYSTEM_FOLDERS : []).flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
    // One that is not there is missed when it is to start, and not blamed on the input.
    ...['--ro-bind-try', tool, tool],
    ...bind('--bind', writes),
    ...bind('--ro-bind', reads),
    ...['--remount-ro', '/', '--chdir', '/', '--'],
  ],
  landlock: ({ confine = '' }, { reads, writes }, { showsSystem }) => [
    confine,
    ...['--seccomp', String(FILTER_DESCRIPTOR)],
    ...[...(showsSystem ? SYSTEM_FOLDERS : []), ...DEVICES, ...absolute(reads)].flatMap((path) => [
      '--read',
      path,
    ]),
    ...absolute(writes).flatMap((path) => ['--write', path]),
    '--',
  ],
  none: () => [],
};

function bind(how: '--bind' | '--ro-bind', paths: readonly string[]): string[] {
  return absolute(paths).flatMap((path) => [how, path, path]);
}

function absolute(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => resolve(path)))];
}
