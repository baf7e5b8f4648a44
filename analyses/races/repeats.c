// Repeated accesses. A thread's access whose bytes it has all accessed in its present segment with the same
// effect or a higher one, and no other thread since then with one that conflicts with the access at hand, needs
// no comparison: what races with it races with those before. FastTrack calls them accesses of the same epoch.
// Here an access that races with an earlier one has no repetitions, so all that race with that are reported.
//
// A thread that has touched a byte has a mark of its present segment in the byte's state, since only
// conflicting accesses remove it. So the states tell whose bytes an access of another thread concerns.
#include "races.h"

#include <string.h>

// ---- sets of bytes ------------------------------------------------------------------------

void races_remove_bytes(uint64_t *bytes, unsigned from, unsigned to) {
  for (unsigned at = from, end; at < to; at = end) {
    uint64_t bits = races_bits_at(at, to, &end);
    bytes[at / 64] &= ~bits;
  }
}

// ---- bytes of threads ---------------------------------------------------------------------

// The bytes of a page that a thread has accessed in its present segment. Those of a segment that has ended, of
// whatever thread, are replaced.
struct races_touched *races_touched_at(struct races_detector *d, struct races_page *p, uint32_t thread) {
  uint64_t owner = races_owner(d, thread);
  struct races_touched *found = NULL;
  for (struct races_touched *t = p->touched; t; t = t->next) {
    uint32_t other = (uint32_t)t->owner & THREAD_MASK;
    if (t->owner == owner) return t;
    if (t->owner != races_owner(d, other)) found = t;
  }
  if (found) {
    memset(found->bytes, 0, sizeof found->bytes);
  } else {
    found = races_new_touched(d);
    found->next = p->touched;
    p->touched = found;
  }
  found->owner = owner;
  return found;
}

// Notes an access to the bytes [from, to).
void races_touch(struct races_touched *t, unsigned from, unsigned to, enum races_effect effect) {
  for (unsigned at = from, end; at < to; at = end) {
    uint64_t bits = races_bits_at(at, to, &end);
    for (unsigned k = 0; k <= effect; k++) t->bytes[k][at / 64] |= bits;
  }
}

// Removes the bytes [from, to) of a thread: another thread has read or written them.
void races_untouch(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to, bool write) {
  struct races_touched *t = p->touched;
  while (t && t->owner != races_owner(d, thread)) t = t->next;
  if (!t) return;
  for (unsigned k = write ? RACES_READS : RACES_REWRITES; k < RACES_EFFECTS; k++) races_remove_bytes(t->bytes[k], from, to);
}

// Removes the bytes [from, to) of all threads: the accesses to them are forgotten.
void races_untouch_all(struct races_page *p, unsigned from, unsigned to) {
  for (struct races_touched *t = p->touched; t; t = t->next)
    for (unsigned k = 0; k < RACES_EFFECTS; k++) races_remove_bytes(t->bytes[k], from, to);
}
