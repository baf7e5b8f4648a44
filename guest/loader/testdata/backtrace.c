// Prints the frames that unwinding its stack from deep inside must find, and the memory that is
// needed to do it elsewhere: "reg RSP RBP RBX R12 R13 R14 R15 RIP" and
// "frame ADDRESS" lines, "map" lines with the mappings, "stack ADDRESS HEX".
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void dump(void) {
  ucontext_t here;
  getcontext(&here);
  greg_t *r = here.uc_mcontext.gregs;
  static const int order[] = {REG_RSP, REG_RBP, REG_RBX, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  printf("reg");
  for (int i = 0; i < 8; i++) printf(" %llx", r[order[i]]);
  printf("\n");
  void *pcs[64];
  int n = backtrace(pcs, 64);
  for (int i = 0; i < n; i++) printf("frame %lx\n", (unsigned long)pcs[i]);

  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  unsigned long low = r[REG_RSP] - 128, high = 0, start, end;
  while (fgets(line, sizeof line, maps)) {
    printf("map %s", line);
    if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= low && low < end) high = end;
  }
  printf("stack %lx ", low);
  for (unsigned long at = low; at < high; at++) printf("%02x", *(unsigned char *)at);
  printf("\n");
  fflush(stdout);
}

__attribute__((noinline)) static void with_frame_pointer(int n) {
  volatile char *space = __builtin_alloca(n);
  space[0] = 1;
  dump();
  space[0] = 2;
}

static void on_signal(int sig) {
  (void)sig;
  with_frame_pointer(300);
}

__attribute__((noinline)) static void raiser(void) {
  raise(SIGUSR1);
  __asm__ volatile("");
}

static int called;

static int compare(const void *a, const void *b) {
  if (!called++) raiser();
  return *(const int *)a - *(const int *)b;
}

int main(void) {
  void *warm[1];
  backtrace(warm, 1);  // loads libgcc_s now
  static char out[1 << 16];
  setvbuf(stdout, out, _IOFBF, sizeof out);
  signal(SIGUSR1, on_signal);
  int list[] = {3, 1, 2};
  qsort(list, 3, sizeof list[0], compare);
  return 0;
}
