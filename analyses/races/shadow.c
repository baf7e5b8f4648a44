#include "races.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

// Allocates, or changes the size of, an array of n elements.
void *races_allocate(void *p, size_t n, size_t size) {
  p = realloc(p, n * size);
  if (!p) abort();
  return p;
}

// ---- memory -------------------------------------------------------------------------------

#define CHUNK_BYTES ((size_t)1 << 24)

// Pieces of whole lines of the processor's cache begin at one.
#define LINE 64u

// The memory of a chunk is the host's own, in large pages if the host has them: accesses to shadows are all
// over.
struct races_chunk {
  struct races_chunk *before;
  uint64_t unused[7];  // a line
  uint8_t bytes[];
};

// Kinds of pieces: parts with room for 1, 3 and 7 states, shadows, the bytes that a thread has accessed, and
// contents of pages.
static const size_t piece_bytes[] = {
    sizeof(struct races_parts) + sizeof(struct races_state), sizeof(struct races_parts) + 3 * sizeof(struct races_state),
    sizeof(struct races_parts) + 7 * sizeof(struct races_state), sizeof(struct races_shadow), sizeof(struct races_touched), PAGE_BYTES};
static const unsigned parts_room[] = {1, 3, 7};

#define SHADOW 3u
#define TOUCHED 4u
#define CONTENT 5u

// Returns a piece. It is zero if it is new, or was zero when it was freed.
static void *take_piece(struct races_memory *m, unsigned kind) {
  void *piece = m->freed[kind];
  if (piece) {
    memcpy(&m->freed[kind], piece, sizeof piece);
    memset(piece, 0, sizeof(void *));
    return piece;
  }
  if (m->left < piece_bytes[kind]) {
    struct races_chunk *chunk = heddle_reserve(CHUNK_BYTES);
    if (!chunk) abort();
    heddle_advise_huge(chunk, CHUNK_BYTES);
    chunk->before = m->chunks;
    m->chunks = chunk;
    m->left = CHUNK_BYTES - sizeof *chunk;
  }
  m->left -= piece_bytes[kind];
  if (piece_bytes[kind] % LINE == 0) m->left &= ~(size_t)(LINE - 1);
  return m->chunks->bytes + m->left;
}

static void free_piece(struct races_memory *m, void *piece, unsigned kind) {
  memcpy(piece, &m->freed[kind], sizeof piece);
  m->freed[kind] = piece;
}

void races_free_memory(struct races_memory *m) {
  for (struct races_chunk *c = m->chunks, *before; c; c = before) {
    before = c->before;
    heddle_unreserve(c, CHUNK_BYTES);
  }
  *m = (struct races_memory){0};
}

// ---- tables -------------------------------------------------------------------------------

static size_t place_of(const struct races_table *t, uint64_t key) {
  uint64_t h = (key + 1) * 0x9e3779b97f4a7c15u;
  return (h ^ h >> 32) & (t->room - 1);
}

// The place that has a key, or the empty one where it would be.
static size_t find_place(const struct races_table *t, uint64_t key) {
  size_t i = place_of(t, key);
  while (t->keys[i] && t->keys[i] != key + 1) i = (i + 1) & (t->room - 1);
  return i;
}

bool races_table_get(const struct races_table *t, uint64_t key, uint64_t *value) {
  if (!t->n) return false;
  size_t i = find_place(t, key);
  *value = t->values[i];
  return t->keys[i];
}

static void enlarge(struct races_table *t) {
  struct races_table larger = {.room = t->room ? 2 * t->room : 64};
  larger.keys = calloc(larger.room, sizeof *larger.keys);
  larger.values = calloc(larger.room, sizeof *larger.values);
  if (!larger.keys || !larger.values) abort();
  for (size_t i = 0; i < t->room; i++)
    if (t->keys[i]) races_table_set(&larger, t->keys[i] - 1, t->values[i]);
  races_table_clear(t);
  *t = larger;
}

// Sets the value of a key, which is below UINT64_MAX.
void races_table_set(struct races_table *t, uint64_t key, uint64_t value) {
  if (2 * (t->n + 1) > t->room) enlarge(t);
  size_t i = find_place(t, key);
  t->n += !t->keys[i];
  t->keys[i] = key + 1;
  t->values[i] = value;
}

