#include "record.h"

static void *allocate(void *p, size_t n, size_t size) {
  p = realloc(p, n * size);
  if (!p) abort();
  return p;
}

// ---- memory of forms ------------------------------------------------------------------------

#define ARENA_BYTES ((size_t)1 << 20)

struct memtrace_arena {
  struct memtrace_arena *next;
  size_t used;
  _Alignas(64) uint8_t bytes[ARENA_BYTES];
};

static void *take_memory(struct memtrace_encoder *e, size_t n) {
  n = (n + 63) & ~(size_t)63;
  if (!e->arena || e->arena->used + n > ARENA_BYTES) {
    struct memtrace_arena *a = aligned_alloc(64, sizeof *a);
    if (!a) abort();
    *a = (struct memtrace_arena){.next = e->arena};
    e->arena = a;
  }
  void *p = e->arena->bytes + e->arena->used;
  e->arena->used += n;
  memset(p, 0, n);
  return p;
}

// Gives the memory back, but for one piece.
static void reset_memory(struct memtrace_encoder *e) {
  while (e->arena && e->arena->next) {
    struct memtrace_arena *next = e->arena->next;
    free(e->arena);
    e->arena = next;
  }
  if (e->arena) e->arena->used = 0;
}

// ---- output ---------------------------------------------------------------------------------

// Makes room for n bytes.
void memtrace_grow(struct memtrace_buffer *b, size_t n) {
  b->room = 2 * (b->n + n);
  b->bytes = allocate(b->bytes, b->room, 1);
}

static void put_item(struct memtrace_encoder *e, uint8_t kind) {
  make_room(&e->out, 256);
  put_head(e, HEAD_ITEM);
  put_byte(e, kind);
}

// ---- forms ----------------------------------------------------------------------------------

static uint32_t slot_of(const struct memtrace_encoder *e, uint64_t key, uint32_t kind) {
  return (uint32_t)((key * 0x9e3779b97f4a7c15u ^ (uint64_t)kind * 0xbf58476d1ce4e5b9u) >> 40) & (e->table_room - 1);
}

static void insert_form(struct memtrace_encoder *e, struct memtrace_form *f) {
  uint32_t at = slot_of(e, f->key, f->kind);
  while (e->table[at]) at = (at + 1) & (e->table_room - 1);
  e->table[at] = f;
}

static struct memtrace_form *find_form(const struct memtrace_encoder *e, uint64_t key, uint32_t kind) {
  for (uint32_t at = slot_of(e, key, kind);; at = (at + 1) & (e->table_room - 1)) {
    struct memtrace_form *f = e->table[at];
    if (!f || (f->key == key && f->kind == kind)) return f;
  }
}

static void grow_table(struct memtrace_encoder *e) {
  free(e->table);
  e->table_room = e->table_room ? 2 * e->table_room : 4096;
  e->table = calloc(e->table_room, sizeof *e->table);
  if (!e->table) abort();
  for (uint32_t i = 0; i < e->nforms; i++) insert_form(e, e->forms[i]);
}

static struct memtrace_form *make_form(struct memtrace_encoder *e, uint64_t key, uint32_t kind, uint32_t words) {
  uint32_t padded = (words + 3) & ~3u;
  struct memtrace_form *f = take_memory(e, sizeof *f + 3 * padded * sizeof f->x[0] + words * sizeof *f->word);
  *f = (struct memtrace_form){.next = {e->nothing, e->nothing}, .key = key, .kind = kind, .words = words, .padded = padded};
  f->word = (struct memtrace_word *)&f->x[3 * padded];
  f->number = NO_NUMBER;
  return f;
}

// Numbers a form that has been defined.
static void add_form(struct memtrace_encoder *e, struct memtrace_form *f) {
  if (e->nforms == e->forms_room) {
    e->forms_room = e->forms_room ? 2 * e->forms_room : 1024;
    e->forms = allocate(e->forms, e->forms_room, sizeof *e->forms);
  }
  f->number = e->nforms;
  e->forms[e->nforms++] = f;
  if (2 * e->nforms > e->table_room) grow_table(e);
  else insert_form(e, f);
}

static uint64_t mask_of(unsigned size) { return size >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1; }

