#include "follow.h"

#include <stdlib.h>
#include <string.h>

static size_t take_entries(struct heddle_mem_consumer *c, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes);
static size_t take_accesses(struct heddle_mem_consumer *c, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                         uint32_t branches);

// ---- opening ------------------------------------------------------------------------------

struct races_follower *races_follower_open(struct races_detector *d, bool happens_before, bool values) {
  struct races_follower *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->consumer.take_entries = take_entries;
  f->consumer.take_accesses = take_accesses;
  f->detector = d;
  f->happens_before = happens_before;
  f->values = values;
  f->nodes_room = 1024;
  f->nodes = races_allocate(NULL, f->nodes_room, sizeof *f->nodes);
  f->others = races_allocate(NULL, f->nodes_room, sizeof *f->others);
  f->nodes[0] = (struct races_node){0};
  f->others[0] = 0;
  f->nnodes = 1;
  return f;
}

void races_follower_close(struct races_follower *f) {
  races_table_clear(&f->mapped);
  races_table_clear(&f->children);
  free(f->nodes);
  free(f->others);
  free(f);
}

struct races_runner *races_new_runner(uint32_t number, struct races_space *space) {
  struct races_runner *r = calloc(1, sizeof *r);
  if (!r) abort();
  r->number = number;
  r->space = space;
  return r;
}

// The thread is in no calls any more.
void races_end_calls(struct races_runner *r) {
  free(r->frames);
  r->frames = NULL;
  r->nframes = r->frames_room = r->node = 0;
  r->slot = 0;
}

void races_free_runner(struct races_runner *r) {
  races_end_calls(r);
  free(r->near);
  free(r);
}

// ---- addresses ----------------------------------------------------------------------------

struct races_space *races_new_space(uint64_t id) {
  struct races_space *s = calloc(1, sizeof *s);
  if (!s) abort();
  s->id = id;
  return s;
}

// All memory that no thread has stored to yet leads to page 0, the page of zeros. Accesses are to a page of the
// address's own: others than threads of the process, at that address, are not meant.
#define UNTOUCHED ((uint64_t)1 << 51)
#define UNTOUCHED_BITS 36u
#define UNTOUCHED_SPACES (((uint64_t)1 << (51 - UNTOUCHED_BITS)) - 1)

// Returns the number of the page for accesses to a page of addresses that leads to a page.
static uint64_t accessed_page(const struct races_space *s, uint64_t number, uint64_t page) {
  if (page) return page;
  return UNTOUCHED | (s->id & UNTOUCHED_SPACES) << UNTOUCHED_BITS | (number & (((uint64_t)1 << UNTOUCHED_BITS) - 1));
}

static bool is_untouched(uint64_t page) { return page & UNTOUCHED; }

// Forgets the accesses to a page of addresses that leads to the page of zeros.
static void forget_untouched(struct races_follower *f, uint64_t page) {
  races_forget(f->detector, page << PAGE_SHIFT, (page << PAGE_SHIFT) + PAGE_BYTES);
}

// A thread stores to the page of zeros, and gets a page for it: the accesses were to that one.
static void touch_page(struct races_follower *f, uint64_t page, uint64_t before) {
  const struct races_page *p = races_known_page(f->detector, page);
  if (f->runner && !(p && p->shadow))
    races_copy_page(f->detector, page, before, f->detector->threads[f->runner->number].process);
  forget_untouched(f, before);
}

// Sets a list of code.
void races_set_code(struct races_code_list *list, const struct races_code *code, size_t n) {
  free(list->code);
  list->code = n ? races_allocate(NULL, n, sizeof *code) : NULL;
  list->n = n;
  if (n) memcpy(list->code, code, n * sizeof *code);
}

void races_free_space(struct races_space *s) {
  free(s->atomic.code);
  free(s->locking.code);
  races_table_clear(&s->pages);
  free(s);
}

// The page to which a page of addresses was last seen to lead.
bool races_space_page(const struct races_space *s, uint64_t number, uint64_t *page) {
  return races_table_get(&s->pages, number, page);
}

static inline struct races_near *near_at(struct races_follower *f, uint64_t number) { return &f->near[number % NEAR_PAGES]; }