// Removes a key, and moves the keys after it whose places were taken.
void races_table_remove(struct races_table *t, uint64_t key) {
  if (!t->n) return;
  size_t i = find_place(t, key), mask = t->room - 1;
  if (!t->keys[i]) return;
  t->n--;
  for (size_t j = i;;) {
    t->keys[i] = 0;
    size_t home;
    do {
      j = (j + 1) & mask;
      if (!t->keys[j]) return;
      home = place_of(t, t->keys[j] - 1);
    } while (((j - home) & mask) < ((j - i) & mask));
    t->keys[i] = t->keys[j];
    t->values[i] = t->values[j];
    i = j;
  }
}

void races_table_clear(struct races_table *t) {
  free(t->keys);
  free(t->values);
  *t = (struct races_table){0};
}

// ---- pages --------------------------------------------------------------------------------

// Returns a page by its number, or NULL if it does not exist yet.
struct races_page *races_known_page(struct races_detector *d, uint64_t number) {
  uint64_t at;
  if (d->last && d->last->number == number) return d->last;
  if (!races_table_get(&d->pages, number, &at)) return NULL;
  return d->last = (struct races_page *)(uintptr_t)at;
}

struct races_page *races_page_at(struct races_detector *d, uint64_t number) {
  struct races_page *p = races_known_page(d, number);
  if (p) return p;
  p = races_allocate(NULL, 1, sizeof *p);
  *p = (struct races_page){.number = number};
  races_table_set(&d->pages, number, (uintptr_t)p);
  return d->last = p;
}

struct races_shadow *races_new_shadow(struct races_detector *d, struct races_page *p) {
  return p->shadow = take_piece(&d->memory, SHADOW);
}

// Returns one without bytes.
struct races_touched *races_new_touched(struct races_detector *d) { return take_piece(&d->memory, TOUCHED); }

uint8_t *races_new_content(struct races_detector *d) { return take_piece(&d->memory, CONTENT); }

static void free_parts(struct races_detector *d, struct races_shadow *s, unsigned word) {
  struct races_parts *m = s->more[word];
  if (!m) return;
  for (unsigned i = 0; m->reads && i < WORD_SIZE; i++) free(m->reads[i].marks);
  free(m->reads);
  free_piece(&d->memory, m, m->kind);
  s->more[word] = NULL;
}

// Forgets all accesses to a page.
void races_drop_shadow(struct races_detector *d, struct races_page *p) {
  if (!p->shadow) return;
  for (unsigned word = 0; word < PAGE_WORDS; word++) free_parts(d, p->shadow, word);
  memset(p->shadow, 0, sizeof *p->shadow);
  free_piece(&d->memory, p->shadow, SHADOW);
  p->shadow = NULL;
  races_untouch_all(d, p, 0, PAGE_BYTES);
}

// ---- parts --------------------------------------------------------------------------------

static unsigned parts_in(const struct races_shadow *s, unsigned word) {
  return races_bits(s->starts[word]);
}

// Makes room for the states of n further parts.
static struct races_parts *make_parts_room(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned n) {
  struct races_parts *old = s->more[word];
  unsigned kind = n <= 1 ? 0 : n <= 3 ? 1 : 2;
  if (old && parts_room[old->kind] >= n) return old;
  struct races_parts *m = take_piece(&d->memory, kind);
  memset(m, 0, piece_bytes[kind]);
  if (old) {
    memcpy(m, old, piece_bytes[old->kind]);
    free_piece(&d->memory, old, old->kind);
  }
  m->kind = kind;
  return s->more[word] = m;
}

static void make_reads(struct races_parts *m) {
  if (m->reads) return;
  m->reads = calloc(WORD_SIZE, sizeof *m->reads);
  if (!m->reads) abort();
}

static struct races_reads copy_reads(const struct races_reads *from) {
  struct races_reads copy = {.n = from->n, .room = from->n};
  if (!copy.n) return copy;
  copy.marks = races_allocate(NULL, copy.n, sizeof *copy.marks);
  memcpy(copy.marks, from->marks, copy.n * sizeof *copy.marks);
  return copy;
}