static void set_word(struct memtrace_form *f, unsigned i, struct memtrace_word w) {
  f->word[i] = w;
  f->word[i].shift = (uint8_t)(64 - 8 * w.size);
  f->x[2 * f->padded + i] = mask_of(w.size);
  f->values |= (uint64_t)w.value << i;
}

// Notes for each address the one before it.
static void link_addresses(struct memtrace_form *f) {
  uint8_t before = NO_WORD;
  for (uint32_t i = 0; i < f->words; i++) {
    if (!f->word[i].size || f->word[i].value) continue;
    f->word[i].before = before;
    before = (uint8_t)i;
  }
}

// ---- what an engine says of a block's accesses ------------------------------------------------

// The words in use: the first, and the one after the last. Reports whether the accesses have a form: each word
// has one meaning, and the address precedes the value.
static bool find_words(const struct heddle_mem_access *a, uint32_t n, uint32_t *first, uint32_t *end) {
  uint32_t values = 0;  // words before it may be values
  *first = UINT32_MAX;
  *end = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t value = a[i].value_word, last = value + (a[i].size > 8);
    if (a[i].address_word && a[i].address_word < *first) *first = a[i].address_word;
    if (value && value < *first) *first = value;
    if (value && (value < values || value <= a[i].address_word)) return false;
    if (!value && a[i].size > 8) return false;
    if (value) values = last + 1;
    if (a[i].address_word && a[i].address_word >= *end) *end = a[i].address_word + 1u;
    if (value && last >= *end) *end = last + 1;
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; a[i].address_word && k < n; k++)
      if (a[k].value_word && (uint32_t)(a[i].address_word - a[k].value_word) <= (a[k].size > 8)) return false;
  return !*end || *end - *first <= FORM_WORDS;
}

static void set_words(struct memtrace_form *f, const struct heddle_mem_access *a, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    uint8_t address = a[i].address_word ? (uint8_t)(a[i].address_word - f->first + 1) : 0;
    if (address) set_word(f, address - 1u, (struct memtrace_word){.size = 8});
    for (unsigned at = 0; a[i].value_word && at < a[i].size; at += 8) {
      uint8_t size = (uint8_t)(a[i].size - at < 8 ? a[i].size - at : 8);
      set_word(f, a[i].value_word - f->first + at / 8, (struct memtrace_word){.at = a[i].at + at, .address = address, .size = size, .value = true});
    }
  }
  link_addresses(f);
}

// The form of a block's accesses up to the first one of more than 16 bytes. NULL: the engine is to make entries.
static struct memtrace_form *make_block_form(struct memtrace_encoder *e, const struct heddle_mem_access *a, uint32_t n) {
  uint32_t taken = 0, first, end;
  while (taken < n && a[taken].size <= 16) taken++;
  if (!taken || !find_words(a, taken, &first, &end)) return NULL;
  struct memtrace_form *f = make_form(e, (uint64_t)(uintptr_t)a, KIND_BLOCK | n, end ? end - first : 0);
  f->first = end ? first : 0;
  f->accesses = taken;
  set_words(f, a, taken);
  return f;
}

// Writes the definition of a form.
static void define(struct memtrace_encoder *e, const struct memtrace_form *f, const struct heddle_mem_access *a, unsigned flags) {
  put_number(e, f->accesses);
  for (uint32_t i = 0; i < f->accesses; i++) {
    uint32_t address = a[i].address_word, value = a[i].value_word;
    put_number(e, zigzag(a[i].pc - e->pc));
    put_byte(e, (uint8_t)(a[i].size | (a[i].store ? ACCESS_STORE : 0) | flags));
    put_number(e, a[i].branches);
    put_number(e, address ? address - f->first + 1 : 0);
    put_number(e, zigzag(a[i].at));
    put_number(e, value ? value - f->first + 1 : 0);
    if (!value) put_number(e, (uint64_t)a[i].value & mask_of(a[i].size));
    e->pc = a[i].pc;
  }
}

// Writes a form's number, and the definition of a new one, which is a, with flags.
void memtrace_put_form(struct memtrace_encoder *e, struct memtrace_form *f, const struct heddle_mem_access *a, unsigned flags) {
  bool is_new = f->number == NO_NUMBER;
  if (is_new) add_form(e, f);
  put_number(e, f->number);
  if (is_new) define(e, f, a, flags);
}

