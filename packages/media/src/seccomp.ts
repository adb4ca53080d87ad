/**
 * The system calls of ffmpeg and ffprobe, as a program for seccomp, which refuses others (Linux,
 * Documentation/userspace-api/seccomp_filter.rst): one process, its own memory and its files.
 */

/** Numbers on x86-64 (arch/x86/entry/syscalls) and others (include/uapi/asm-generic/unistd.h). */
type Numbers = readonly [x64: number | undefined, arm64: number | undefined];

const ALLOWED: Readonly<Record<string, Numbers>> = {
  // Files that are open, or that the sandbox shows.
  read: [0, 63],
  write: [1, 64],
  readv: [19, 65],
  writev: [20, 66],
  pread64: [17, 67],
  pwrite64: [18, 68],
  lseek: [8, 62],
  close: [3, 57],
  close_range: [436, 436],
  ioctl: [16, 29],
  dup: [32, 23],
  dup2: [33, undefined],
  dup3: [292, 24],
  poll: [7, undefined],
  ppoll: [271, 73],
  select: [23, undefined],
  pselect6: [270, 72],
  open: [2, undefined],
  openat: [257, 56],
  access: [21, undefined],
  faccessat: [269, 48],
  faccessat2: [439, 439],
  stat: [4, undefined],
  fstat: [5, 80],
  lstat: [6, undefined],
  newfstatat: [262, 79],
  statx: [332, 291],
  statfs: [137, 43],
  fstatfs: [138, 44],
  readlink: [89, undefined],
  readlinkat: [267, 78],
  getcwd: [79, 17],
  ftruncate: [77, 46],
  fallocate: [285, 47],
  fadvise64: [221, 223],
  fsync: [74, 82],
  fdatasync: [75, 83],
  // Memory of its own; mmap has a rule.
  brk: [12, 214],
  munmap: [11, 215],
  mremap: [25, 216],
  mprotect: [10, 226],
  madvise: [28, 233],
  // Threads; clone has a rule.
  futex: [202, 98],
  set_robust_list: [273, 99],
  get_robust_list: [274, 100],
  rseq: [334, 293],
  set_tid_address: [218, 96],
  sched_yield: [24, 124],
  sched_getaffinity: [204, 123],
  sched_getparam: [143, 121],
  sched_getscheduler: [145, 120],
  sched_get_priority_max: [146, 125],
  sched_get_priority_min: [147, 126],
  membarrier: [324, 283],
  // Signals of its own: none can be sent, not even to itself.
  rt_sigaction: [13, 134],
  rt_sigprocmask: [14, 135],
  rt_sigreturn: [15, 139],
  rt_sigtimedwait: [128, 137],
  sigaltstack: [131, 132],
  restart_syscall: [219, 128],
  // What time it is, who it is, what it has used.
  clock_gettime: [228, 113],
  clock_getres: [229, 114],
  clock_nanosleep: [230, 115],
  nanosleep: [35, 101],
  gettimeofday: [96, 169],
  time: [201, undefined],
  times: [100, 153],
  getrusage: [98, 165],
  getrlimit: [97, 163],
  getpid: [39, 172],
  gettid: [186, 178],
  getppid: [110, 173],
  getuid: [102, 174],
  geteuid: [107, 175],
  getgid: [104, 176],
  getegid: [108, 177],
  uname: [63, 160],
  sysinfo: [99, 179],
  getcpu: [309, 168],
  getrandom: [318, 278],
  arch_prctl: [158, undefined],
  // The sandbox starts the tool with it, and collects it.
  execve: [59, 221],
  wait4: [61, 260],
  exit: [60, 93],
  exit_group: [231, 94],
};

const RULED = {
  clone: [56, 220],
  clone3: [435, 435],
  mmap: [9, 222],
  fcntl: [72, 25],
  prctl: [157, 167],
  prlimit64: [302, 261],
} as const;

/** Both lists, for a test that compares them with the kernel's headers. */
export const systemCalls: Readonly<Record<string, Numbers>> = { ...ALLOWED, ...RULED };

const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;

/** x86-64 answers calls of x32 under numbers from here on. */
const X32_BIT = 0x4000_0000;
const CLONE_THREAD = 0x0001_0000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e02_0000;
/** MAP_SHARED with MAP_ANONYMOUS: memory that no limit of the process counts. */
const SHARED_MEMORY = 0x21;
const F_SETFL = 4;
const F_DUPFD_CLOEXEC = 1030;
const PR_SET_NAME = 15;
const EPERM = 1;
const ENOSYS = 38;

