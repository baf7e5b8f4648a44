// Memory for translated code. It is mapped twice, so that no address can be both written and
// executed.
#define _GNU_SOURCE
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

static bool mapped_once;

void direct_map_once(bool once) { mapped_once = once; }

// The second mapping is of the same anonymous memory (mremap(2), old_size of 0), so that the host's limits on
// files do not matter.
int direct_memory_init(struct direct_memory *m, size_t bytes) {
  memset(m, 0, sizeof *m);
  void *writable = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (writable == MAP_FAILED) return -1;
  m->bytes = bytes;
  m->writable = writable;
  if (mapped_once) {
    m->executable = writable;
    return mprotect(writable, bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
  }
  void *executable = mremap(writable, 0, bytes, MREMAP_MAYMOVE);
  if (executable != MAP_FAILED) m->executable = executable;
  if (m->executable && !mprotect(m->executable, bytes, PROT_READ | PROT_EXEC)) return 0;
  direct_memory_close(m);
  return -1;
}

void direct_memory_close(struct direct_memory *m) {
  if (m->writable) munmap(m->writable, m->bytes);
  if (m->executable && m->executable != m->writable) munmap(m->executable, m->bytes);
  memset(m, 0, sizeof *m);
}

// Reports whether the host lets a program execute memory that is mapped twice, and executes what was
// written last. Emulators of a single program, and hosts whose policy forbids code that is made at run
// time, do not.
bool direct_host_executes(void) {
  struct direct_memory m;
  if (direct_memory_init(&m, HEDDLE_PAGE_SIZE)) return false;
  unsigned (*function)(void) = (unsigned (*)(void))(uintptr_t)m.executable;
  bool executes = true;
  for (uint8_t number = 1; number <= 2; number++) {
    const uint8_t code[] = {0xb8, number, 0, 0, 0, 0xc3};  // mov eax, number; ret
    memcpy(m.writable, code, sizeof code);
    direct_serialize();
    executes &= function() == number;
  }
  direct_memory_close(&m);
  return executes;
}