// Returns the form of a block's accesses, or NULL: the engine is to make entries.
struct memtrace_form *memtrace_block_form(struct memtrace_encoder *e, const struct heddle_mem_access *a, uint32_t n) {
  struct memtrace_form *f = find_form(e, (uint64_t)(uintptr_t)a, KIND_BLOCK | n);
  return f ? f : make_block_form(e, a, n);
}

// The addresses that forms have are of other accesses now.
void memtrace_forget_addresses(struct memtrace_encoder *e) {
  for (uint32_t i = 0; i < e->nforms; i++)
    if (e->forms[i]->kind & KIND_BLOCK) e->forms[i]->key = 0;
  e->era = e->consumer.era;
}

// ---- pages ------------------------------------------------------------------------------------

static size_t page_slot(const struct memtrace_encoder *e, uint64_t number) {
  return (size_t)(number * 0x9e3779b97f4a7c15u >> 32) & (e->pages_room - 1);
}

static struct memtrace_page *page_at(const struct memtrace_encoder *e, uint64_t number) {
  size_t at = page_slot(e, number);
  while (e->pages[at].number && e->pages[at].number != number + 1) at = (at + 1) & (e->pages_room - 1);
  return &e->pages[at];
}

static void grow_pages(struct memtrace_encoder *e) {
  struct memtrace_page *old = e->pages;
  size_t room = e->pages_room;
  e->pages_room = room ? 2 * room : 4096;
  e->pages = calloc(e->pages_room, sizeof *e->pages);
  if (!e->pages) abort();
  for (size_t i = 0; i < room; i++)
    if (old[i].number) *page_at(e, old[i].number - 1) = old[i];
  free(old);
}

// Writes that n pages of addresses lead to pages, one after the other.
static void put_map(struct memtrace_encoder *e, uint64_t number, uint64_t page, uint64_t n) {
  put_item(e, ITEM_MAP);
  put_number(e, number);
  put_number(e, page);
  put_number(e, n);
}

static void take_mapping(struct memtrace_encoder *e, uint64_t number, uint64_t page) {
  if (2 * (e->npages + 1) > e->pages_room) grow_pages(e);
  struct memtrace_page *p = page_at(e, number);
  if (p->number && p->page == page) return;
  e->npages += !p->number;
  *p = (struct memtrace_page){number + 1, page};
  put_map(e, number, page, 1);
}

static int compare_pages(const void *a, const void *b) {
  uint64_t x = ((const struct memtrace_page *)a)->number, y = ((const struct memtrace_page *)b)->number;
  return x < y ? -1 : x > y;
}

// Writes all mappings, which the block does not have yet.
static void put_mappings(struct memtrace_encoder *e) {
  if (!e->npages) return;
  struct memtrace_page *all = allocate(NULL, e->npages, sizeof *all);
  size_t n = 0;
  for (size_t i = 0; i < e->pages_room; i++)
    if (e->pages[i].number) all[n++] = e->pages[i];
  qsort(all, n, sizeof *all, compare_pages);
  for (size_t i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n && all[k].number - all[i].number == k - i && all[k].page - all[i].page == k - i;) k++;
    put_map(e, all[i].number - 1, all[i].page, k - i);
  }
  free(all);
}

// ---- pieces and blocks ------------------------------------------------------------------------

static void put_fields(struct memtrace_encoder *e, uint8_t kind, const uint64_t *fields, size_t n) {
  put_item(e, kind);
  for (size_t i = 0; i < n; i++) put_number(e, fields[i]);
}

static void begin_block(struct memtrace_encoder *e) {
  reset_memory(e);
  e->nforms = 0;
  memset(e->table, 0, e->table_room * sizeof *e->table);
  memset(e->values, 0, sizeof e->values);
  e->nothing = NULL;
  e->nothing = make_form(e, 0, 0, 0);
  e->nothing->next[0] = e->nothing->next[1] = e->nothing;
  e->origin = make_form(e, 0, 0, 0);
  for (unsigned i = 0; i < LASTS; i++) e->lasts[i] = e->origin;
  e->last = e->origin;
  e->pc = e->accesses = e->data = e->run = e->out.n = e->numbers.n = 0;
  e->nstamps = 0;
  e->begun = false;
}