// f->runner's accesses come next, in its present segment.
static void begin_turn(struct races_follower *f) {
  struct races_runner *r = f->runner;
  uint64_t owner = races_owner(f->detector, r->number);
  if (!r->near || r->turn < f->first_turn) {
    if (!r->near) r->near = races_allocate(NULL, NEAR_PAGES, sizeof *r->near);
    memset(r->near, 0, NEAR_PAGES * sizeof *r->near);
    r->owner = 0;
  }
  if (r->owner != owner || r->changes != f->changes || r->losses != f->detector->losses) {
    if (++f->turns % KEY_TURNS == 0) {
      f->first_turn = ++f->turns;
      memset(r->near, 0, NEAR_PAGES * sizeof *r->near);
    }
    r->owner = owner;
    r->changes = f->changes;
    r->losses = f->detector->losses;
    r->turn = f->turns;
  }
  f->near = r->near;
  f->key = r->turn % KEY_TURNS << KEY_PAGE_BITS;
}

// A page of addresses leads elsewhere than before.
static void note_change(struct races_follower *f) {
  f->changes++;
  if (f->runner) begin_turn(f);
}

// Notes that an address leads to a page.
void races_note_page(struct races_follower *f, struct races_space *s, uint64_t number, uint64_t page) {
  uint64_t before;
  bool known = races_space_page(s, number, &before);
  if (known && before == page) return;
  races_table_set(&s->pages, number, page);
  if (!known) return;
  if (is_untouched(before)) touch_page(f, page, before);
  note_change(f);
}

// Forgets where the pages [from, to) of addresses lead.
void races_drop_pages(struct races_follower *f, struct races_space *s, uint64_t from, uint64_t to) {
  uint64_t page;
  note_change(f);
  if (to - from <= s->pages.n) {
    for (; from < to; from++) {
      if (races_space_page(s, from, &page) && is_untouched(page)) forget_untouched(f, page);
      races_table_remove(&s->pages, from);
    }
    return;
  }
  struct races_table kept = {0};
  for (size_t i = 0; i < s->pages.room; i++) {
    uint64_t number = s->pages.keys[i] - 1;
    if (!s->pages.keys[i]) continue;
    if (!(number >= from && number < to)) races_table_set(&kept, number, s->pages.values[i]);
    else if (is_untouched(s->pages.values[i])) forget_untouched(f, s->pages.values[i]);
  }
  races_table_clear(&s->pages);
  s->pages = kept;
}

// Writes the numbers of the pages of addresses in [first, last] to numbers, in no order, unless that is NULL.
// Returns how many there are.
size_t races_space_numbers(const struct races_space *s, uint64_t first, uint64_t last, uint64_t *numbers) {
  size_t n = 0;
  for (size_t i = 0; i < s->pages.room; i++) {
    uint64_t number = s->pages.keys[i] - 1;
    if (!s->pages.keys[i] || number < first || number > last) continue;
    if (numbers) numbers[n] = number;
    n++;
  }
  return n;
}

static void note_mapping(struct races_follower *f, uint64_t number, uint64_t page) {
  uint64_t before;
  races_table_set(&f->mapped, number, page);
  if (!f->runner) note_change(f);
  else if (races_space_page(f->runner->space, number, &before))
    races_note_page(f, f->runner->space, number, accessed_page(f->runner->space, number, page));
}

// Finds the page of an address for the runner. One that the log does not have counts as the page of zeros.
static struct races_page *page_of(struct races_follower *f, uint64_t number) {
  uint64_t page = 0;
  races_table_get(&f->mapped, number, &page);
  return races_page_at(f->detector, accessed_page(f->runner->space, number, page));
}

static __attribute__((noinline)) struct races_near *find_near(struct races_follower *f, uint64_t number) {
  struct races_detector *d = f->detector;
  struct races_page *page = page_of(f, number);
  races_note_page(f, f->runner->space, number, page->number);
  struct races_near *near = near_at(f, number);
  *near = (struct races_near){
      f->key + number, page, d->omits ? races_touched_at(d, page, f->runner->number) : &f->nothing, f->values ? page->content : NULL, 0};
  near->full = near->touched->full;
  return near;
}

static inline struct races_near *near_for(struct races_follower *f, uint64_t number) {
  struct races_near *near = near_at(f, number);
  return __builtin_expect(near->key == f->key + number, 1) ? near : find_near(f, number);
}