static void append_read(struct races_reads *list, const struct races_mark *mark) {
  if (list->n == list->room) {
    list->room = list->room ? 2 * list->room : 1;
    list->marks = races_allocate(list->marks, list->room, sizeof *list->marks);
  }
  list->marks[list->n++] = *mark;
}

// Remembers the read of a thread that is not that of the state's.
void races_add_reader(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned part, const struct races_mark *now) {
  struct races_parts *m = make_parts_room(d, s, word, 0);
  make_reads(m);
  struct races_reads *list = &m->reads[part];
  for (uint32_t i = 0; i < list->n; i++) {
    if (races_thread_of(d, &list->marks[i]) != races_thread_of(d, now)) continue;
    list->marks[i] = *now;
    return;
  }
  append_read(list, now);
}

// Makes room for a part before the one with number n.
static void insert_part(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned n, struct races_state state,
                        struct races_reads reads) {
  unsigned count = parts_in(s, word);
  if (!count) {
    s->states[word] = state;
    return;
  }
  struct races_parts *m = make_parts_room(d, s, word, count);
  for (unsigned i = count; i > n; i--) *races_part_state(s, word, i) = *races_part_state(s, word, i - 1);
  *races_part_state(s, word, n) = state;
  if (!m->reads && !reads.n) return;
  make_reads(m);
  memmove(&m->reads[n + 1], &m->reads[n], (WORD_SIZE - 1 - n) * sizeof *m->reads);
  m->reads[n] = reads;
}

// The bytes [lo, hi) of a word.
static unsigned mask_of(unsigned lo, unsigned hi) { return (1u << hi) - (1u << lo); }

// Makes a part begin at a byte: a part that contains it becomes two of the same state, and a byte in no
// part begins an empty one, which extends to the byte hi or the next part.
static void start_part(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned lo, unsigned hi) {
  unsigned starts = s->starts[word], known = s->known[word];
  if (starts >> lo & 1) return;
  unsigned n = races_part_number(starts, lo);
  struct races_state state = {0};
  struct races_reads reads = {0};
  if (known >> lo & 1) {
    state = *races_part_state(s, word, n - 1);
    struct races_reads *list = races_further_reads(s, word, n - 1);
    if (list) reads = copy_reads(list);
  } else {
    unsigned end = lo + 1;
    while (end < hi && !(known >> end & 1)) end++;
    s->known[word] |= (uint8_t)mask_of(lo, end);
  }
  insert_part(d, s, word, n, state, reads);
  s->starts[word] |= (uint8_t)(1u << lo);
}

// Forgets the part that begins at a byte.
void races_remove_part(struct races_shadow *s, unsigned word, unsigned lo) {
  unsigned n = races_part_number(s->starts[word], lo), count = parts_in(s, word);
  struct races_parts *m = s->more[word];
  for (unsigned i = n + 1; i < count; i++) *races_part_state(s, word, i - 1) = *races_part_state(s, word, i);
  *races_part_state(s, word, count - 1) = (struct races_state){0};
  s->starts[word] &= (uint8_t)~(1u << lo);
  if (!m || !m->reads) return;
  free(m->reads[n].marks);
  memmove(&m->reads[n], &m->reads[n + 1], (WORD_SIZE - 1 - n) * sizeof *m->reads);
  m->reads[WORD_SIZE - 1] = (struct races_reads){0};
}

// Makes parts such that some cover the bytes [lo, hi) and no others.
void races_divide(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned lo, unsigned hi) {
  if (hi < WORD_SIZE && s->known[word] >> hi & 1) start_part(d, s, word, hi, WORD_SIZE);
  for (unsigned at = lo; at < hi; at++)
    if (at == lo || !(s->known[word] >> at & 1)) start_part(d, s, word, at, hi);
}

// ---- forgetting ---------------------------------------------------------------------------

