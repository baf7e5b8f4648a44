// Preloaded into a server, this library counts calls of read(2) without a lock, slowly: calls of several threads at once
// are lost, or not, and the last ones are in the order in which the threads came.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static volatile unsigned long calls, last[16];
static ssize_t (*next)(int, void *, size_t);

__attribute__((constructor)) static void look_up(void) { next = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"); }

ssize_t read(int fd, void *to, size_t size) {
  unsigned long before = calls;
  for (volatile int i = 0; i < 3000; i++)
    ;
  last[before % 16] = fd;
  calls = before + 1;
  if (!next) look_up();
  return next(fd, to, size);
}