// ---- contents -----------------------------------------------------------------------------

// Sets the content of a page, to zeros if bytes is NULL.
static void set_content(struct races_follower *f, uint64_t number, const uint8_t *bytes) {
  if (!f->values) return;
  struct races_page *p = races_page_at(f->detector, number);
  if (!p->content) p->content = races_new_content(f->detector);
  if (bytes) memcpy(p->content, bytes, PAGE_BYTES);
  else memset(p->content, 0, PAGE_BYTES);
}

static void copy_content(struct races_follower *f, uint64_t to, uint64_t from) {
  struct races_page *source = races_known_page(f->detector, from);
  if (to != from) set_content(f, to, source ? source->content : NULL);
}

// Sets bytes that the kernel wrote, or that a buffer shows.
static void put_bytes(struct races_follower *f, const struct heddle_mem_entry *e, const uint8_t *bytes) {
  struct races_page *p = f->values && bytes ? races_known_page(f->detector, e->pc) : NULL;
  size_t offset = e->addr % PAGE_BYTES, room = PAGE_BYTES - offset;
  if (p && p->content) memcpy(p->content + offset, bytes, e->branches < room ? e->branches : room);
}

static enum races_effect effect_of(bool same) { return same ? RACES_REWRITES : RACES_CHANGES; }

// Applies a store of up to 16 bytes, which may go on in the next page. Returns its effect.
static __attribute__((noinline)) enum races_effect store_value(struct races_page *page, struct races_page *next, unsigned offset,
                                                               unsigned size, const uint64_t *value) {
  uint8_t old[16] = {0};
  unsigned n = size < PAGE_BYTES - offset ? size : PAGE_BYTES - offset;
  if (!page->content) return RACES_CHANGES;
  memcpy(old, page->content + offset, n);
  memcpy(page->content + offset, value, n);
  if (n == size) return effect_of(!memcmp(old, value, size));
  if (!next->content) return RACES_CHANGES;
  memcpy(old + n, next->content, size - n);
  memcpy(next->content, (const uint8_t *)value + n, size - n);
  return effect_of(!memcmp(old, value, size));
}

// Reads 1, 2, 4 or 8 bytes.
static inline uint64_t read_number(const uint8_t *at, unsigned size) {
  uint64_t value = 0;
  switch (size) {
    case 1: return *at;
    case 2: memcpy(&value, at, 2); break;
    case 4: memcpy(&value, at, 4); break;
    default: memcpy(&value, at, 8);
  }
  return value;
}

// Writes the low 1, 2, 4 or 8 bytes of a value.
static inline void write_number(uint8_t *at, unsigned size, uint64_t value) {
  switch (size) {
    case 1: *at = (uint8_t)value; break;
    case 2: memcpy(at, &value, 2); break;
    case 4: memcpy(at, &value, 4); break;
    default: memcpy(at, &value, 8);
  }
}

static inline bool is_number(unsigned size) { return size <= 8 && !(size & (size - 1)); }

// Applies a store of 1, 2, 4 or 8 bytes in one page.
static inline enum races_effect store_number(uint8_t *at, unsigned size, uint64_t value) {
  bool same = read_number(at, size) == value;
  write_number(at, size, value);
  return effect_of(same);
}

// ---- calls --------------------------------------------------------------------------------

static uint64_t child_key(uint32_t parent, uint64_t pc) {
  return (pc * 0x9e3779b97f4a7c15u ^ (uint64_t)parent * 0xbf58476d1ce4e5b9u) >> 1;
}

static __attribute__((noinline)) uint32_t find_child(struct races_follower *f, uint32_t parent, uint64_t pc) {
  uint64_t key = child_key(parent, pc), first = 0;
  races_table_get(&f->children, key, &first);
  for (uint32_t c = (uint32_t)first; c; c = f->others[c])
    if (f->nodes[c].pc == pc && f->nodes[c].parent == parent) return f->nodes[parent].latest = c;
  if (f->nnodes == MAX_STACKS) return parent;
  if (f->nnodes == f->nodes_room) {
    f->nodes_room *= 2;
    f->nodes = races_allocate(f->nodes, f->nodes_room, sizeof *f->nodes);
    f->others = races_allocate(f->others, f->nodes_room, sizeof *f->others);
  }
  f->nodes[f->nnodes] = (struct races_node){.pc = pc, .parent = parent};
  f->others[f->nnodes] = (uint32_t)first;
  races_table_set(&f->children, key, f->nnodes);
  return f->nodes[parent].latest = f->nnodes++;
}

