/*
 * Starts tools for a Node process and confines them. A fork copies tables of the process's memory:
 * 5 ms or more of Node's only thread, microseconds here. starter.ts starts one per Node process,
 * and it ends with Node, tools first.
 *
 * Standard input and output carry frames: a length (of what follows the header), a kind and a run
 * number, each 32 bits in the machine's order.
 *   to it    RUN      strings that end with NUL: "limit NAME SOFT HARD", "read PATH", "write PATH",
 *                     "seccomp", "landlock", "arg WORD"
 *            SIGNAL   32 bits: sent to the run's process group
 *            FILTER   for all runs: system calls that a tool may make, a classic BPF program
 *            BEAT     32 bits, milliseconds: kills the parent if no other follows in that time
 *   from it  STDOUT, STDERR, PROGRESS   what the tool wrote to descriptors 1, 2 and 4
 *            ENDED    32 bits as wait(2) has them, once all of the above has been sent
 *            STARTED  32 bits: the tool's process group
 * "landlock": the tool sees only the files of "read" and "write" (Linux 5.13; since 6.7 no TCP,
 * since 6.12 no signals to others), and makes only the filter's system calls. "seccomp" alone:
 * descriptor 5 holds the filter, for bubblewrap, which drops capabilities itself; other tools keep
 * none, also where the service is root. Nothing here needs privileges.
 * script/ffmpeg and the image build it: gcc -static -O2 -o soundpost-start start.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From include/uapi/linux/landlock.h: the system's headers may be older than its kernel. */
#define LANDLOCK_CREATE_RULESET 444
#define LANDLOCK_ADD_RULE 445
#define LANDLOCK_RESTRICT_SELF 446
#define LANDLOCK_VERSION_FLAG 1u
#define RULE_PATH_BENEATH 1
struct ruleset_attributes {
  uint64_t handled_fs, handled_net, scoped;
};
struct path_beneath {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));
enum { EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, TRUNCATE = 1 << 14 };

enum { RUN = 1, SIGNAL, FILTER, BEAT, STDOUT, STDERR, PROGRESS, ENDED, STARTED };
struct header {
  uint32_t length, kind, number;
};

enum { PIPES = 3, MOST_RUNS = 512, LONGEST_FRAME = 1 << 22, MOST_WORDS = 4096 };
static const int DESCRIPTORS[PIPES] = {1, 2, 4};
enum { FILTER_DESCRIPTOR = 5 };

static struct run {
  uint32_t number;
  pid_t pid; /* 0: ended */
  int status, pipes[PIPES]; /* -1: closed */
} runs[MOST_RUNS];
static int count;

static struct sock_filter filter[BPF_MAXINSNS];
static size_t filter_bytes;

/* --- A tool, from the fork to its own code --- */

static void fail(const char *what, const char *which) {
  fprintf(stderr, "soundpost-start: %s%s: %s\n", what, which, strerror(errno));
  _exit(1);
}

