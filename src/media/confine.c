/*
 * Runs a program that sees only the files named here: for machines and containers in which bubblewrap may make no user namespaces.
 *
 *   soundpost-confine --seccomp FD [--read PATH]... [--write FILE]... -- PROGRAM [ARGUMENT]...
 *
 * PROGRAM is an absolute path. Files are kept from it by Landlock (Linux 5.13; from 6.7 on TCP too, from 6.12 on signals and abstract sockets), system
 * calls by the filter that is read from FD: a classic BPF program, as bubblewrap takes it. Both need no right but the one to give up rights.
 * Ends with 1, and a sentence, where that cannot be had; nothing has been started then.
 *
 * script/ffmpeg and the image build it: gcc -static -O2 -o soundpost-confine confine.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/landlock.h, of which the system's headers may be older than its kernel. */
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

static int abi;
static uint64_t handled;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "soundpost-confine: %s%s: %s\n", what, which, strerror(errno));
  exit(1);
}

/* All that the running kernel knows: what it learns later is not refused, and a filter of system calls stands behind it. */
static int create_ruleset(void) {
  struct ruleset_attributes attributes = {0};
  abi = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION_FLAG);
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

static void filter_calls(int descriptor) {
  static struct sock_filter program[BPF_MAXINSNS];
  size_t length = 0;
  ssize_t got;
  while ((got = read(descriptor, (char *)program + length, sizeof program - length)) > 0) length += got;
  if (got < 0) fail("the filter cannot be read", "");
  close(descriptor);
  struct sock_fprog filter = {.len = length / sizeof *program, .filter = program};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) fail("the filter is not taken", "");
}

int main(int argc, char **argv) {
  int filter = -1, at = 1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("privileges cannot be given up", "");
  int ruleset = create_ruleset();
  for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
    if (strcmp(argv[at], "--seccomp") == 0) filter = atoi(argv[at + 1]);
    else if (strcmp(argv[at], "--read") == 0) allow(ruleset, argv[at + 1], EXECUTE | READ_FILE | READ_DIR, 0);
    else if (strcmp(argv[at], "--write") == 0) allow(ruleset, argv[at + 1], READ_FILE | WRITE_FILE | TRUNCATE, 1);
    else break;
  }
  if (at + 1 >= argc || strcmp(argv[at], "--") != 0 || filter < 0) {
    fputs("soundpost-confine --seccomp FD [--read PATH]... [--write FILE]... -- PROGRAM [ARGUMENT]...\n", stderr);
    return 1;
  }
  char **program = argv + at + 1;
  allow(ruleset, program[0], EXECUTE | READ_FILE, 0);
  if (syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0) fail("the rules are not taken", "");
  close(ruleset);
  filter_calls(filter);
  execv(program[0], program);
  fail("failed to execute ", program[0]);
}