// The stack of a call within a stack.
static uint32_t child_stack(struct races_follower *f, uint32_t parent, uint64_t pc) {
  uint32_t c = f->nodes[parent].latest;
  return c && f->nodes[c].pc == pc ? c : find_child(f, parent, pc);
}

static void pop_frame(struct races_runner *r) {
  r->nframes--;
  r->node = r->nframes ? r->frames[r->nframes - 1].node : 0;
  r->slot = r->nframes ? r->frames[r->nframes - 1].slot : 0;
}

// Notes a call by the instruction at pc, which stores the return address.
static __attribute__((noinline)) void push_frame(struct races_follower *f, uint64_t pc, uint64_t addr, uint64_t ret) {
  struct races_runner *r = f->runner;
  while (r->nframes && r->slot <= addr) pop_frame(r);  // it was left in another way
  r->node = child_stack(f, r->node, pc);
  r->slot = addr;
  if (r->nframes == r->frames_room) {
    r->frames_room = r->frames_room ? 2 * r->frames_room : 64;
    r->frames = races_allocate(r->frames, r->frames_room, sizeof *r->frames);
  }
  r->frames[r->nframes++] = (struct races_frame){addr, ret, r->node};
  if (addr < r->low) r->low = addr;
  if (addr > r->high) r->high = addr;
}

// The number of bytes of the longest call instruction that is in use, and of the shortest.
#define SHORTEST_CALL 2u
#define LONGEST_CALL 9u

// Reports whether a value may be the return address of a call by the instruction at pc.
static inline bool is_return_address(uint64_t value, uint64_t pc) {
  return value - pc - SHORTEST_CALL <= LONGEST_CALL - SHORTEST_CALL;
}

// An access that is to be taken.
struct taken {
  uint64_t addr, pc;
  uint64_t value[2];
  uint32_t branches;  // low bits
  unsigned size;      // at most 16
  bool store, atomic;
};

// Follows calls and returns by an access of eight bytes.
static inline void track_call(struct races_follower *f, const struct taken *t) {
  struct races_runner *r = f->runner;
  if (!t->store) {
    if (t->addr == r->slot && r->nframes && t->value[0] == r->frames[r->nframes - 1].ret) pop_frame(r);
  } else if (is_return_address(t->value[0], t->pc)) {
    push_frame(f, t->pc, t->addr, t->value[0]);
  }
}

// ---- accesses -----------------------------------------------------------------------------

// Passes the access, which is at an address for the thread, to the detector.
void races_send(struct races_follower *f, uint64_t addr) {
  f->access.at = f->number++;
  f->addr = addr;
  races_access(f->detector, &f->access);
}

// An access, and where its bytes are.
struct placed {
  const struct taken *taken;
  struct races_near *near;
  struct races_page *page, *next;  // next: of its end, or NULL
  unsigned from, to, rest;         // bytes of page, and how many of next
};

static struct placed place(const struct taken *t, struct races_near *near, struct races_page *next) {
  unsigned from = (unsigned)(t->addr % PAGE_BYTES), to = from + t->size;
  struct placed p = {.taken = t, .near = near, .page = near->page, .next = next, .from = from, .to = to};
  if (!next) return p;
  p.to = PAGE_BYTES;
  p.rest = to - PAGE_BYTES;
  return p;
}

static bool has_words(const struct placed *p) {
  return races_has_words(p->page, p->from, p->to) || (p->next && races_has_words(p->next, 0, p->rest));
}

static void make_words(struct races_follower *f, const struct placed *p) {
  races_make_words(f->detector, p->page, p->from, p->to);
  if (p->next) races_make_words(f->detector, p->next, 0, p->rest);
}

// Acts on a load of bytes of which some are synchronization words.
static void acquire_words(struct races_follower *f, const struct placed *p) {
  if (p->page->words) races_acquire_words(f->detector, p->page, f->runner->number, p->from, p->to);
  if (p->next && p->next->words) races_acquire_words(f->detector, p->next, f->runner->number, 0, p->rest);
}