static const char *after(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static void limit(const char *value) {
  static const struct {
    const char *name;
    int resource;
  } limits[] = {{"data", RLIMIT_DATA},     {"stack", RLIMIT_STACK},   {"cpu", RLIMIT_CPU},
                {"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE}, {"core", RLIMIT_CORE}};
  char name[16];
  unsigned long long soft, hard;
  if (sscanf(value, "%15s %llu %llu", name, &soft, &hard) == 3) {
    for (size_t at = 0; at < sizeof limits / sizeof *limits; at++) {
      if (strcmp(limits[at].name, name) != 0) continue;
      struct rlimit both = {.rlim_cur = soft, .rlim_max = hard};
      if (setrlimit(limits[at].resource, &both) != 0) fail("cannot limit ", name);
      return;
    }
  }
  errno = EINVAL;
  fail("no such limit: ", value);
}

static uint64_t handled;

/* All that this kernel can restrict; the filter of system calls refuses more. */
static int create_ruleset(void) {
  struct ruleset_attributes attributes = {0};
  int abi = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION_FLAG);
  if (abi < 1) fail("Landlock is not there", "");
  handled = (1 << 13) - 1;
  if (abi >= 2) handled |= 1 << 13;
  if (abi >= 3) handled |= TRUNCATE;
  if (abi >= 5) handled |= 1 << 15;
  attributes.handled_fs = handled;
  if (abi >= 4) attributes.handled_net = 3;
  if (abi >= 6) attributes.scoped = 3;
  int ruleset = syscall(LANDLOCK_CREATE_RULESET, &attributes, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
  if (ruleset < 0) fail("no rules can be made", "");
  return ruleset;
}

static void allow(int ruleset, const char *path, uint64_t access, int must_be_there) {
  int parent = open(path, O_PATH | O_CLOEXEC);
  if (parent < 0) {
    if (!must_be_there && errno == ENOENT) return;
    fail("cannot show ", path);
  }
  struct stat status;
  if (fstat(parent, &status) != 0) fail("cannot look at ", path);
  if (!S_ISDIR(status.st_mode)) access &= ~(uint64_t)READ_DIR;
  struct path_beneath rule = {.allowed = access & handled, .parent = parent};
  if (syscall(LANDLOCK_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) != 0) fail("cannot show ", path);
  close(parent);
}

static void confine(int ruleset, const char *program) {
  allow(ruleset, program, EXECUTE | READ_FILE, 0);
  if (syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0) fail("the rules are not taken", "");
  close(ruleset);
  struct sock_fprog program_of_calls = {.len = filter_bytes / sizeof *filter, .filter = filter};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program_of_calls) != 0) fail("the filter is not taken", "");
}

/* Not by a change of user: files belong to the service, and it clears PR_SET_PDEATHSIG (prctl(2)). */
static void drop_capabilities(void) {
  /* For root, execve(2) permits the bounding set again; EPERM: this process may not change it. */
  for (int each = 0; prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; each++) {
    if (prctl(PR_CAPBSET_DROP, each, 0, 0, 0) != 0 && errno != EPERM) fail("capabilities stay in reach", "");
  }
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
  /* Without permitted and inheritable ones the kernel drops ambient ones too. */
  if (syscall(SYS_capset, &header, none) != 0) fail("capabilities stay", "");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("privileges cannot be given up", "");
}

static void hand_on_filter(void) {
  int file = memfd_create("filter", MFD_CLOEXEC);
  if (file < 0 || write(file, filter, filter_bytes) != (ssize_t)filter_bytes || lseek(file, 0, SEEK_SET) != 0 ||
      dup2(file, FILTER_DESCRIPTOR) < 0) {
    fail("the filter cannot be handed on", "");
  }
}

/* In the child: never returns. */
static void become(const char *words, const char *end, const int *writers, pid_t starter) {
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0) fail("no standard input", "");
  for (int at = 0; at < PIPES; at++) dup2(writers[at], DESCRIPTORS[at]);
  if (setpgid(0, 0) != 0) fail("no process group of its own", "");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail("cannot be tied to its parent's life", "");
  if (getppid() != starter) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);

  static char *argv[MOST_WORDS + 1];
  int argc = 0, ruleset = -1, is_bubblewrap = 0;
  for (const char *word = words; word < end; word += strlen(word) + 1) {
    const char *value;
    if ((value = after(word, "arg ")) != NULL && argc < MOST_WORDS) argv[argc++] = (char *)value;
    else if ((value = after(word, "limit ")) != NULL) limit(value);
    else if (strcmp(word, "landlock") == 0) ruleset = create_ruleset();
    else if (strcmp(word, "seccomp") == 0) hand_on_filter(), is_bubblewrap = 1;
    else if ((value = after(word, "read ")) != NULL) allow(ruleset, value, EXECUTE | READ_FILE | READ_DIR, 0);
    else if ((value = after(word, "write ")) != NULL) allow(ruleset, value, READ_FILE | WRITE_FILE | TRUNCATE, 1);
    else {
      errno = EINVAL;
      fail("not understood: ", word);
    }
  }
  if (argc == 0) _exit(1);
  if (!is_bubblewrap) drop_capabilities();
  if (ruleset >= 0) confine(ruleset, argv[0]);
  execvp(argv[0], argv);
  fail("failed to execute ", argv[0]);
}

