// Repeated accesses. A thread's access whose bytes it has all accessed in its present segment with the same
// effect or a higher one, and no other thread since then with one that conflicts with the access at hand, needs
// no comparison: what races with it races with those before. FastTrack calls them accesses of the same epoch.
// Here an access that races with an earlier one has no repetitions, so all that race with that are reported.
//
// The bytes of a page are counted for each effect, so that it is known when a thread has touched all: follow.c then
// reads no bits. If such a thread loses a byte, which other threads' accesses, synchronization words and forgotten
// memory cause, the number of losses tells follow.c that what it knows may no longer hold.
//
// A thread that has touched a byte has a mark of its present segment in the byte's state, since only
// conflicting accesses remove it. So the states tell whose bytes an access of another thread concerns.
#include "races.h"

#include <string.h>

// ---- numbers of bytes ---------------------------------------------------------------------

// Notes how many bytes there are with an effect.
static void set_number(struct races_touched *t, enum races_effect effect, uint32_t n) {
  t->n[effect] = n;
  if (t->full == effect && n == PAGE_BYTES) t->full = effect + 1;
  if (t->full > effect && n < PAGE_BYTES) t->full = effect;
}

// Adds bytes of a word.
static inline void gain(struct races_touched *t, enum races_effect effect, unsigned word, uint64_t bits) {
  uint64_t added = bits & ~t->bytes[effect][word];
  if (!added) return;
  t->bytes[effect][word] |= added;
  set_number(t, effect, t->n[effect] + (uint32_t)__builtin_popcountll(added));
}

// Removes bytes of a word.
void races_lose(struct races_touched *t, enum races_effect effect, unsigned word, uint64_t bits) {
  uint64_t removed = bits & t->bytes[effect][word];
  if (!removed) return;
  t->bytes[effect][word] &= ~removed;
  set_number(t, effect, t->n[effect] - (uint32_t)__builtin_popcountll(removed));
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
    memset(found->n, 0, sizeof found->n);
    found->full = 0;
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
    for (unsigned k = 0; k <= effect; k++) gain(t, k, at / 64, bits);
  }
}

// Removes the bytes [from, to) from those that a thread has touched with an effect or a higher one.
static void remove_bytes(struct races_detector *d, struct races_touched *t, enum races_effect effect, unsigned from, unsigned to) {
  uint32_t full = t->full;
  for (unsigned at = from, end; at < to; at = end) {
    uint64_t bits = races_bits_at(at, to, &end);
    for (unsigned k = effect; k < RACES_EFFECTS; k++) races_lose(t, k, at / 64, bits);
  }
  d->losses += t->full < full;
}

// Removes the bytes [from, to) of a thread: another thread has read or written them.
void races_untouch(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to, bool write) {
  struct races_touched *t = p->touched;
  while (t && t->owner != races_owner(d, thread)) t = t->next;
  if (!t) return;
  remove_bytes(d, t, write ? RACES_READS : RACES_REWRITES, from, to);
}

// Removes the bytes [from, to) of all threads: the accesses to them are forgotten.
void races_untouch_all(struct races_detector *d, struct races_page *p, unsigned from, unsigned to) {
  for (struct races_touched *t = p->touched; t; t = t->next) remove_bytes(d, t, RACES_READS, from, to);
}