// Acts on a store to bytes of which some are synchronization words. It ends the thread's segment.
static void release_words(struct races_follower *f, const struct placed *p) {
  if (p->page->words) races_release_words(f->detector, p->page, f->runner->number, p->from, p->to);
  if (p->next && p->next->words) races_release_words(f->detector, p->next, f->runner->number, 0, p->rest);
}

// Takes an access of an atomic instruction, whose bytes are a synchronization word.
static void take_atomic(struct races_follower *f, const struct taken *t, struct races_near *near, struct races_page *next) {
  struct placed p = place(t, near, next);
  f->number++;
  make_words(f, &p);
  if (t->store) release_words(f, &p);
  else acquire_words(f, &p);
  begin_turn(f);
}

// Compares the bytes of an access that are of no synchronization word.
static inline void compare_bytes(struct races_follower *f, const struct placed *p, enum races_effect effect) {
  const struct taken *t = p->taken;
  f->access = (struct races_access){
      .addr = (p->page->number << PAGE_SHIFT) + p->from, .size = t->size, .pc = t->pc, .branches = f->branches,
      .thread = f->runner->number, .stack = f->runner->node, .write = t->store, .valued = effect == RACES_REWRITES,
      .atomic = t->atomic && (f->atomics || f->happens_before)};
  if (p->next) {
    f->access.first = PAGE_BYTES - p->from;
    f->access.rest = p->next->number << PAGE_SHIFT;
    races_send(f, t->addr);
    return;
  }
  f->access.at = f->number++;
  f->addr = t->addr;
  races_access_page(f->detector, &f->access, p->page, f->detector->omits ? p->near->touched : NULL);
  p->near->full = p->near->touched->full;
}

// The most bytes of a function's frame that are assumed, and of its arguments on the stack.
#define FRAME_BYTES 16384u
#define ARGUMENT_BYTES 64u

static bool has_code(const struct races_code_list *list, uint64_t pc) {
  size_t low = 0, high = list->n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (list->code[middle].end <= pc) low = middle + 1;
    else high = middle;
  }
  return low < list->n && list->code[low].start <= pc;
}

// Reports whether an access is an atomic one by its code, and not to the innermost frame: code of an atomic load or
// store may have its operands there.
static bool is_atomic_by_code(const struct races_runner *r, const struct taken *t) {
  bool own = t->addr + FRAME_BYTES >= r->slot && t->addr < r->slot + ARGUMENT_BYTES;
  return !own && has_code(&r->space->atomic, t->pc);
}

// Passes an access of an instruction to the detector. Next is the page of its end, if that is another one.
static __attribute__((noinline)) void compare_access(struct races_follower *f, const struct taken *t, struct races_near *near,
                                                     struct races_page *next, enum races_effect effect) {
  struct placed p = place(t, near, next);
  if (f->words && is_atomic_by_code(f->runner, t)) {
    take_atomic(f, t, near, next);
    return;
  }
  bool words = has_words(&p);
  if (words && !t->store) acquire_words(f, &p);
  compare_bytes(f, &p, effect);
  if (!words || !t->store) return;
  release_words(f, &p);
  begin_turn(f);
}

// Notes the branches of the last access, by the engine's count.
static inline void note_branches(struct races_follower *f, uint32_t counted) { f->branches = f->start + (uint32_t)(counted - f->counted); }

// Reports whether an access of an atomic instruction is one to a synchronization word.
static bool is_word_access(const struct races_follower *f, const struct taken *t) {
  if (f->words != RACES_CODE_ATOMICS) return f->words == RACES_ALL_ATOMICS;
  return has_code(&f->runner->space->locking, t->pc) || is_atomic_by_code(f->runner, t);
}

// Takes an access of a thread whose accesses are ignored, or of an atomic instruction under happens-before.
static __attribute__((noinline)) void take_special(struct races_follower *f, const struct taken *t, struct races_near *near,
                                                   struct races_page *next, enum races_effect effect) {
  if (f->runner->ignores) f->skipped++;
  else if (is_word_access(f, t)) take_atomic(f, t, near, next);
  else if (t->store) f->skipped++;
  else compare_access(f, t, near, next, effect);
}