/* --- Frames --- */

static void end_all(void) {
  for (int at = 0; at < count; at++) {
    if (runs[at].pid != 0) kill(-runs[at].pid, SIGKILL);
  }
  exit(0);
}

static int check_parent(void);
static int missed_beats;

/* A stalled parent reads nothing, and tools may write more than the pipe to it holds. */
static void wait_for_parent(void) {
  struct pollfd way = {.fd = 1, .events = POLLOUT};
  if (poll(&way, 1, check_parent()) > 0) missed_beats = 0;
}

static void send_frame(uint32_t kind, uint32_t number, const void *bytes, uint32_t length) {
  struct header header = {.length = length, .kind = kind, .number = number};
  struct iovec parts[] = {{&header, sizeof header}, {(void *)bytes, length}};
  for (int at = 0; at < 2;) {
    ssize_t sent = writev(1, parts + at, 2 - at);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      wait_for_parent();
      continue;
    }
    if (sent < 0) end_all();
    for (; at < 2 && (size_t)sent >= parts[at].iov_len; at++) sent -= parts[at].iov_len;
    if (at < 2) {
      parts[at].iov_base = (char *)parts[at].iov_base + sent;
      parts[at].iov_len -= sent;
    }
  }
}

static void receive(void *into, size_t length) {
  for (size_t got = 0; got < length;) {
    ssize_t more = read(0, (char *)into + got, length - got);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) end_all();
    got += more;
  }
}

/* The run's pipes: the child gets the ends to write to. If one fails, all are closed. */
static int open_pipes(int *readers, int *writers) {
  for (int at = 0; at < PIPES; at++) {
    int both[2];
    if (pipe2(both, O_CLOEXEC) == 0) {
      readers[at] = both[0];
      /* Above the numbers that the child moves them to. */
      writers[at] = fcntl(both[1], F_DUPFD_CLOEXEC, FILTER_DESCRIPTOR + 1);
      close(both[1]);
      if (writers[at] >= 0) continue;
      close(both[0]);
    }
    while (at-- > 0) close(readers[at]), close(writers[at]);
    return -1;
  }
  return 0;
}

static void start(uint32_t number, const char *words, const char *end) {
  struct run run = {.number = number};
  int writers[PIPES], status = W_EXITCODE(1, 0);
  static const char cannot[] = "soundpost-start: failed to execute: too many processes or open files\n";
  if (count < MOST_RUNS && open_pipes(run.pipes, writers) == 0) {
    pid_t starter = getpid();
    run.pid = fork();
    if (run.pid == 0) become(words, end, writers, starter);
    for (int at = 0; at < PIPES; at++) close(writers[at]);
    if (run.pid > 0) {
      /* In parent and child, so that a signal finds the group whichever runs first. */
      setpgid(run.pid, run.pid);
      runs[count++] = run;
      uint32_t group = run.pid;
      send_frame(STARTED, number, &group, sizeof group);
      return;
    }
    for (int at = 0; at < PIPES; at++) close(run.pipes[at]);
  }
  send_frame(STDERR, number, cannot, sizeof cannot - 1);
  send_frame(ENDED, number, &status, sizeof status);
}

/* --- The parent's event loop --- */

enum { CHECKS = 10 };
static uint32_t patience_ms; /* 0: not watched */

