#include "follow.h"

#include <stdlib.h>
#include <string.h>

// ---- opening ------------------------------------------------------------------------------

struct races_follower *races_follower_open(struct races_detector *d, bool happens_before, bool values) {
  struct races_follower *f = calloc(1, sizeof *f);
  if (!f) return NULL;
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
  free(r);
}

// ---- addresses ----------------------------------------------------------------------------

struct races_space *races_new_space(void) {
  struct races_space *s = calloc(1, sizeof *s);
  if (!s) abort();
  return s;
}

void races_free_space(struct races_space *s) {
  races_table_clear(&s->pages);
  free(s);
}

// The page to which a page of addresses was last seen to lead.
bool races_space_page(const struct races_space *s, uint64_t number, uint64_t *page) {
  return races_table_get(&s->pages, number, page);
}

static struct races_near *near_at(struct races_follower *f, uint64_t number) { return &f->near[number % NEAR_PAGES]; }

// Notes that an address leads to a page.
void races_note_page(struct races_follower *f, struct races_space *s, uint64_t number, uint64_t page) {
  struct races_near *near = near_at(f, number);
  if (near->number == number && near->space == s && near->page->number != page) near->space = NULL;
  races_table_set(&s->pages, number, page);
}

// Forgets where the pages [from, to) of addresses lead.
void races_drop_pages(struct races_follower *f, struct races_space *s, uint64_t from, uint64_t to) {
  memset(f->near, 0, sizeof f->near);
  if (to - from <= s->pages.n) {
    for (; from < to; from++) races_table_remove(&s->pages, from);
    return;
  }
  struct races_table kept = {0};
  for (size_t i = 0; i < s->pages.room; i++) {
    uint64_t number = s->pages.keys[i] - 1;
    if (s->pages.keys[i] && !(number >= from && number < to)) races_table_set(&kept, number, s->pages.values[i]);
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
  struct races_near *near = near_at(f, number);
  races_table_set(&f->mapped, number, page);
  if (near->number == number && near->space && near->page->number != page) near->space = NULL;
}

// Finds the page of an address, page 0 if the log has none.
static struct races_page *page_of(struct races_follower *f, uint64_t number) {
  uint64_t page;
  return races_page_at(f->detector, races_table_get(&f->mapped, number, &page) ? page : 0);
}

static __attribute__((noinline)) struct races_page *find_page(struct races_follower *f, struct races_space *s, uint64_t number) {
  struct races_page *page = page_of(f, number);
  races_note_page(f, s, number, page->number);
  *near_at(f, number) = (struct races_near){number, s, page};
  return page;
}

// ---- contents -----------------------------------------------------------------------------

// Sets the content of a page, to zeros if bytes is NULL.
static void set_content(struct races_follower *f, uint64_t number, const uint8_t *bytes) {
  if (!f->values) return;
  struct races_page *p = races_page_at(f->detector, number);
  if (!p->content) p->content = races_allocate(NULL, PAGE_BYTES, 1);
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

// Applies a store of up to 16 bytes. The access gets its value and that which it replaces, of more than 8
// bytes whether these are equal.
static void store_value(struct races_access *a, struct races_page *page, struct races_page *next, unsigned offset, const uint64_t *value) {
  uint64_t old[2] = {0}, now[2] = {0};
  unsigned size = (unsigned)a->size, n = size < PAGE_BYTES - offset ? size : PAGE_BYTES - offset;
  if (!page->content) return;
  memcpy(now, value, size);
  memcpy(old, page->content + offset, n);
  memcpy(page->content + offset, now, n);
  a->valued = true;
  if (n < size) {
    a->valued = next->content;
    if (next->content) {
      memcpy((uint8_t *)old + n, next->content, size - n);
      memcpy(next->content, (const uint8_t *)now + n, size - n);
    }
  }
  a->value = now[0];
  a->old = old[0];
  if (size > 8 && (now[0] != old[0] || now[1] != old[1])) {
    a->value = 0;
    a->old = 1;
  }
}

// The same for a store of 1, 2, 4 or 8 bytes in one page.
static inline void store_number(struct races_access *a, uint8_t *at, uint64_t value) {
  uint64_t old = 0;
  switch (a->size) {
    case 1:
      old = *at;
      *at = (uint8_t)value;
      break;
    case 2:
      memcpy(&old, at, 2);
      memcpy(at, &value, 2);
      break;
    case 4:
      memcpy(&old, at, 4);
      memcpy(at, &value, 4);
      break;
    default:
      memcpy(&old, at, 8);
      memcpy(at, &value, 8);
  }
  a->valued = true;
  a->value = value;
  a->old = old;
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

static __attribute__((noinline)) void push_frame(struct races_follower *f, struct races_runner *r, const struct heddle_mem_entry *e) {
  while (r->nframes && r->slot <= e->addr) pop_frame(r);  // it was left in another way
  r->node = child_stack(f, r->node, e->pc);
  r->slot = e->addr;
  if (r->nframes == r->frames_room) {
    r->frames_room = r->frames_room ? 2 * r->frames_room : 64;
    r->frames = races_allocate(r->frames, r->frames_room, sizeof *r->frames);
  }
  r->frames[r->nframes++] = (struct races_frame){e->addr, e->value, r->node};
  if (e->addr < r->low) r->low = e->addr;
  if (e->addr > r->high) r->high = e->addr;
}

// The number of bytes of the longest call instruction that is in use, and of the shortest.
#define SHORTEST_CALL 2u
#define LONGEST_CALL 9u

// Follows calls and returns by an access of eight bytes.
static inline void track_call(struct races_follower *f, struct races_runner *r, const struct heddle_mem_entry *e) {
  if (e->kind == HEDDLE_MEM_LOAD) {
    if (e->addr == r->slot && r->nframes && e->value == r->frames[r->nframes - 1].ret) pop_frame(r);
  } else if (e->value - e->pc - SHORTEST_CALL <= LONGEST_CALL - SHORTEST_CALL) {
    push_frame(f, r, e);
  }
}

// ---- accesses -----------------------------------------------------------------------------

// Passes the access, which is at an address for the thread, to the detector.
void races_send(struct races_follower *f, uint64_t addr) {
  f->accesses++;
  f->access.at = f->number++;
  f->addr = addr;
  races_access(f->detector, &f->access);
}

static inline void send_in_page(struct races_follower *f, uint64_t addr, struct races_page *page) {
  f->accesses++;
  f->access.at = f->number++;
  f->addr = addr;
  races_access_page(f->detector, &f->access, page);
}

// Reports whether accesses like this do not count now.
static inline bool is_skipped(const struct races_follower *f, const struct heddle_mem_entry *e) {
  return f->runner->ignores || ((e->flags & HEDDLE_MEM_ATOMIC) && e->kind == HEDDLE_MEM_STORE && f->happens_before);
}

static inline struct races_page *page_for(struct races_follower *f, uint64_t number) {
  struct races_near *near = near_at(f, number);
  struct races_space *s = f->runner->space;
  if (__builtin_expect(near->number == number && near->space == s, 1)) return near->page;
  return find_page(f, s, number);
}

// Takes a load or store, whose second half is high. Returns false at a thread's first one, which is to be
// taken again then.
static inline bool take_access(struct races_follower *f, const struct heddle_mem_entry *e, uint64_t high) {
  struct races_runner *r = f->runner;
  struct races_access *a = &f->access;
  uint64_t addr = e->addr & (((uint64_t)1 << PC_BITS) - 1);
  unsigned offset = (unsigned)(addr % PAGE_BYTES), size = e->size;
  struct races_page *page = page_for(f, addr >> PAGE_SHIFT), *next = NULL;
  bool single = offset + size <= PAGE_BYTES, store = e->kind == HEDDLE_MEM_STORE;
  if (__builtin_expect(!r->begun, 0)) return false;
  f->branches = f->start + (uint32_t)(e->branches - f->counted);
  a->size = size;
  a->valued = false;
  if (!single) next = page_of(f, (addr + size - 1) >> PAGE_SHIFT);
  if (f->values && store) {
    uint64_t value[2] = {e->value, high};
    if (single && page->content && (size == 8 || size == 4 || size == 1 || size == 2)) store_number(a, page->content + offset, e->value);
    else store_value(a, page, next, offset, value);
  }
  if (is_skipped(f, e)) {
    f->skipped++;
  } else {
    a->thread = r->number;
    a->addr = (page->number << PAGE_SHIFT) + offset;
    a->write = store;
    a->other = false;
    a->pc = e->pc;
    a->branches = f->branches;
    a->atomic = (e->flags & HEDDLE_MEM_ATOMIC) && (f->atomics || f->happens_before);
    a->stack = r->node;
    a->first = 0;
    if (single) {
      send_in_page(f, addr, page);
    } else {
      a->first = PAGE_BYTES - offset;
      a->rest = next->number << PAGE_SHIFT;
      races_send(f, addr);
    }
  }
  if (size == 8) track_call(f, r, e);
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
  races_note_page(f, r->space, e->addr >> PAGE_SHIFT, e->pc);
  f->access = (struct races_access){
      .thread = r->number, .addr = (e->pc << PAGE_SHIFT) + e->addr % PAGE_BYTES, .size = e->branches, .write = write,
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
      break;
    case HEDDLE_MEM_COPY:
      if (f->runner) races_copy_page(f->detector, e->pc, e->value, f->detector->threads[f->runner->number].process);
      copy_content(f, e->pc, e->value);
      break;
  }
}

// How many entries before an access its state is fetched from memory, first where the state is, and then what
// that leads to.
#define FETCH_FIRST 12u
#define FETCH_SECOND 6u

// Returns the shadow of an entry's access, or NULL if that is not at hand.
static inline struct races_shadow *near_shadow(struct races_follower *f, const struct heddle_mem_entry *e) {
  uint64_t number = e->addr >> PAGE_SHIFT;
  struct races_near *near = near_at(f, number);
  return e->kind <= HEDDLE_MEM_STORE && near->number == number && near->page ? near->page->shadow : NULL;
}

// Has the processor fetch the states of accesses that come soon.
static inline void fetch_states(struct races_follower *f, const struct heddle_mem_entry *e) {
  const struct heddle_mem_entry *first = e + FETCH_FIRST, *second = e + FETCH_SECOND;
  unsigned word = (unsigned)(first->addr % PAGE_BYTES / WORD_SIZE);
  struct races_shadow *s = near_shadow(f, first);
  if (s) {
    __builtin_prefetch(&s->states[word]);
    __builtin_prefetch(&s->starts[word]);
    __builtin_prefetch(&s->known[word]);
    __builtin_prefetch(&s->more[word]);
  }
  word = (unsigned)(second->addr % PAGE_BYTES / WORD_SIZE);
  s = near_shadow(f, second);
  if (!s) return;
  unsigned part = races_part_number(s->starts[word], (unsigned)(second->addr % WORD_SIZE));
  if (part && s->more[word]) __builtin_prefetch(&s->more[word]->states[part - 1]);
}

// Takes entries of the log, of f->runner, up to the end or a stop; then the caller acts and continues behind
// the entries that were taken, of which the number is returned.
size_t races_follow(struct races_follower *f, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes, uint32_t *stop) {
  const struct heddle_mem_entry *e = entries, *end = entries + n;
  *stop = RACES_END;
  while (e < end) {
    if (e->kind > HEDDLE_MEM_STORE) {
      take_change(f, e, bytes);
      e++;
    } else {
      unsigned taken = e->size > 8 ? 2 : 1;
      if (e + FETCH_FIRST < end) fetch_states(f, e);
      if (!f->runner) {
        *stop = RACES_STRAY;
        return (size_t)(e - entries);
      }
      if (!take_access(f, e, taken > 1 ? e[1].value : 0)) {
        *stop = RACES_FIRST;
        return (size_t)(e - entries);
      }
      e += taken;
    }
    if (__builtin_expect(f->detector->nfound, 0)) {
      *stop = RACES_FOUND;
      break;
    }
  }
  return (size_t)(e - entries);
}