// Takes an access of an instruction. Returns false at a thread's first one, which is to be taken again then.
static inline __attribute__((always_inline)) bool take_access(struct races_follower *f, struct taken *t) {
  struct races_runner *r = f->runner;
  t->addr &= ((uint64_t)1 << PC_BITS) - 1;
  unsigned offset = (unsigned)(t->addr % PAGE_BYTES), size = t->size;
  struct races_near *near = near_for(f, t->addr >> PAGE_SHIFT);
  struct races_page *page = near->page, *next = NULL;
  enum races_effect effect = t->store ? RACES_CHANGES : RACES_READS;
  if (__builtin_expect(!r->begun, 0)) return false;
  note_branches(f, t->branches);
  if (__builtin_expect(offset + size > PAGE_BYTES, 0)) next = page_of(f, (t->addr + size - 1) >> PAGE_SHIFT);
  if (t->store && f->values) {
    bool number = !next && page->content && is_number(size);
    effect = number ? store_number(page->content + offset, size, t->value[0]) : store_value(page, next, offset, size, t->value);
  }
  if (__builtin_expect(r->ignores || (t->atomic && f->happens_before && (t->store || f->words)), 0))
    take_special(f, t, near, next, effect);
  else if (!next && races_is_touched(near->touched->bytes[effect], offset, offset + size)) f->number++;
  else compare_access(f, t, near, next, effect);
  if (size == 8) track_call(f, t);
  return true;
}

// Takes an access of the kernel for the thread.
static void take_kernel_access(struct races_follower *f, const struct heddle_mem_entry *e, bool write) {
  struct races_runner *r = f->runner;
  if (!r) return;
  if (r->ignores) {
    f->skipped++;
    return;
  }
  uint64_t number = e->addr >> PAGE_SHIFT, page = accessed_page(r->space, number, e->pc);
  races_note_page(f, r->space, number, page);
  f->access = (struct races_access){
      .thread = r->number, .addr = (page << PAGE_SHIFT) + e->addr % PAGE_BYTES, .size = e->branches, .write = write,
      .other = true, .branches = f->branches, .stack = r->node};
  races_send(f, e->addr);
}

static __attribute__((noinline)) void take_change(struct races_follower *f, const struct heddle_mem_entry *e, const uint8_t *bytes) {
  switch (e->kind) {
    case HEDDLE_MEM_MAP:
      note_mapping(f, e->addr >> PAGE_SHIFT, e->pc);
      break;
    case HEDDLE_MEM_KERNEL: {
      bool known = !(e->flags & HEDDLE_MEM_LATER);
      if (known && !(e->flags & HEDDLE_MEM_BUFFERED)) take_kernel_access(f, e, true);
      put_bytes(f, e, known ? bytes + e->value : NULL);
      break;
    }
    case HEDDLE_MEM_READ:
      take_kernel_access(f, e, false);
      break;
    case HEDDLE_MEM_CONTENT:
    case HEDDLE_MEM_ZERO:
      races_forget(f->detector, e->pc << PAGE_SHIFT, (e->pc + 1) << PAGE_SHIFT);
      set_content(f, e->pc, e->kind == HEDDLE_MEM_CONTENT ? bytes + e->value : NULL);
      if (f->runner) begin_turn(f);
      break;
    case HEDDLE_MEM_COPY:
      if (f->runner) races_copy_page(f->detector, e->pc, e->value, f->detector->threads[f->runner->number].process);
      copy_content(f, e->pc, e->value);
      if (f->runner) begin_turn(f);
      break;
  }
}

// Takes entries of the log, of f->runner, up to the end or a stop; then the caller acts and continues behind
// the entries that were taken, of which the number is returned.
size_t races_follow(struct races_follower *f, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes, uint32_t *stop) {
  const struct heddle_mem_entry *e = entries, *end = entries + n;
  *stop = RACES_END;
  if (f->runner) begin_turn(f);
  while (e < end) {
    if (e->kind > HEDDLE_MEM_STORE) {
      take_change(f, e, bytes);
      e++;
    } else {
      bool high = e->size > 8;
      struct taken t = {
          .addr = e->addr, .pc = e->pc, .value = {e->value, high ? e[1].value : 0}, .branches = e->branches, .size = e->size,
          .store = e->kind == HEDDLE_MEM_STORE, .atomic = e->flags & HEDDLE_MEM_ATOMIC};
      if (!f->runner) {
        *stop = RACES_STRAY;
        return (size_t)(e - entries);
      }
      if (!take_access(f, &t)) {
        *stop = RACES_FIRST;
        return (size_t)(e - entries);
      }
      e += high ? 2 : 1;
    }
    if (__builtin_expect(f->detector->nfound, 0)) {
      *stop = RACES_FOUND;
      break;
    }
  }
  return (size_t)(e - entries);
}

