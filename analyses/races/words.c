// Synchronization words: bytes that an atomic instruction accesses are synchronization from then on. A load of
// them acquires, a store releases, and they do not race. An atomic load or store of a programming language may
// be a plain one in machine code, so what tells is the location, or the source that the instruction was compiled from.
#include "races.h"

#include <stdlib.h>
#include <string.h>

static bool has_byte(const struct races_words *w, unsigned at) { return w->bytes[at / 64] >> at % 64 & 1; }

static unsigned unit_bytes(const struct races_words *w, unsigned unit) {
  unsigned from = unit * UNIT_BYTES;
  return (unsigned)(w->bytes[from / 64] >> from % 64) & ((1u << UNIT_BYTES) - 1);
}

// Reports whether one of the bytes [from, to) is of a synchronization word.
bool races_has_words(const struct races_page *p, unsigned from, unsigned to) {
  if (!p->words) return false;
  for (unsigned at = from, end; at < to; at = end)
    if (races_bits_at(at, to, &end) & p->words->bytes[at / 64]) return true;
  return false;
}

// Finds the next bytes, from *from up to to, that are of no synchronization word. Returns false if there are
// none, otherwise *from is the first one and *end that after the last one.
bool races_plain_bytes(const struct races_page *p, unsigned *from, unsigned to, unsigned *end) {
  while (*from < to && has_byte(p->words, *from)) ++*from;
  for (*end = *from; *end < to && !has_byte(p->words, *end);) ++*end;
  return *from < to;
}

// Removes the bytes [from, to) from those that a thread has touched, as far as they are of synchronization words.
void races_untouch_words(const struct races_page *p, struct races_touched *t, unsigned from, unsigned to) {
  for (unsigned i = from / 64; i <= (to - 1) / 64; i++)
    for (unsigned k = 0; k < RACES_EFFECTS; k++) races_lose(t, k, i, p->words->bytes[i]);
}

// ---- making -------------------------------------------------------------------------------

static struct races_clock *clock_at(struct races_words *w, unsigned at) {
  struct races_clock **c = &w->clocks[at / UNIT_BYTES];
  return *c ? *c : (*c = races_new_clock());
}

// The last write of a byte, NULL if none is remembered.
static const struct races_mark *last_write(struct races_shadow *s, unsigned at) {
  unsigned word = at / WORD_SIZE, lo = at % WORD_SIZE;
  if (!s || !(s->known[word] >> lo & 1)) return NULL;
  while (!(s->starts[word] >> lo & 1)) lo--;
  const struct races_mark *m = &races_part_state(s, word, races_part_number(s->starts[word], lo))->write;
  return races_is_used(m) ? m : NULL;
}

// Makes the bytes [from, to) of a page synchronization. A plain store before that was a release, of which the
// segment is known.
void races_make_words(struct races_detector *d, struct races_page *p, unsigned from, unsigned to) {
  if (!p->words && !(p->words = calloc(1, sizeof *p->words))) abort();
  for (unsigned at = from; at < to; at++) {
    if (has_byte(p->words, at)) continue;
    const struct races_mark *m = last_write(p->shadow, at);
    if (m) races_release_late(d, races_thread_of(d, m), races_segment_of(d, m), clock_at(p->words, at));
    races_forget(d, (p->number << PAGE_SHIFT) + at, (p->number << PAGE_SHIFT) + at + 1);
    p->words->bytes[at / 64] |= (uint64_t)1 << at % 64;
  }
}

// The bytes [from, to) are synchronization words no more.
void races_remove_words(struct races_page *p, unsigned from, unsigned to) {
  struct races_words *w = p->words;
  if (!w) return;
  for (unsigned at = from, end; at < to; at = end) {
    uint64_t bits = races_bits_at(at, to, &end);
    w->bytes[at / 64] &= ~bits;
  }
  for (unsigned unit = from / UNIT_BYTES; unit <= (to - 1) / UNIT_BYTES; unit++) {
    if (unit_bytes(w, unit)) continue;
    races_free_clock(w->clocks[unit]);
    w->clocks[unit] = NULL;
  }
}

void races_drop_words(struct races_page *p) {
  if (p->words) races_remove_words(p, 0, PAGE_BYTES);
  free(p->words);
  p->words = NULL;
}

// Gives a page without synchronization words copies of those of another one.
void races_copy_words(struct races_page *to, const struct races_page *from) {
  if (!from->words) return;
  to->words = races_allocate(NULL, 1, sizeof *to->words);
  *to->words = *from->words;
  for (unsigned unit = 0; unit < PAGE_UNITS; unit++)
    if (to->words->clocks[unit]) to->words->clocks[unit] = races_copy_clock(from->words->clocks[unit]);
}

// ---- accesses -----------------------------------------------------------------------------

// A thread loads the bytes [from, to).
void races_acquire_words(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to) {
  for (unsigned unit = from / UNIT_BYTES; unit <= (to - 1) / UNIT_BYTES; unit++)
    if (p->words->clocks[unit]) races_acquire(d, thread, p->words->clocks[unit]);
}

// A thread stores the bytes [from, to). The store replaces those before it, unless others of the same unit are left.
void races_release_words(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to) {
  for (unsigned unit = from / UNIT_BYTES; unit <= (to - 1) / UNIT_BYTES; unit++) {
    unsigned bytes = unit_bytes(p->words, unit), start = unit * UNIT_BYTES;
    bool whole = from <= start && to >= start + UNIT_BYTES;
    if (bytes) races_release(d, thread, clock_at(p->words, start), whole);
  }
}
