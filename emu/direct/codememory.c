// Memory for translated code. It is mapped twice, so that no address can be both written and
// executed.
#define _GNU_SOURCE
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

static bool mapped_once;

void direct_map_once(bool once) { mapped_once = once; }

// Has the code's memory where it is executed. The second mapping is of the same anonymous memory (mremap(2), old_size of 0), so
// that the host's limits on files do not matter.
static bool map_code(struct direct_memory *m) {
  const int rights = PROT_READ | PROT_WRITE, shared = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
  if (mapped_once) {
    m->writable = mmap(m->executable, m->bytes, rights | PROT_EXEC, shared | MAP_FIXED, -1, 0);
    return m->writable != MAP_FAILED;
  }
  m->writable = mmap(NULL, m->bytes, rights, shared, -1, 0);
  if (m->writable == MAP_FAILED) return false;
  if (mremap(m->writable, 0, m->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, m->executable) == MAP_FAILED) return false;
  return !mprotect(m->executable, m->bytes, PROT_READ | PROT_EXEC);
}

int direct_memory_init(struct direct_memory *m, size_t bytes, size_t data_bytes) {
  *m = (struct direct_memory){.bytes = bytes, .data_bytes = data_bytes, .writable = MAP_FAILED};
  m->executable = heddle_reserve(bytes + data_bytes);
  if (m->executable) m->data = m->executable + bytes;
  if (m->executable && map_code(m)) return 0;
  direct_memory_close(m);
  return -1;
}

void direct_memory_close(struct direct_memory *m) {
  if (m->writable && m->writable != MAP_FAILED && m->writable != m->executable) munmap(m->writable, m->bytes);
  if (m->executable) munmap(m->executable, m->bytes + m->data_bytes);
  memset(m, 0, sizeof *m);
}

// Reports whether the host lets a program execute memory that is mapped twice, and executes what was
// written last. Emulators of a single program, and hosts whose policy forbids code that is made at run
// time, do not.
bool direct_host_executes(void) {
  struct direct_memory m;
  if (direct_memory_init(&m, HEDDLE_PAGE_SIZE, 0)) return false;
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
