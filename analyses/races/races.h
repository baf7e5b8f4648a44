// The part of the race detector that is executed for each access: shadow memory, the comparison of
// accesses with those before, and the following of a memory log. detector.go and follower.go describe it.
#ifndef HEDDLE_RACES_H
#define HEDDLE_RACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memlog.h"

#define WORD_SIZE 8u
#define PAGE_SHIFT 12u
#define PAGE_BYTES 4096u
#define PAGE_WORDS (PAGE_BYTES / WORD_SIZE)

// Fields of a description that share a number.
#define PC_BITS 48u
#define PC_MASK (((uint64_t)1 << PC_BITS) - 1)
#define SIZE_SHIFT PC_BITS  // 5 bits: 0 stands for more than 31
#define SIZE_MASK 31u
#define FLAG_ATOMIC ((uint64_t)1 << 54)
#define FLAG_SILENT ((uint64_t)1 << 55)  // wrote the value that was there already
#define FLAG_OTHER ((uint64_t)1 << 56)   // no instruction's access
#define PART_SHIFT 57u                   // 3 bits
#define PARTS_SHIFT 60u                  // 4 bits

#define THREAD_BITS 20u
#define THREAD_MASK (((uint32_t)1 << THREAD_BITS) - 1)

// An access that is remembered. There are several for each word of memory, so what many have in common is
// elsewhere. marks.c describes it.
struct races_mark {
  uint32_t site;      // 0: it is not used
  uint32_t epoch;
  uint32_t at;        // the place in the trace, from that of the epoch on
  uint32_t branches;
};

// What accesses of an instruction have in common.
struct races_site {
  uint64_t what;   // pc, size and flags
  uint32_t stack;
  uint32_t used;
};

// A part of a thread's segment.
struct races_epoch {
  uint64_t at;  // its place in the trace
  uint32_t thread, segment, syncs;
  uint32_t used;
};

// Numbers from 1 on. Unused ones are given again.
struct races_numbers {
  uint32_t n;      // the greatest that was ever given
  uint32_t next;   // those below it are in use
  uint32_t most;   // when as many have been given, those in use are looked for
};

// All of an access that is remembered.
struct races_description {
  uint64_t what;   // pc, size and flags
  uint64_t when;   // thread, and above it the place in the trace
  uint64_t order;  // segment, and above it the number of synchronization operations
  uint64_t calls;  // stack, and above it branches
};

// The last write of some bytes and, of one thread, the last read since.
struct races_state {
  struct races_mark write, read;
};

// The last reads of further threads.
struct races_reads {
  uint32_t n, room;
  struct races_mark *marks;
};

// The states of a word's further parts in their order and, if several threads read some part, the
// further reads of each part.
struct races_parts {
  uint32_t kind;  // room for 1, 3 or 7 states
  struct races_reads *reads;
  struct races_state states[];
};

// The states of the words of a page. The bytes of a word that were always accessed together are a part
// of it and have one state; parts are adjacent bytes. Bit n of starts is set if a part begins at byte
// n, of known if byte n is in one. The first part's state is in states, those of others in more.
struct races_shadow {
  struct races_state states[PAGE_WORDS];
  struct races_parts *more[PAGE_WORDS];
  uint8_t starts[PAGE_WORDS], known[PAGE_WORDS];
};

// Kinds of accesses. One of a higher kind conflicts with all with which those of lower kinds do.
enum races_effect { RACES_READS, RACES_REWRITES, RACES_CHANGES, RACES_EFFECTS };

// Words of a set of bytes of a page.
#define SET_WORDS (PAGE_BYTES / 64)

// The bytes of a page that a thread has accessed in a segment, by effect: those of higher ones are also in
// the lower ones. repeats.c describes it.
struct races_touched {
  struct races_touched *next;  // of the page
  uint64_t owner;              // thread and segment: races_owner
  uint32_t full;               // the effects, from the lowest on, with which it has all bytes of the page
  uint32_t n[RACES_EFFECTS];   // the number of bytes
  uint64_t unused[4];          // a line
  uint64_t bytes[RACES_EFFECTS][SET_WORDS];
};

// For each thread the last of its segments that is known to have ended.
struct races_clock {
  uint32_t n;  // threads; those after them have 0
  uint32_t *segments;
};

// Synchronization words of a page have a clock for each unit of four bytes.
#define UNIT_BYTES 4u
#define PAGE_UNITS (PAGE_BYTES / UNIT_BYTES)