// Begins a piece of a thread's run in the block.
static void put_piece(struct memtrace_encoder *e, const struct memtrace_stamp *at) {
  static const struct memtrace_stamp zero;
  const struct memtrace_stamp *last = e->begun ? &e->stamp : &zero;
  e->lasts[last->thread % LASTS] = e->last;
  e->last = e->lasts[at->thread % LASTS];
  put_fields(e, ITEM_PIECE, (uint64_t[]){
      zigzag(at->seq - last->seq), zigzag(at->sync - last->sync), zigzag(at->thread - last->thread), zigzag(at->core - last->core),
      zigzag(at->time - last->time), zigzag(at->instructions - last->instructions), zigzag(at->branches - last->branches)}, 7);
  if (e->nstamps == e->stamps_room) {
    e->stamps_room = e->stamps_room ? 2 * e->stamps_room : 64;
    e->stamps = allocate(e->stamps, e->stamps_room, sizeof *e->stamps);
  }
  e->stamps[e->nstamps++] = *at;
  e->stamp = *at;
  e->branches = at->branches;
  if (e->begun) return;
  put_mappings(e);
  e->mapped = e->out.n;
  e->begun = true;
}

// The engine's log continues at a stamp, where its count of branches is counted.
void memtrace_begin(struct memtrace_encoder *e, const struct memtrace_stamp *at, uint64_t counted) {
  e->start = at->branches;
  e->counted = (uint32_t)counted;
  if (!e->begun || e->stamp.thread != at->thread || e->stamp.seq != at->seq || e->stamp.core != at->core) put_piece(e, at);
  e->consumer.held = e->done != NULL;
}

// Completes the block.
void memtrace_finish(struct memtrace_encoder *e) {
  if (!e->begun) return;
  put_item(e, ITEM_END);
  struct memtrace_block *b = allocate(NULL, 1, sizeof *b);
  *b = (struct memtrace_block){.out = e->out, .numbers = e->numbers, .stamps = e->stamps, .nstamps = e->nstamps};
  *e->tail = b;
  e->tail = &b->next;
  e->out = e->spare[0];
  e->numbers = e->spare[1];
  e->spare[0] = e->spare[1] = (struct memtrace_buffer){0};
  e->stamps = NULL;
  e->stamps_room = 0;
  begin_block(e);
}

// Completes the block, and continues the piece in another one.
static void continue_in_next(struct memtrace_encoder *e) {
  struct memtrace_stamp at = e->stamp;
  at.branches = e->branches;
  memtrace_finish(e);
  put_piece(e, &at);
}

// Returns the oldest block that is complete, or NULL. The caller gives it back.
struct memtrace_block *memtrace_take(struct memtrace_encoder *e) {
  struct memtrace_block *b = e->done;
  if (b) e->done = b->next;
  if (!e->done) e->tail = &e->done;
  return b;
}

void memtrace_free(struct memtrace_encoder *e, struct memtrace_block *b) {
  free(e->spare[0].bytes);
  free(e->spare[1].bytes);
  e->spare[0] = b->out;
  e->spare[1] = b->numbers;
  free(b->stamps);
  free(b);
}

// Completes the block while the engine runs, which makes entries from now on, until Go has the block.
void memtrace_hold(struct memtrace_encoder *e) {
  continue_in_next(e);
  e->consumer.held = true;
}

// ---- entries ----------------------------------------------------------------------------------

// The form of an access that is alone: its words are the address and the value.
static struct memtrace_form *make_entry_form(struct memtrace_encoder *e, const struct heddle_mem_access *a, uint32_t descr) {
  struct memtrace_form *f = make_form(e, a->pc, descr, a->size > 8 ? 3 : 2);
  f->first = 1;
  f->accesses = 1;
  set_words(f, a, 1);
  return f;
}

static void take_access(struct memtrace_encoder *e, const struct heddle_mem_entry *n, uint64_t high) {
  unsigned flags = n->flags & HEDDLE_MEM_ATOMIC ? ACCESS_ATOMIC : 0;
  bool store = n->kind == HEDDLE_MEM_STORE;
  uint32_t descr = n->size | (store ? ACCESS_STORE : 0) | flags;
  struct heddle_mem_access a = {.pc = n->pc, .address_word = 1, .value_word = 2, .size = (uint8_t)n->size, .store = store};
  const uint64_t w[4] = {n->addr, n->value, high};
  struct memtrace_form *f = e->last->next[0];
  if (f->key != n->pc || f->kind != descr) f = find_form(e, n->pc, descr);
  if (!f) f = make_entry_form(e, &a, descr);
  take_record(e, f, w, e->start + (uint32_t)(n->branches - e->counted), &a, flags);
}

