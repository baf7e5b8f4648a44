// Memory for translated code. It is mapped twice, so that no address can be both written and
// executed.
#define _GNU_SOURCE
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

// The second mapping is of the same anonymous memory (mremap(2), old_size of 0), so that the host's limits on
// files do not matter.
int direct_memory_init(struct direct_memory *m, size_t bytes) {
  memset(m, 0, sizeof *m);
  void *writable = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (writable == MAP_FAILED) return -1;
  m->bytes = bytes;
  m->writable = writable;
  void *executable = mremap(writable, 0, bytes, MREMAP_MAYMOVE);
  if (executable != MAP_FAILED) m->executable = executable;
  if (m->executable && !mprotect(m->executable, bytes, PROT_READ | PROT_EXEC)) return 0;
  direct_memory_close(m);
  return -1;
}

void direct_memory_close(struct direct_memory *m) {
  if (m->writable) munmap(m->writable, m->bytes);
  if (m->executable) munmap(m->executable, m->bytes);
  memset(m, 0, sizeof *m);
}
