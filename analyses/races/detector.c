#include "races.h"

#include <stdlib.h>
#include <string.h>

// ---- opening ------------------------------------------------------------------------------

// Returns a detector without threads, or NULL if there is no memory.
struct races_detector *races_open(void) { return calloc(1, sizeof(struct races_detector)); }

void races_close(struct races_detector *d) {
  for (size_t i = 0; i < d->pages.room; i++) {
    if (!d->pages.keys[i]) continue;
    struct races_page *p = (struct races_page *)(uintptr_t)d->pages.values[i];
    races_drop_shadow(d, p);
    races_drop_words(p);
    free(p);
  }
  races_free_memory(&d->memory);
  races_free_marks(d);
  races_table_clear(&d->pages);
  for (size_t i = 0; i < d->nthreads; i++) free(d->threads[i].ended.segments);
  free(d->threads);
  free(d->position.segments);
  free(d->found);
  free(d);
}

// Returns the state of a thread, from its first segment on. It is valid until the next call.
struct races_thread *races_thread_at(struct races_detector *d, uint32_t n) {
  if (n >= d->nthreads) {
    size_t count = (size_t)n + 1 > 2 * d->nthreads ? (size_t)n + 1 : 2 * d->nthreads;
    d->threads = races_allocate(d->threads, count, sizeof *d->threads);
    for (; d->nthreads < count; d->nthreads++) d->threads[d->nthreads] = (struct races_thread){.segment = 1};
  }
  return &d->threads[n];
}

// ---- comparison ---------------------------------------------------------------------------

// Reports whether two marks are of the same instance of an instruction.
static bool is_same_instance(const struct races_description *a, const struct races_description *b) {
  const uint64_t instance = PC_MASK | UINT64_MAX << PART_SHIFT;
  return !((a->what ^ b->what) & instance) && a->when == b->when && a->order >> 32 == b->order >> 32 &&
         a->calls >> 32 == b->calls >> 32;
}

// Notes a race, unless both are atomic, or it is that of the same two instructions at another byte.
static void note_race(struct races_detector *d, const struct races_mark *earlier, uint64_t addr, enum races_kind kind,
                      const struct races_mark *later) {
  struct races_description before = races_describe(d, earlier), now = races_describe(d, later);
  if (before.what & now.what & FLAG_ATOMIC) return;
  for (size_t i = 0; i < d->nfound; i++)
    if (is_same_instance(&d->found[i].before, &before)) return;
  if (d->nfound == d->found_room) {
    d->found_room = d->found_room ? 2 * d->found_room : 16;
    d->found = races_allocate(d->found, d->found_room, sizeof *d->found);
  }
  d->found[d->nfound++] = (struct races_found){.before = before, .now = now, .addr = addr, .kind = kind};
}

// The access at hand, as far as it lies in a page.
struct present {
  struct races_detector *d;
  const struct races_thread *thread;
  struct races_page *page;
  struct races_shadow *shadow;
  unsigned from, to;  // the bytes of the page
  bool write;
  bool *raced;        // set if it races
  struct races_mark mark;
};

// Reports whether nothing orders a mark and the present access.
static inline bool is_unordered(const struct present *a, const struct races_mark *before) {
  if (!races_is_used(before) || before->epoch == a->mark.epoch) return false;
  uint32_t thread = races_thread_of(a->d, before);
  if (thread == races_thread_of(a->d, &a->mark)) return false;
  const struct races_clock *ended = &a->thread->ended;
  return races_segment_of(a->d, before) > (thread < ended->n ? ended->segments[thread] : 0);
}

// Notes a race. The thread of the access before has its next access to the bytes compared, too.
static __attribute__((noinline)) void take_race(const struct present *a, const struct races_mark *before, unsigned word, unsigned lo,
                                                enum races_kind kind) {
  races_untouch(a->d, a->page, races_thread_of(a->d, before), a->from, a->to, a->write);
  *a->raced = true;
  note_race(a->d, before, (a->page->number << PAGE_SHIFT) + word * WORD_SIZE + lo, kind, &a->mark);
}