// Opcodes of classic BPF (linux/bpf_common.h).
const LOAD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const IF_AT_LEAST = 0x35;
const IF_ANY_BIT = 0x45;
const RETURN = 0x06;

const NUMBER = 0;
const ARCHITECTURE = 4;
/** The lower half of an argument: the checked calls read no more of it. */
const argument = (nth: number): number => 16 + 8 * nth;

interface Instruction {
  readonly code: number;
  readonly k: number;
  /** Labels; left out: the next instruction. */
  readonly yes?: string;
  readonly no?: string;
  /** Names this instruction. */
  readonly label?: string;
}

const REFUSE: Instruction = { code: RETURN, k: 0x0005_0000 + EPERM };

const programs = new Map<string, Buffer>();

/**
 * The program: instructions of 8 bytes, as bubblewrap's `--seccomp` and seccomp(2) take them.
 * @param arch as `process.arch` has it
 * @throws where there is no list for such a machine
 */
export function seccompFilter(arch: string = process.arch): Buffer {
  const known = programs.get(arch) ?? compose(arch);
  programs.set(arch, known);
  return known;
}

function compose(arch: string): Buffer {
  if (arch !== 'x64' && arch !== 'arm64') throw new Error(`there is no list of system calls for ${arch}`);
  const column = arch === 'x64' ? 0 : 1;
  const numberOf = (name: keyof typeof RULED): number => RULED[name][column];
  const allowed = Object.values(ALLOWED).flatMap((numbers) => numbers[column] ?? []);
  return assemble([
    { code: LOAD, k: ARCHITECTURE },
    { code: IF_EQUAL, k: AUDIT_ARCH[arch], no: 'kill' },
    { code: LOAD, k: NUMBER },
    ...(arch === 'x64' ? [{ code: IF_AT_LEAST, k: X32_BIT, yes: 'kill' }] : []),
    ...Object.keys(RULED).map((name) => ({
      code: IF_EQUAL,
      k: numberOf(name as keyof typeof RULED),
      yes: name,
    })),
    ...allowed.map((k) => ({ code: IF_EQUAL, k, yes: 'allow' })),
    REFUSE,

    { label: 'clone', code: LOAD, k: argument(0) },
    { code: IF_ANY_BIT, k: NEW_NAMESPACES, yes: 'refuse' },
    { code: IF_ANY_BIT, k: CLONE_THREAD, yes: 'allow', no: 'refuse' },

    { label: 'mmap', code: LOAD, k: argument(3) },
    { code: AND, k: SHARED_MEMORY },
    { code: IF_EQUAL, k: SHARED_MEMORY, yes: 'refuse', no: 'allow' },

    // Not the choice of who is notified about a descriptor, and by which signal.
    { label: 'fcntl', code: LOAD, k: argument(1) },
    { code: IF_EQUAL, k: F_DUPFD_CLOEXEC, yes: 'allow' },
    { code: IF_GREATER, k: F_SETFL, yes: 'refuse', no: 'allow' },

    { label: 'prctl', code: LOAD, k: argument(0) },
    { code: IF_EQUAL, k: PR_SET_NAME, yes: 'allow', no: 'refuse' },

    // Not of other processes.
    { label: 'prlimit64', code: LOAD, k: argument(0) },
    { code: IF_EQUAL, k: 0, yes: 'allow', no: 'refuse' },

    // Its arguments are in memory, which no filter sees; libraries use clone when it is missing.
    { label: 'clone3', code: RETURN, k: 0x0005_0000 + ENOSYS },
    { label: 'refuse', ...REFUSE },
    { label: 'allow', code: RETURN, k: 0x7fff_0000 },
    { label: 'kill', code: RETURN, k: 0x8000_0000 },
  ]);
}

function assemble(program: readonly Instruction[]): Buffer {
  const places = new Map(program.flatMap(({ label }, at) => (label === undefined ? [] : [[label, at]])));
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, { code, k, yes, no }] of program.entries()) {
    // Jumps go forward, and count from the next instruction.
    const [whenTrue = 0, whenFalse = 0] = [yes, no].map((label) =>
      label === undefined ? 0 : (places.get(label) ?? 0) - at - 1,
    );
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(whenTrue, at * 8 + 2);
    bytes.writeUInt8(whenFalse, at * 8 + 3);
    bytes.writeUInt32LE(k, at * 8 + 4);
  }
  return bytes;
}