static int64_t now_ms(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* By SIGSTOP or a debugger: it did not stall by itself. */
static int is_stopped(pid_t pid) {
  char path[32], stat[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = read(file, stat, sizeof stat - 1);
  close(file);
  char *state = got > 0 ? strrchr(stat, ')') : NULL;
  return state != NULL && (state[2] == 'T' || state[2] == 't');
}

/* Counts checks, not time, which also passes while the machine stalls.
   @return ms to the next, -1: never */
static int check_parent(void) {
  static int64_t next;
  if (patience_ms == 0) return -1;
  int64_t now = now_ms(CLOCK_MONOTONIC);
  if (now >= next) {
    next = now + patience_ms / CHECKS;
    if (++missed_beats > CHECKS + 1) {
      missed_beats = 0;
      if (!is_stopped(getppid())) {
        dprintf(2, "{\"level\":60,\"time\":%lld,\"msg\":\"the event loop stood still for %u ms\"}\n", (long long)now_ms(CLOCK_REALTIME), patience_ms);
        /* Its event loop can no longer end it in order. */
        kill(getppid(), SIGKILL);
      }
    }
  }
  return next - now;
}

static void obey(void) {
  static char bytes[LONGEST_FRAME];
  struct header header;
  receive(&header, sizeof header);
  if (header.length > sizeof bytes) end_all();
  receive(bytes, header.length);
  if (header.kind == RUN && header.length > 0 && bytes[header.length - 1] == '\0') {
    start(header.number, bytes, bytes + header.length);
  } else if (header.kind == SIGNAL && header.length == sizeof(uint32_t)) {
    uint32_t number_of_signal;
    memcpy(&number_of_signal, bytes, sizeof number_of_signal);
    for (int at = 0; at < count; at++) {
      if (runs[at].number == header.number && runs[at].pid != 0) kill(-runs[at].pid, number_of_signal);
    }
  } else if (header.kind == BEAT && header.length == sizeof patience_ms) {
    memcpy(&patience_ms, bytes, sizeof patience_ms);
    missed_beats = 0;
  } else if (header.kind == FILTER && header.length <= sizeof filter) {
    memcpy(filter, bytes, header.length);
    filter_bytes = header.length;
  } else {
    end_all();
  }
}

/* The rest of a tool's group ends with it, before its number can be reused. */
static void collect(void) {
  for (int at = 0; at < count; at++) {
    struct run *run = &runs[at];
    siginfo_t info = {0};
    if (run->pid == 0 || waitid(P_PID, run->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    kill(-run->pid, SIGKILL);
    waitpid(run->pid, &run->status, 0);
    run->pid = 0;
  }
}

static void pass_on(struct run *run, int nth) {
  static char bytes[1 << 16];
  ssize_t got = read(run->pipes[nth], bytes, sizeof bytes);
  if (got > 0) {
    send_frame(STDOUT + nth, run->number, bytes, got);
  } else if (got == 0 || errno != EINTR) {
    close(run->pipes[nth]);
    run->pipes[nth] = -1;
  }
}

int main(void) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
  int ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  static struct pollfd waited[2 + MOST_RUNS * PIPES];
  for (;;) {
    waited[0] = (struct pollfd){.fd = 0, .events = POLLIN};
    waited[1] = (struct pollfd){.fd = ended, .events = POLLIN};
    int before = count;
    for (int at = 0; at < before * PIPES; at++) {
      waited[2 + at] = (struct pollfd){.fd = runs[at / PIPES].pipes[at % PIPES], .events = POLLIN};
    }
    if (poll(waited, 2 + before * PIPES, check_parent()) < 0) continue;
    if (waited[1].revents != 0) {
      struct signalfd_siginfo notice;
      while (read(ended, &notice, sizeof notice) > 0) continue;
      collect();
    }
    for (int at = 0; at < before * PIPES; at++) {
      if (waited[2 + at].revents != 0) pass_on(&runs[at / PIPES], at % PIPES);
    }
    for (int at = 0; at < count;) {
      struct run *run = &runs[at];
      if (run->pid != 0 || run->pipes[0] >= 0 || run->pipes[1] >= 0 || run->pipes[2] >= 0) {
        at++;
        continue;
      }
      uint32_t status = run->status;
      send_frame(ENDED, run->number, &status, sizeof status);
      *run = runs[--count];
    }
    if (waited[0].revents != 0) obey();
  }
}