static inline void compare(const struct present *a, const struct races_mark *before, unsigned word, unsigned lo, enum races_kind kind) {
  if (__builtin_expect(is_unordered(a, before), 0)) take_race(a, before, word, lo, kind);
}

static __attribute__((noinline)) void compare_further_reads(const struct present *a, struct races_reads *list, unsigned word, unsigned lo) {
  for (uint32_t i = 0; i < list->n; i++) compare(a, &list->marks[i], word, lo, RACES_READ_WRITE);
  list->n = 0;
}

// Compares an access with those before it of the same bytes, which are a part that begins at byte lo,
// and keeps it.
static inline void check_part(const struct present *a, unsigned word, unsigned part, unsigned lo) {
  struct races_state *s = races_part_state(a->shadow, word, part);
  if (!a->write) {
    compare(a, &s->write, word, lo, RACES_WRITE_READ);
    if (!races_is_used(&s->read) || races_thread_of(a->d, &s->read) == races_thread_of(a->d, &a->mark)) s->read = a->mark;
    else races_add_reader(a->d, a->shadow, word, part, &a->mark);
    return;
  }
  if (races_is_used(&s->read)) {
    compare(a, &s->read, word, lo, RACES_READ_WRITE);
    struct races_reads *list = races_further_reads(a->shadow, word, part);
    if (list) compare_further_reads(a, list, word, lo);
    s->read.site = 0;
    if (is_unordered(a, &s->write)) races_untouch(a->d, a->page, races_thread_of(a->d, &s->write), a->from, a->to, true);
  } else {
    compare(a, &s->write, word, lo, RACES_WRITE_WRITE);
  }
  s->write = a->mark;
}

// access_word where the bytes are not those of one part, or not yet.
static __attribute__((noinline)) void access_parts(const struct present *a, unsigned word, unsigned lo, unsigned hi) {
  races_divide(a->d, a->shadow, word, lo, hi);
  for (unsigned at = lo; at < hi; at++) {
    unsigned starts = a->shadow->starts[word];
    if (starts >> at & 1) check_part(a, word, races_part_number(starts, at), at);
  }
  if (!a->write) return;
  // They are the same now.
  for (unsigned at = hi - 1; at > lo; at--)
    if (a->shadow->starts[word] >> at & 1) races_remove_part(a->shadow, word, at);
}

// Looks at the bytes [lo, hi) of a word.
static inline void access_word(const struct present *a, unsigned word, unsigned lo, unsigned hi) {
  unsigned mask = (1u << hi) - (1u << lo), starts = a->shadow->starts[word], known = a->shadow->known[word];
  if ((starts & mask) == 1u << lo && (known & mask) == mask && (hi == WORD_SIZE || ((starts | ~known) >> hi & 1))) {
    check_part(a, word, races_part_number(starts, lo), lo);
    return;
  }
  if (known) {
    access_parts(a, word, lo, hi);
    return;
  }
  a->shadow->starts[word] = (uint8_t)(1u << lo);
  a->shadow->known[word] = (uint8_t)mask;
  if (a->write) a->shadow->states[word].write = a->mark;
  else a->shadow->states[word].read = a->mark;
}

// ---- accesses -----------------------------------------------------------------------------

static inline void begin_access(struct present *p, struct races_detector *d, const struct races_access *a, bool *raced) {
  const struct races_thread *t = races_thread_at(d, a->thread);
  uint64_t branches = a->branches - t->base;
  bool silent = races_effect_of(a) == RACES_REWRITES;
  p->d = d;
  p->thread = t;
  p->write = a->write;
  p->raced = raced;
  uint64_t what = (a->pc & PC_MASK) | (a->size <= SIZE_MASK ? a->size << SIZE_SHIFT : 0) | (a->atomic ? FLAG_ATOMIC : 0) |
                  (silent ? FLAG_SILENT : 0) | (a->other ? FLAG_OTHER : 0) | (uint64_t)a->part << PART_SHIFT |
                  (uint64_t)a->parts << PARTS_SHIFT;
  p->mark = races_new_mark(d, what, a->stack, a->thread, a->at, (uint32_t)(branches < UINT32_MAX ? branches : UINT32_MAX));
}

