// Records: the part of the encoder that every access passes. It is compiled for every processor and for those
// with AVX2.
#ifndef HEDDLE_MEMTRACE_RECORD_H
#define HEDDLE_MEMTRACE_RECORD_H

#include <string.h>

#include "encode.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

// The bytes that one record can take, definition included.
#define RECORD_ROOM 16384u

// ---- output ---------------------------------------------------------------------------------

static inline void make_room(struct memtrace_buffer *b, size_t n) {
  if (__builtin_expect(b->n + n > b->room, 0)) memtrace_grow(b, n);
}

static inline void put_byte(struct memtrace_encoder *e, uint8_t v) { e->out.bytes[e->out.n++] = v; }

static inline void put_number(struct memtrace_encoder *e, uint64_t v) {
  for (; v >= 0x80; v >>= 7) put_byte(e, (uint8_t)(v | 0x80));
  put_byte(e, (uint8_t)v);
}

static inline uint64_t zigzag(uint64_t v) { return v << 1 ^ (uint64_t)((int64_t)v >> 63); }

static inline void put_head(struct memtrace_encoder *e, unsigned head) {
  unsigned run = e->run < HEAD_RUN_MOST ? (unsigned)e->run : HEAD_RUN_MOST;
  put_byte(e, (uint8_t)(head | run << HEAD_RUN_SHIFT));
  if (run == HEAD_RUN_MOST) put_number(e, e->run - HEAD_RUN_MOST);
  e->run = 0;
}

// ---- words ----------------------------------------------------------------------------------

typedef uint64_t four __attribute__((vector_size(32), aligned(8)));

// The words that are not predicted, as bits.
static inline uint64_t find_misses(const struct memtrace_form *f, const uint64_t *w) {
  const uint64_t *last = f->x, *difference = f->x + f->padded, *mask = f->x + 2 * f->padded;
  uint64_t misses = 0;
  for (uint32_t i = 0; i < f->padded; i += 4) {
    four miss = (*(const four *)&w[i] ^ (*(const four *)&last[i] + *(const four *)&difference[i])) & *(const four *)&mask[i];
#ifdef __AVX2__
    __m256i hit = _mm256_cmpeq_epi64((__m256i)miss, _mm256_setzero_si256());
    misses |= (uint64_t)(~(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(hit)) & 15) << i;
#else
    misses |= (uint64_t)((miss[0] != 0) | (miss[1] != 0) << 1 | (miss[2] != 0) << 2 | (miss[3] != 0) << 3) << i;
#endif
  }
  return misses;
}

// Keeps the words of a record that was predicted.
static inline void keep_words(struct memtrace_form *f, const uint64_t *w) {
  for (uint32_t i = 0; i < f->padded; i += 4) *(four *)&f->x[i] = *(const four *)&w[i];
}

// Keeps the words of another one.
static inline void learn_words(struct memtrace_form *f, const uint64_t *w) {
  uint64_t *last = f->x, *difference = f->x + f->padded;
  for (uint32_t i = 0; i < f->padded; i += 4) {
    four now = *(const four *)&w[i];
    *(four *)&difference[i] = now - *(four *)&last[i];
    *(four *)&last[i] = now;
  }
}

// How words are given, and where their bytes are put.
struct given {
  struct memtrace_pattern pattern;
  uint64_t codes;  // the last, of which there are n % 16
  unsigned n;
  uint8_t *bytes;
};

static inline void give(struct given *g, unsigned code, uint64_t number) {
  g->codes |= (uint64_t)code << 4 * (g->n % 16);
  if (__builtin_expect(++g->n % 16 == 0, 0)) {
    g->pattern.codes[g->n / 16 - 1] = g->codes;
    g->codes = 0;
  }
  memcpy(g->bytes, &number, 8);
  g->bytes += code <= 8 ? code : 0;
}

// The number of bytes of a number, 0 to 8.
static inline unsigned bytes_of(uint64_t number) { return number ? (71u - (unsigned)__builtin_clzll(number)) / 8 : 0; }

static inline void give_addresses(struct given *g, const struct memtrace_form *f, const uint64_t *w, uint64_t misses) {
  for (; misses; misses &= misses - 1) {
    unsigned i = (unsigned)__builtin_ctzll(misses), before = f->word[i].before;
    uint64_t moved = w[i] - f->x[i], number = zigzag(moved);
    unsigned bytes = bytes_of(number);
    give(g, before != NO_WORD && moved == w[before % FORM_WORDS] - f->x[before % FORM_WORDS] ? MISS_OTHER : bytes, number);
  }
}

static inline void give_values(struct memtrace_encoder *e, struct given *g, const struct memtrace_form *f, const uint64_t *w,
                               uint64_t misses) {
  const uint64_t *masks = f->x + 2 * f->padded;
  for (; misses; misses &= misses - 1) {
    unsigned i = (unsigned)__builtin_ctzll(misses);
    const struct memtrace_word *word = &f->word[i];
    uint64_t addr = word->at + (word->address ? w[word->address - 1] : 0);
    uint64_t *kept = &e->values[memtrace_slot(addr)], value = w[i] & masks[i], old = *kept & masks[i];
    uint64_t number = zigzag((uint64_t)((int64_t)((w[i] - f->x[i]) << word->shift) >> word->shift));
    *kept = value;
    give(g, old == value ? MISS_OTHER : bytes_of(number), number);
  }
}