static void clear_bytes(struct races_detector *d, struct races_shadow *s, unsigned word, unsigned lo, unsigned hi) {
  unsigned mask = mask_of(lo, hi);
  if (!(s->known[word] & mask)) return;
  races_divide(d, s, word, lo, hi);
  for (unsigned at = lo; at < hi; at++)
    if (s->starts[word] >> at & 1) races_remove_part(s, word, at);
  s->known[word] &= (uint8_t)~mask;
  if (!s->known[word]) free_parts(d, s, word);
}

// Forgets bytes of a page, by their offsets.
static void clear_range(struct races_detector *d, struct races_page *p, unsigned from, unsigned to) {
  if (from < to) races_remove_words(p, from, to);
  if (!p->shadow) return;
  if (from == 0 && to == PAGE_BYTES) {
    races_drop_shadow(d, p);
    return;
  }
  races_untouch_all(d, p, from, to);
  while (from < to) {
    unsigned word = from / WORD_SIZE, end = (word + 1) * WORD_SIZE;
    if (end > to) end = to;
    clear_bytes(d, p->shadow, word, from - word * WORD_SIZE, end - word * WORD_SIZE);
    from = end;
  }
}

// Forgets the accesses to [from, to).
void races_forget(struct races_detector *d, uint64_t from, uint64_t to) {
  while (from < to) {
    uint64_t number = from >> PAGE_SHIFT, start = number << PAGE_SHIFT;
    uint64_t size = to - start < PAGE_BYTES ? to - start : PAGE_BYTES;
    struct races_page *p = races_known_page(d, number);
    if (p) clear_range(d, p, (unsigned)(from - start), (unsigned)size);
    from = start + size;
  }
}

// ---- copies -------------------------------------------------------------------------------

static bool is_wanted(const struct races_detector *d, const struct races_mark *m, int64_t process, bool own) {
  return races_is_used(m) && (d->threads[races_thread_of(d, m)].process == process) == own;
}

// Forgets all marks of a part but those of a process, or but those of others.
static void keep_marks(const struct races_detector *d, struct races_state *s, struct races_reads *reads, int64_t process, bool own) {
  if (!is_wanted(d, &s->write, process, own)) s->write = (struct races_mark){0};
  if (!is_wanted(d, &s->read, process, own)) s->read = (struct races_mark){0};
  if (!reads) return;
  uint32_t n = 0;
  for (uint32_t i = 0; i < reads->n; i++)
    if (is_wanted(d, &reads->marks[i], process, own)) reads->marks[n++] = reads->marks[i];
  reads->n = n;
  if (n && !races_is_used(&s->read)) s->read = reads->marks[--reads->n];
}

static void keep_page_marks(const struct races_detector *d, struct races_shadow *s, int64_t process, bool own) {
  for (unsigned word = 0; word < PAGE_WORDS; word++)
    for (unsigned n = 0; n < parts_in(s, word); n++)
      keep_marks(d, races_part_state(s, word, n), races_further_reads(s, word, n), process, own);
}

static void copy_shadow(struct races_detector *d, struct races_shadow *to, const struct races_shadow *from) {
  *to = *from;
  for (unsigned word = 0; word < PAGE_WORDS; word++) {
    const struct races_parts *m = from->more[word];
    if (!m) continue;
    struct races_parts *copy = take_piece(&d->memory, m->kind);
    memcpy(copy, m, piece_bytes[m->kind]);
    copy->reads = NULL;
    to->more[word] = copy;
    if (!m->reads) continue;
    make_reads(copy);
    for (unsigned i = 0; i < WORD_SIZE; i++) copy->reads[i] = copy_reads(&m->reads[i]);
  }
}

// Makes the page to a copy of the page from, which the process has there instead: the accesses of its
// threads move.
void races_copy_page(struct races_detector *d, uint64_t to, uint64_t from, int64_t process) {
  struct races_page *target = races_page_at(d, to), *source = races_known_page(d, from);
  races_drop_shadow(d, target);
  if (!source || source == target) return;
  races_copy_words(target, source);
  if (!source->shadow) return;
  copy_shadow(d, races_new_shadow(d, target), source->shadow);
  keep_page_marks(d, target->shadow, process, true);
  keep_page_marks(d, source->shadow, process, false);
  races_untouch_all(d, source, 0, PAGE_BYTES);
}