static inline void access_bytes(struct present *p, unsigned from, unsigned to) {
  p->from = from;
  p->to = to;
  while (from < to) {
    unsigned word = from / WORD_SIZE, lo = from % WORD_SIZE, hi = to - word * WORD_SIZE;
    if (hi > WORD_SIZE) hi = WORD_SIZE;
    access_word(p, word, lo, hi);
    from = word * WORD_SIZE + hi;
  }
}

static __attribute__((noinline)) void access_plain_bytes(struct present *p, unsigned from, unsigned to) {
  for (unsigned end; races_plain_bytes(p->page, &from, to, &end); from = end) access_bytes(p, from, end);
}

static inline void access_page(struct present *p, struct races_page *page, unsigned from, unsigned to) {
  p->page = page;
  p->shadow = page->shadow ? page->shadow : races_new_shadow(p->d, page);
  if (__builtin_expect(!page->words, 1)) access_bytes(p, from, to);
  else access_plain_bytes(p, from, to);
}

// Notes that a thread has touched bytes.
static inline void touch_page(const struct races_page *p, struct races_touched *t, unsigned from, unsigned to, enum races_effect effect) {
  races_touch(t, from, to, effect);
  if (__builtin_expect(p->words != NULL, 0)) races_untouch_words(p, t, from, to);
}

// Reports whether a later access can be a repetition of this one, unless it races. Two atomic ones do not race.
static bool can_repeat(const struct races_access *a) { return !a->atomic && !a->other; }

// Takes an access within one page. Touched has the thread's bytes in it; NULL: repeated accesses are compared, too.
void races_access_page(struct races_detector *d, const struct races_access *a, struct races_page *page,
                       struct races_touched *touched) {
  struct present p;
  bool raced = false;
  unsigned from = (unsigned)(a->addr % PAGE_BYTES), to = from + (unsigned)a->size;
  begin_access(&p, d, a, &raced);
  access_page(&p, page, from, to);
  if (touched && can_repeat(a) && !raced) touch_page(page, touched, from, to, races_effect_of(a));
}

// The part of an access in a page.
struct range {
  uint64_t page;
  unsigned from, to;
};

// Finds the part of an access after the first done bytes, of which there are not all.
static struct range range_at(const struct races_access *a, uint64_t done) {
  bool first = !a->first || done < a->first;
  uint64_t addr = first ? a->addr + done : a->rest + (done - a->first), left = (first && a->first ? a->first : a->size) - done;
  unsigned from = (unsigned)(addr % PAGE_BYTES);
  return (struct range){addr >> PAGE_SHIFT, from, left < PAGE_BYTES - from ? from + (unsigned)left : PAGE_BYTES};
}

static bool is_repeated(struct races_detector *d, const struct races_access *a) {
  for (uint64_t done = 0; done < a->size;) {
    struct range s = range_at(a, done);
    struct races_touched *t = races_touched_at(d, races_page_at(d, s.page), a->thread);
    if (!races_is_touched(t->bytes[races_effect_of(a)], s.from, s.to)) return false;
    done += s.to - s.from;
  }
  return true;
}

// Takes the next access of the run. A report says that memory was freed, whatever its thread did before.
void races_access(struct races_detector *d, const struct races_access *a) {
  struct present p;
  bool raced = false;
  races_thread_at(d, a->thread);
  if (d->omits && !a->other && is_repeated(d, a)) return;
  begin_access(&p, d, a, &raced);
  for (uint64_t done = 0; done < a->size;) {
    struct range s = range_at(a, done);
    access_page(&p, races_page_at(d, s.page), s.from, s.to);
    done += s.to - s.from;
  }
  if (!d->omits || raced || !can_repeat(a)) return;
  for (uint64_t done = 0; done < a->size;) {
    struct range s = range_at(a, done);
    struct races_page *page = races_page_at(d, s.page);
    touch_page(page, races_touched_at(d, page, a->thread), s.from, s.to, races_effect_of(a));
    done += s.to - s.from;
  }
}