static inline bool is_same(const struct memtrace_pattern *a, const struct memtrace_pattern *b) {
  return !((a->words ^ b->words) | (a->codes[0] ^ b->codes[0]) | (a->codes[1] ^ b->codes[1]) | (a->codes[2] ^ b->codes[2]) |
           (a->codes[3] ^ b->codes[3]));
}

// Returns which of the form's patterns it is. A new one becomes one of these.
static inline unsigned find_pattern(struct memtrace_form *f, const struct memtrace_pattern *p) {
  unsigned same = 0;
  for (unsigned i = 0; i < PATTERNS; i++) same |= (unsigned)is_same(&f->patterns[i], p) << i;
  if (same) return (unsigned)__builtin_ctz(same);
  f->patterns[f->replaced] = *p;
  f->replaced = (f->replaced + 1) % PATTERNS;
  return PATTERN_NEW;
}

// Writes the bytes of words that are not predicted, and sets how they are given.
static inline void put_words(struct memtrace_encoder *e, const struct memtrace_form *f, const uint64_t *w, uint64_t misses,
                             struct given *g) {
  *g = (struct given){.pattern = {.words = misses}, .bytes = e->numbers.bytes + e->numbers.n};
  give_addresses(g, f, w, misses & ~f->values);
  give_values(e, g, f, w, misses & f->values);
  if (g->n % 16) g->pattern.codes[g->n / 16] = g->codes;
  e->numbers.n = (size_t)(g->bytes - e->numbers.bytes);
}

static inline void put_pattern(struct memtrace_encoder *e, const struct memtrace_form *f, const struct given *g) {
  uint8_t *out = e->out.bytes + e->out.n;
  unsigned bytes = (f->words + 7) / 8;
  memcpy(out, &g->pattern.words, 8);
  memcpy(out + bytes, g->pattern.codes, sizeof g->pattern.codes);
  e->out.n += bytes + (g->n + 1) / 2;
}

// ---- records --------------------------------------------------------------------------------

static inline void note_successor(struct memtrace_form *last, struct memtrace_form *f, uint64_t branches) {
  if (last->next[0] != f) {
    last->next[1] = last->next[0];
    last->branches[1] = last->branches[0];
    last->next[0] = f;
  }
  last->branches[0] = branches;
}

// Writes a record of which not all is predicted. The definition of a new form is a, with flags.
static inline void put_record(struct memtrace_encoder *e, struct memtrace_form *f, const uint64_t *w, uint64_t misses, uint64_t later,
                              const struct heddle_mem_access *a, unsigned flags) {
  struct memtrace_form *last = e->last;
  unsigned which = f == last->next[0] ? HEAD_FIRST : f == last->next[1] ? HEAD_SECOND : HEAD_NUMBER;
  uint64_t expected = which == HEAD_NUMBER ? 0 : last->branches[which];
  unsigned pattern = PATTERN_NONE;
  struct given g;
  make_room(&e->out, RECORD_ROOM);
  make_room(&e->numbers, RECORD_ROOM);
  if (misses) {
    put_words(e, f, w, misses, &g);
    pattern = find_pattern(f, &g.pattern);
  }
  put_head(e, which | (later != expected ? HEAD_BRANCHES : 0) | pattern << HEAD_PATTERN_SHIFT);
  if (which == HEAD_NUMBER) memtrace_put_form(e, f, a, flags);
  if (later != expected) put_number(e, later);
  if (pattern == PATTERN_NEW) put_pattern(e, f, &g);
  learn_words(f, w);
  note_successor(last, f, later);
}

static inline bool is_full(const struct memtrace_encoder *e) {
  return e->accesses >= e->most || e->out.n + e->numbers.n - e->mapped >= MEMTRACE_MAX_BYTES || e->data >= MEMTRACE_MAX_DATA;
}

// Takes a record: words of accesses.
static inline void take_record(struct memtrace_encoder *e, struct memtrace_form *f, const uint64_t *w, uint64_t now,
                               const struct heddle_mem_access *a, unsigned flags) {
  uint64_t misses = find_misses(f, w), later = now - e->branches;
  if (misses || f != e->last->next[0] || later != e->last->branches[0]) {
    put_record(e, f, w, misses, later, a, flags);
  } else {
    keep_words(f, w);
    e->run++;
  }
  e->last = f;
  e->branches = now;
  e->accesses += f->accesses;
}

// Takes accesses of a block of the engine: see struct heddle_mem_consumer.
static inline size_t take_block(struct memtrace_encoder *e, const struct heddle_mem_access *a, size_t n, const uint64_t *record,
                                uint32_t branches) {
  struct memtrace_form *f = e->last->next[0];
  if (__builtin_expect(e->consumer.era != e->era, 0)) memtrace_forget_addresses(e);
  if (f->key != (uint64_t)(uintptr_t)a || f->kind != (KIND_BLOCK | (uint32_t)n)) f = e->last->next[1];
  if (f->key != (uint64_t)(uintptr_t)a || f->kind != (KIND_BLOCK | (uint32_t)n)) f = memtrace_block_form(e, a, (uint32_t)n);
  if (!f) return 0;
  size_t taken = f->accesses;
  take_record(e, f, record + f->first, e->start + (uint32_t)(branches - e->counted), a, 0);
  if (__builtin_expect(is_full(e), 0)) memtrace_hold(e);
  return taken;
}

#endif
