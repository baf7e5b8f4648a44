// Memory for translated code. It is mapped twice, so that no address can be both written and
// executed.
#define _GNU_SOURCE
#include "engine.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int direct_memory_init(struct direct_memory *m, size_t bytes) {
  memset(m, 0, sizeof *m);
  int fd = memfd_create("heddle-code", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)bytes)) {
    close(fd);
    return -1;
  }
  void *writable = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  void *executable = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_NORESERVE, fd, 0);
  close(fd);
  m->bytes = bytes;
  if (writable != MAP_FAILED) m->writable = writable;
  if (executable != MAP_FAILED) m->executable = executable;
  if (m->writable && m->executable) return 0;
  direct_memory_close(m);
  return -1;
}

void direct_memory_close(struct direct_memory *m) {
  if (m->writable) munmap(m->writable, m->bytes);
  if (m->executable) munmap(m->executable, m->bytes);
  memset(m, 0, sizeof *m);
}