// ---- changes of memory ------------------------------------------------------------------------

static void put_bytes(struct memtrace_encoder *e, const uint8_t *bytes, size_t n) {
  make_room(&e->numbers, n);
  memcpy(e->numbers.bytes + e->numbers.n, bytes, n);
  e->numbers.n += n;
  e->data += n;
}

static void take_change(struct memtrace_encoder *e, const struct heddle_mem_entry *n, const uint8_t *bytes) {
  bool later = n->flags & HEDDLE_MEM_LATER, view = n->flags & HEDDLE_MEM_BUFFERED;
  switch (n->kind) {
    case HEDDLE_MEM_MAP:
      take_mapping(e, n->addr >> 12, n->pc);
      return;
    case HEDDLE_MEM_KERNEL:
      put_fields(e, later ? ITEM_LATER : view ? ITEM_VIEW : ITEM_KERNEL, (uint64_t[]){n->addr, n->pc, n->branches}, 3);
      if (!later) put_bytes(e, bytes + n->value, n->branches);
      return;
    case HEDDLE_MEM_READ:
      put_fields(e, ITEM_READ, (uint64_t[]){n->addr, n->pc, n->branches}, 3);
      return;
    case HEDDLE_MEM_PART:
      put_fields(e, ITEM_PART, (uint64_t[]){n->pc, n->addr}, 2);
      return;
    case HEDDLE_MEM_CONTENT:
      put_fields(e, ITEM_CONTENT, (uint64_t[]){n->pc}, 1);
      put_bytes(e, bytes + n->value, 4096);
      return;
    case HEDDLE_MEM_ZERO:
      put_fields(e, ITEM_ZERO, (uint64_t[]){n->pc}, 1);
      return;
    case HEDDLE_MEM_COPY:
      put_fields(e, ITEM_COPY, (uint64_t[]){n->pc, n->value}, 2);
      return;
  }
}

// Adds entries of the log, of the piece that has begun.
void memtrace_add(struct memtrace_encoder *e, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes) {
  for (size_t i = 0; i < n; i++) {
    const struct heddle_mem_entry *entry = &entries[i];
    bool part = i && entries[i - 1].kind == HEDDLE_MEM_PART;
    if (is_full(e) && !part) continue_in_next(e);
    if (entry->kind > HEDDLE_MEM_STORE) take_change(e, entry, bytes);
    else if (entry->size > 8) take_access(e, entry, entries[++i].value);
    else take_access(e, entry, 0);
  }
}

static size_t take_entries(struct heddle_mem_consumer *c, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes) {
  struct memtrace_encoder *e = (struct memtrace_encoder *)c;
  memtrace_add(e, entries, n, bytes);
  c->held = e->done != NULL;
  return n;
}

static size_t take_accesses(struct heddle_mem_consumer *c, const struct heddle_mem_access *a, size_t n, const uint64_t *record,
                            uint32_t branches) {
  return take_block((struct memtrace_encoder *)c, a, n, record, branches);
}

// ---- opening ----------------------------------------------------------------------------------

// Blocks have at most that many accesses, and what a run adds to the last one.
struct memtrace_encoder *memtrace_open(uint64_t most) {
  struct memtrace_encoder *e = calloc(1, sizeof *e);
  if (!e) abort();
  e->consumer.take_entries = take_entries;
  e->consumer.take_accesses = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? memtrace_take_avx2 : take_accesses;
  e->most = most;
  e->tail = &e->done;
  grow_table(e);
  grow_pages(e);
  begin_block(e);
  return e;
}

void memtrace_close(struct memtrace_encoder *e) {
  for (struct memtrace_block *b; (b = memtrace_take(e));) memtrace_free(e, b);
  reset_memory(e);
  free(e->arena);
  free(e->forms);
  free(e->table);
  free(e->pages);
  free(e->stamps);
  free(e->out.bytes);
  free(e->numbers.bytes);
  free(e->spare[0].bytes);
  free(e->spare[1].bytes);
  free(e);
}
