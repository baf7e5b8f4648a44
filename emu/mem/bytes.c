// Reading and writing the bytes of a space, page by page.
#include "memory.h"

#include <string.h>

static size_t in_page(uint64_t va, size_t len) {
  uint64_t room = HEDDLE_PAGE_SIZE - (va & (HEDDLE_PAGE_SIZE - 1));
  return len < room ? len : room;
}

static void was_read(struct heddle_ram *ram, uint64_t page, uint64_t va, size_t n) {
  if (ram->observer) ram->observer->read(ram->observed_by, page, va, n);
}

enum heddle_walk heddle_space_read(struct heddle_space *s, uint64_t va, void *to, size_t len, size_t *done) {
  *done = 0;
  while (*done < len) {
    uint64_t pte, at = va + *done;
    enum heddle_walk w = heddle_space_walk(s, at, HEDDLE_READ, true, &pte);
    if (w) return w;
    size_t n = in_page(at, len - *done);
    memcpy((char *)to + *done, heddle_ram_bytes(s->ram, pte >> HEDDLE_PAGE_SHIFT) + (at & (HEDDLE_PAGE_SIZE - 1)), n);
    was_read(s->ram, pte >> HEDDLE_PAGE_SHIFT, at, n);
    *done += n;
  }
  return HEDDLE_WALK_OK;
}

enum heddle_walk heddle_space_write(struct heddle_space *s, uint64_t va, const void *from, size_t len,
                                    size_t *done) {
  *done = 0;
  while (*done < len) {
    uint64_t pte, at = va + *done;
    enum heddle_walk w = heddle_space_walk(s, at, HEDDLE_WRITE, true, &pte);
    if (w) return w;
    size_t n = in_page(at, len - *done);
    uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
    memcpy(heddle_ram_bytes(s->ram, page) + (at & (HEDDLE_PAGE_SIZE - 1)), (const char *)from + *done, n);
    heddle_ram_written(s->ram, page);
    if (s->ram->observer) s->ram->observer->written(s->ram->observed_by, page, at, (const char *)from + *done, n);
    *done += n;
  }
  return HEDDLE_WALK_OK;
}

// Copies bytes up to and including a zero byte, at most max, and returns their number. *why is not
// OK if an unreadable page ended the copy.
size_t heddle_space_read_string(struct heddle_space *s, uint64_t va, char *to, size_t max,
                                enum heddle_walk *why) {
  size_t done = 0;
  *why = HEDDLE_WALK_OK;
  while (done < max) {
    uint64_t pte, at = va + done;
    *why = heddle_space_walk(s, at, HEDDLE_READ, true, &pte);
    if (*why) break;
    size_t n = in_page(at, max - done);
    const uint8_t *from = heddle_ram_bytes(s->ram, pte >> HEDDLE_PAGE_SHIFT) + (at & (HEDDLE_PAGE_SIZE - 1));
    const uint8_t *end = memchr(from, 0, n);
    if (end) n = (size_t)(end - from) + 1;
    memcpy(to + done, from, n);
    was_read(s->ram, pte >> HEDDLE_PAGE_SHIFT, at, n);
    done += n;
    if (end) break;
  }
  return done;
}