// ---- accesses while the engine runs -------------------------------------------------------

static size_t take_entries(struct heddle_mem_consumer *c, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes) {
  uint32_t stop;
  size_t taken = races_follow((struct races_follower *)c, entries, n, bytes, &stop);
  c->held = stop != RACES_END;
  return taken;
}

static inline uint64_t address_of(const struct heddle_mem_access *a, const uint64_t *record) {
  return a->at + (a->address_word ? record[a->address_word] : 0);
}

static const uint64_t masks[9] = {0, 0xff, 0xffff, 0xffffff, UINT32_MAX, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};

// The first eight bytes of an access's value; of a smaller one all, and zeros.
static inline uint64_t value_of(const struct heddle_mem_access *a, const uint64_t *record) {
  uint64_t value = a->value_word ? record[a->value_word] : (uint64_t)a->value;
  return a->size < 8 ? value & masks[a->size] : value;
}

// Reports whether the thread has touched bytes of a page. Once it has touched all of them, only the place at hand
// is read: the bits take an eighth of the page's room in the processor's caches.
static inline __attribute__((always_inline)) bool has_touched(const struct races_near *near, enum races_effect effect, unsigned offset,
                                                              unsigned size) {
  unsigned bit = offset % 64;
  if (near->full > effect) return true;
  uint64_t bits = (((uint64_t)1 << size) - 1) << bit;
  return bit + size <= 64 && (near->touched->bytes[effect][offset / 64] & bits) == bits;
}

// Takes an access that is a repetition and no part of a call or a return. Returns false if it has not taken it:
// take_access is to.
static inline __attribute__((always_inline)) bool take_repeated(struct races_follower *f, const struct heddle_mem_access *a,
                                                                const uint64_t *record) {
  uint64_t addr = address_of(a, record);
  const struct races_near *near = near_at(f, addr >> PAGE_SHIFT);
  unsigned offset = (unsigned)(addr % PAGE_BYTES), size = a->size;
  if (near->key != f->key + (addr >> PAGE_SHIFT) || offset + size > PAGE_BYTES) return false;
  if (!a->store) return has_touched(near, RACES_READS, offset, size) && !(size == 8 && addr == f->runner->slot);
  if (!near->content || !is_number(size)) return false;
  uint64_t value = value_of(a, record);
  uint8_t *at = near->content + offset;
  if (size == 8 && is_return_address(value, a->pc)) return false;
  if (has_touched(near, RACES_CHANGES, offset, size)) {
    write_number(at, size, value);
    return true;
  }
  return has_touched(near, RACES_REWRITES, offset, size) && read_number(at, size) == value;
}

static size_t take_accesses(struct heddle_mem_consumer *c, const struct heddle_mem_access *accesses, size_t n, const uint64_t *record,
                         uint32_t branches) {
  struct races_follower *f = (struct races_follower *)c;
  const struct heddle_mem_access *a = accesses, *end = accesses + n;
  bool repeats = f->runner->begun && !f->runner->ignores;
  for (; a < end && a->size <= 16; a++) {
    if (repeats && take_repeated(f, a, record)) {
      f->number++;
      continue;
    }
    struct taken t = {
        .addr = address_of(a, record), .pc = a->pc, .value = {value_of(a, record)}, .branches = branches + a->branches,
        .size = a->size, .store = a->store};
    if (a->size > 8) t.value[1] = record[a->value_word + 1] & masks[a->size - 8];
    if (!take_access(f, &t)) {
      c->held = true;
      break;
    }
    if (__builtin_expect(f->detector->nfound, 0)) {
      c->held = true;
      a++;
      break;
    }
  }
  if (a > accesses) note_branches(f, branches + a[-1].branches);
  return (size_t)(a - accesses);
}

// The engine is about to run f->runner. Returns the consumer of its log.
struct heddle_mem_consumer *races_begin_run(struct races_follower *f) {
  begin_turn(f);
  f->consumer.held = false;
  return &f->consumer;
}
