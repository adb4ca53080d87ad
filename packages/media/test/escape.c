/*
 * What somebody tries who has taken ffprobe over. Prints one line an attempt: its name, and how much of it was had; 0 where nothing was.
 *
 *   escape … --escape OUTPUT FILE SOCKET PORT
 *
 * OUTPUT may be written; FILE, SOCKET and the server at PORT are what must stay out of reach.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024L * 1024)
static void tell(const char *what, long had) { printf("%s %ld\n", what, had); fflush(stdout); }
static long was(long result) { return result >= 0; }

/* Touched, so that it is there; never more than 1 GiB, twice what a run may have. */
static long memory(int flags, int descriptor) {
  long had = 0;
  for (; had < 640; had += 32) {
    char *piece = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (piece == MAP_FAILED) break;
    for (long at = 0; at < 32 * MIB; at += 65536) piece[at] = 1;
  }
  return had;
}

static long reads(const char *path) {
  char byte;
  int file = open(path, O_RDONLY);
  return file >= 0 && read(file, &byte, 1) == 1;
}

static long connects(int family, const void *address, socklen_t length) {
  int socket_ = socket(family, SOCK_STREAM, 0);
  return socket_ >= 0 && connect(socket_, address, length) == 0;
}

/* Children end at once when there is nothing to write to any more. */
static long children(void) {
  long had = 0;
  int held[2] = {-1, -1};
  if (pipe(held) != 0) held[0] = -1;
  for (; had < 8; had += 1) {
    pid_t child = fork();
    if (child < 0) child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child < 0) child = vfork();
    if (child == 0) {
      char byte;
      if (held[0] >= 0) { close(held[1]); if (read(held[0], &byte, 1)) _exit(0); }
      _exit(0);
    }
    if (child < 0) break;
  }
  return had;
}

int main(int argc, char **argv) {
  int at = 1;
  while (at < argc && strcmp(argv[at], "--escape") != 0) at += 1;
  if (at + 4 >= argc) return 2;
  const char *output = argv[at + 1], *file = argv[at + 2], *server = argv[at + 3];
  int port = atoi(argv[at + 4]);
  char zeros[4096] = {0};
  signal(SIGXFSZ, SIG_IGN);

  char environment[64];
  snprintf(environment, sizeof environment, "/proc/%d/environ", getppid());
  tell("environment-of-the-parent", reads(environment));

  tell("io_uring", was(syscall(SYS_io_uring_setup, 4, zeros)));
  tell("keyctl", was(syscall(SYS_keyctl, 0, -3, 1)));
  tell("add_key", was(syscall(SYS_add_key, "user", "x", "y", 1, -3)));
  tell("unshare", was(unshare(CLONE_NEWUSER)));
  tell("clone-namespace", was(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | CLONE_VFORK | CLONE_VM, 0, 0, 0, 0)) > 0);
  tell("setns", was(syscall(SYS_setns, 0, 0)));
  tell("mount", was(mount("x", "/tmp", "tmpfs", 0, NULL)));
  tell("chroot", was(chroot("/")));
  tell("bpf", was(syscall(SYS_bpf, 5, zeros, 64)));
  tell("perf", was(syscall(SYS_perf_event_open, zeros, 0, -1, -1, 0)));
  tell("userfaultfd", was(syscall(SYS_userfaultfd, 1)));
  tell("ptrace", was(ptrace(PTRACE_ATTACH, getppid(), 0, 0)));
  struct iovec here = {zeros, 8}, there = {zeros, 8};
  tell("memory-of-others", was(process_vm_readv(getppid(), &here, 1, &there, 1, 0)));
  tell("kill", was(kill(getppid(), 0)) + was(kill(-1, 0)));
  struct rlimit none = {0, 0};
  tell("limits-of-others", was(prlimit(getppid(), RLIMIT_CORE, &none, NULL)));
  tell("signals-by-descriptors", was(fcntl(1, F_SETOWN, getppid())));
  tell("outlive-the-parent", was(prctl(PR_SET_PDEATHSIG, 0)));
  tell("children", children());

  int memfd = syscall(SYS_memfd_create, "x", 0);
  tell("memfd", was(memfd));
  int segment = shmget(IPC_PRIVATE, 600 * MIB, IPC_CREAT | 0600);
  tell("shmget", was(segment));
  shmctl(segment, IPC_RMID, NULL);
  tell("shared-memory-mib", memory(MAP_SHARED | MAP_ANONYMOUS, -1));

  long written = 0;
  int made = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  while (made >= 0 && write(made, zeros, sizeof zeros) == sizeof zeros) written += sizeof zeros;
  tell("output-bytes", written);
  long files = 0;
  const char *places[] = {output, "/tmp/x", "/dev/shm/x", "/x", "/var/tmp/x"};
  for (int nth = 0; nth < 40; nth += 1) {
    char path[4200];
    snprintf(path, sizeof path, "%s-%d", places[nth % 5], nth);
    int other = open(path, O_WRONLY | O_CREAT, 0600);
    files += other >= 0 && write(other, zeros, 4096) == 4096;
    unlink(path);
  }
  tell("other-files", files);
  char other_name[4200];
  snprintf(other_name, sizeof other_name, "%s-renamed", output);
  tell("rename", was(rename(output, other_name)));
  tell("unlink", was(unlink(other_name)));

  tell("file", reads(file));
  tell("passwd", reads("/etc/passwd"));
  tell("environment", reads("/proc/self/environ"));
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  strncpy(local.sun_path, server, sizeof local.sun_path - 1);
  tell("socket", connects(AF_UNIX, &local, sizeof local));
  struct sockaddr_in remote = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  tell("network", connects(AF_INET, &remote, sizeof remote));
  tell("netlink", was(socket(AF_NETLINK, SOCK_RAW, 0)));

  /* Last: it may end us. */
  tell("memory-mib", memory(MAP_PRIVATE | MAP_ANONYMOUS, -1));
  return 0;
}
