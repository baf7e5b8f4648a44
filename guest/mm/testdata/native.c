// Executes memory system calls on the real kernel, for comparison. Reads
// requests of eight 64-bit words from standard input: a kind and seven
// arguments. Answers each with lines: "= RESULT", additions of the kind, the
// mappings as "map LINE", and ".".
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SYSCALL, LOAD, STORE, MINCORE, FORK };

static char out[1 << 20];
static size_t used;
static sigjmp_buf back;
static volatile int signal_code;

static void on_fault(int sig, siginfo_t *info, void *context) {
  (void)context;
  signal_code = sig * 1000 + info->si_code;
  siglongjmp(back, 1);
}

static void flush(void) {
  for (size_t done = 0; done < used;) {
    ssize_t n = write(1, out + done, used - done);
    if (n <= 0) _exit(1);
    done += (size_t)n;
  }
  used = 0;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
  __builtin_va_list args;
  __builtin_va_start(args, format);
  used += (size_t)vsnprintf(out + used, sizeof out - used, format, args);
  __builtin_va_end(args);
}

static void maps(void) {
  static char text[1 << 19];
  int fd = open("/proc/self/maps", O_RDONLY);
  size_t len = 0;
  for (ssize_t n; (n = read(fd, text + len, sizeof text - 1 - len)) > 0;) len += (size_t)n;
  close(fd);
  text[len] = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) say("map %s\n", line);
}

// The value at an address, or minus the signal that reading it raises.
static long load(uint64_t at) {
  if (sigsetjmp(back, 1)) return -signal_code;
  return *(volatile unsigned char *)at;
}

static long store(uint64_t at, unsigned char value) {
  if (sigsetjmp(back, 1)) return -signal_code;
  *(volatile unsigned char *)at = value;
  return 0;
}

static long raw(const uint64_t *a) {
  long result;
  register uint64_t r10 __asm__("r10") = a[4];
  register uint64_t r8 __asm__("r8") = a[5];
  register uint64_t r9 __asm__("r9") = a[6];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(a[0]), "D"(a[1]), "S"(a[2]), "d"(a[3]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// The view of a child: the byte at a[0], its mappings; it stores a[1] there.
static long in_child(const uint64_t *a) {
  long before = load(a[0]);
  flush();
  pid_t child = fork();
  if (child == 0) {
    say("child %ld\n", load(a[0]));
    say("child %ld\n", store(a[0], (unsigned char)a[1]));
    say("child %ld\n", load(a[0]));
    flush();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return before;
}

int main(int argc, char **argv) {
  if (argc < 3) return 1;
  // Descriptors 3 and 4: the file for reading only, and for both.
  if (open(argv[1], O_RDONLY) != 3 || open(argv[2], O_RDWR) != 4) return 1;
  static char stack[1 << 16];
  stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternative, NULL);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);

  say("= %ld\n", raw((uint64_t[7]){SYS_brk}));
  maps();
  say(".\n");
  flush();
  uint64_t a[8];
  for (;;) {
    for (size_t got = 0; got < sizeof a;) {
      ssize_t n = read(0, (char *)a + got, sizeof a - got);
      if (n <= 0) return 0;
      got += (size_t)n;
    }
    static unsigned char vec[1 << 14];
    long result = 0;
    switch (a[0]) {
      case SYSCALL: result = raw(a + 1); break;
      case LOAD: result = load(a[1]); break;
      case STORE: result = store(a[1], (unsigned char)a[2]); break;
      case MINCORE: result = raw((uint64_t[7]){SYS_mincore, a[1], a[2], (uint64_t)vec}); break;
      case FORK: result = in_child(a + 1); break;
    }
    say("= %ld\n", result);
    if (a[0] == MINCORE && result == 0) {
      say("vec ");
      for (uint64_t i = 0; i < (a[2] + 4095) / 4096; i++) say("%d", vec[i] & 1);
      say("\n");
    }
    maps();
    say(".\n");
    flush();
  }
}