// The bytes of a page that are synchronization words, and what their stores released. words.c describes it.
struct races_words {
  uint64_t bytes[SET_WORDS];
  struct races_clock *clocks[PAGE_UNITS];  // NULL: nothing
};

// A page of memory. It stays where it is until the detector is closed.
struct races_page {
  uint64_t number;
  struct races_shadow *shadow;    // NULL: no access is remembered
  uint8_t *content;               // NULL: not known
  struct races_touched *touched;  // a list, at most one of each thread
  struct races_words *words;      // NULL: none
};

// A table from numbers to numbers. A key is stored plus 1; 0 is an empty place.
struct races_table {
  uint64_t *keys, *values;
  size_t n, room;
};

// Memory for shadows and parts, which is divided into pieces of a few sizes and freed as a whole.
struct races_memory {
  struct races_chunk *chunks;  // the last one first
  size_t left;                 // bytes of it that were never used
  void *freed[6];              // pieces that were freed, by size: each has the address of the next
};

// A thread, as far as accesses are compared.
struct races_thread {
  uint32_t segment;
  struct races_clock ended;  // before the present segment
  uint32_t epoch;            // the present one, or 0
  uint64_t syncs, base;
  int64_t process;
};

struct races_access {
  uint64_t addr, size, first, rest;
  uint64_t pc, branches, at;
  uint64_t value, old;
  uint32_t thread, stack;
  bool write, atomic, other, valued;
  uint8_t part, parts;
};

enum races_kind { RACES_WRITE_WRITE, RACES_WRITE_READ, RACES_READ_WRITE };

// Two accesses that nothing orders.
struct races_found {
  struct races_description before, now;
  uint64_t addr;
  uint64_t kind;
};

struct races_detector {
  bool omits;                // repeated accesses are not compared
  bool full;                 // a thread has more segments than can be numbered
  struct races_table pages;  // pointers to pages, by number
  struct races_page *last;   // that was found, or NULL
  uint64_t losses;           // how often a thread that had touched all bytes of a page lost some
  struct races_memory memory;
  struct races_site *sites;
  struct races_numbers site_numbers;
  uint32_t *site_table;      // numbers of sites by hash, 0: free
  size_t sites_room, epochs_room;
  struct races_epoch *epochs;
  struct races_numbers epoch_numbers;
  struct races_thread *threads;
  size_t nthreads;
  struct races_clock position;  // of each thread, the segments that its operations have ended
  struct races_found *found;  // races of the last access
  size_t nfound, found_room;
};

void *races_allocate(void *p, size_t n, size_t size);

bool races_table_get(const struct races_table *t, uint64_t key, uint64_t *value);
void races_table_set(struct races_table *t, uint64_t key, uint64_t value);
void races_table_remove(struct races_table *t, uint64_t key);
void races_table_clear(struct races_table *t);

// shadow.c
struct races_page *races_page_at(struct races_detector *d, uint64_t number);
struct races_page *races_known_page(struct races_detector *d, uint64_t number);
struct races_shadow *races_new_shadow(struct races_detector *d, struct races_page *p);
void races_drop_shadow(struct races_detector *d, struct races_page *p);
struct races_touched *races_new_touched(struct races_detector *d);
uint8_t *races_new_content(struct races_detector *d);
void races_free_memory(struct races_memory *m);
void races_forget(struct races_detector *d, uint64_t from, uint64_t to);
void races_copy_page(struct races_detector *d, uint64_t to, uint64_t from, int64_t process);
void races_add_reader(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned part, const struct races_mark *now);
void races_divide(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned lo, unsigned hi);
void races_remove_part(struct races_shadow *s, unsigned word, unsigned lo);

// marks.c
struct races_mark races_new_mark(struct races_detector *d, uint64_t what, uint32_t stack, uint32_t thread, uint64_t at, uint32_t branches);
struct races_description races_describe(const struct races_detector *d, const struct races_mark *m);
void races_free_marks(struct races_detector *d);

// repeats.c
struct races_touched *races_touched_at(struct races_detector *d, struct races_page *p, uint32_t thread);
void races_touch(struct races_touched *t, unsigned from, unsigned to, enum races_effect effect);
void races_untouch(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to, bool write);
void races_untouch_all(struct races_detector *d, struct races_page *p, unsigned from, unsigned to);
void races_lose(struct races_touched *t, enum races_effect effect, unsigned word, uint64_t bits);

// clock.c
struct races_clock *races_new_clock(void);
void races_free_clock(struct races_clock *c);
struct races_clock *races_copy_clock(const struct races_clock *c);
void races_acquire(struct races_detector *d, uint32_t thread, const struct races_clock *c);
void races_release(struct races_detector *d, uint32_t thread, struct races_clock *c, bool replaces);
void races_release_late(struct races_detector *d, uint32_t thread, uint32_t segment, struct races_clock *c);
void races_order(struct races_detector *d, uint32_t before, uint32_t after);
void races_next_position(struct races_detector *d, uint32_t thread);

// words.c
bool races_has_words(const struct races_page *p, unsigned from, unsigned to);
bool races_plain_bytes(const struct races_page *p, unsigned *from, unsigned to, unsigned *end);
void races_untouch_words(const struct races_page *p, struct races_touched *t, unsigned from, unsigned to);
void races_make_words(struct races_detector *d, struct races_page *p, unsigned from, unsigned to);
void races_remove_words(struct races_page *p, unsigned from, unsigned to);
void races_drop_words(struct races_page *p);
void races_copy_words(struct races_page *to, const struct races_page *from);
void races_acquire_words(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to);
void races_release_words(struct races_detector *d, struct races_page *p, uint32_t thread, unsigned from, unsigned to);

// detector.c
struct races_detector *races_open(void);
void races_close(struct races_detector *d);
struct races_thread *races_thread_at(struct races_detector *d, uint32_t n);
void races_access(struct races_detector *d, const struct races_access *a);
void races_access_page(struct races_detector *d, const struct races_access *a, struct races_page *page,
                       struct races_touched *touched);

static inline bool races_is_used(const struct races_mark *m) { return m->site; }
static inline uint32_t races_thread_of(const struct races_detector *d, const struct races_mark *m) { return d->epochs[m->epoch].thread; }

// The number of bits of a byte.
static inline unsigned races_bits(unsigned byte) {
  byte = byte - (byte >> 1 & 0x55);
  byte = (byte & 0x33) + (byte >> 2 & 0x33);
  return (byte + (byte >> 4)) & 0x0f;
}

// The number of the part that begins at byte lo.
static inline unsigned races_part_number(unsigned starts, unsigned lo) { return races_bits(starts & ((1u << lo) - 1)); }

static inline uint32_t races_segment_of(const struct races_detector *d, const struct races_mark *m) { return d->epochs[m->epoch].segment; }

// A number for a thread in its present segment.
static inline uint64_t races_owner(const struct races_detector *d, uint32_t thread) {
  return (uint64_t)d->threads[thread].segment << THREAD_BITS | thread;
}

// The bits of the bytes from at on that are in the same word of a set of bytes, up to the byte to, which is
// returned in *end.
static inline uint64_t races_bits_at(unsigned at, unsigned to, unsigned *end) {
  *end = (at | 63) + 1 < to ? (at | 63) + 1 : to;
  return UINT64_MAX >> (64 - (*end - at)) << at % 64;
}

// Reports whether a set has all bytes [from, to) of a page.
static inline bool races_is_touched(const uint64_t *bytes, unsigned from, unsigned to) {
  if (__builtin_expect(from / 64 == (to - 1) / 64, 1)) {
    uint64_t bits = UINT64_MAX >> (64 - (to - from)) << from % 64;
    return (bytes[from / 64] & bits) == bits;
  }
  for (unsigned at = from, end; at < to; at = end) {
    uint64_t bits = races_bits_at(at, to, &end);
    if ((bytes[at / 64] & bits) != bits) return false;
  }
  return true;
}

// The effect of an access. A write of which the values are not known may change the bytes.
static inline enum races_effect races_effect_of(const struct races_access *a) {
  if (!a->write) return RACES_READS;
  return a->valued && a->value == a->old ? RACES_REWRITES : RACES_CHANGES;
}

// The list of further reads of a part, NULL if the word has none.
static inline struct races_reads *races_further_reads(struct races_shadow *s, unsigned word, unsigned part) {
  struct races_parts *m = s->more[word];
  return m && m->reads ? &m->reads[part] : NULL;
}

// The state of a part, by its number.
static inline struct races_state *races_part_state(struct races_shadow *s, unsigned word, unsigned part) {
  return part ? &s->more[word]->states[part - 1] : &s->states[word];
}

#endif
