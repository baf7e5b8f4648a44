// Address spaces: trees of page tables that snapshots share.
#include "memory.h"

#include <stdlib.h>
#include <string.h>

// A function that uses general registers only.
#define GENERAL __attribute__((target("general-regs-only")))

#define FAN 512u
#define LEVELS 4u

// A node of the page-table tree. Address spaces and snapshots share nodes; a node with more than
// one owner is never changed but copied (path copying), so cloning a space costs one increment.
//
// A link to a node of another RAM has its lowest bit set: it is foreign. The node is read, and
// copied before a change; all nodes below it belong to the other RAM as well. It may be gone by the
// time that the link is dropped.
struct heddle_node {
  uint32_t refs;
  uint32_t live;  // entries that are not 0
  uint64_t e[FAN];
};

static uint64_t next_number(struct heddle_ram *ram) { return ++ram->serial; }

GENERAL static unsigned slot_of(uint64_t va, unsigned level) {
  return (va >> (HEDDLE_PAGE_SHIFT + 9 * level)) & (FAN - 1);
}

#define FOREIGN ((uintptr_t)1)

GENERAL static bool is_foreign(const struct heddle_node *link) { return (uintptr_t)link & FOREIGN; }

GENERAL static struct heddle_node *node_of(const struct heddle_node *link) {
  return (struct heddle_node *)((uintptr_t)link & ~FOREIGN);
}

static struct heddle_node *foreign_link(const struct heddle_node *link) {
  return (struct heddle_node *)((uintptr_t)link | FOREIGN);
}

GENERAL static struct heddle_node *link_at(const struct heddle_node *n, unsigned i) {
  return (struct heddle_node *)(uintptr_t)n->e[i];
}

static struct heddle_node *child_of(const struct heddle_node *n, unsigned i) { return node_of(link_at(n, i)); }

static struct heddle_node *new_node(struct heddle_ram *ram) {
  struct heddle_node *n = calloc(1, sizeof *n);
  if (!n) abort();
  n->refs = 1;
  ram->tables++;
  return n;
}

static void drop_node(struct heddle_ram *ram, struct heddle_node *n, unsigned level) {
  if (is_foreign(n) || --n->refs) return;
  for (unsigned i = 0; i < FAN && n->live; i++) {
    if (!n->e[i]) continue;
    n->live--;
    if (level) drop_node(ram, link_at(n, i), level - 1);
    else heddle_ram_unref(ram, n->e[i] >> HEDDLE_PAGE_SHIFT);
  }
  ram->tables--;
  free(n);
}

static void add_owner(struct heddle_node *n) {
  if (!is_foreign(n)) n->refs++;
}

// Makes the node in *at the caller's own, by a copy if it has other owners.
static struct heddle_node *own_node(struct heddle_ram *ram, struct heddle_node **at, unsigned level) {
  struct heddle_node *n = node_of(*at);
  bool mine = !is_foreign(*at);
  if (mine && n->refs == 1) return n;
  struct heddle_node *c = malloc(sizeof *c);
  if (!c) abort();
  *c = (struct heddle_node){.refs = 1, .live = n->live};
  memcpy(c->e, n->e, sizeof c->e);
  ram->tables++;
  if (mine) n->refs--;
  for (unsigned i = 0, left = c->live; left; i++) {
    if (!c->e[i]) continue;
    left--;
    if (!level) heddle_ram_ref(ram, c->e[i] >> HEDDLE_PAGE_SHIFT);
    else if (mine) add_owner(link_at(c, i));
    else c->e[i] |= FOREIGN;
  }
  return *at = c;
}

// Executable entries have changed.
static void change_code(struct heddle_space *s) {
  s->code = next_number(s->ram);
  s->lineage = next_number(s->ram);
}

void heddle_space_init(struct heddle_space *s, struct heddle_ram *ram) {
  *s = (struct heddle_space){
      .ram = ram, .root = new_node(ram), .number = next_number(ram), .version = next_number(ram)};
  change_code(s);
}

// An executable entry for the page was added.
static void note_code(struct heddle_space *s, uint64_t page) {
  if (!s->keeps_added) return;
  if (s->nadded == s->added_room) {
    s->added_room = s->added_room ? 2 * s->added_room : 64;
    s->added = realloc(s->added, s->added_room * sizeof *s->added);
    if (!s->added) abort();
  }
  s->added[s->nadded++] = (uint32_t)page;
}

// Engines have to forget where code of the pages that were added has been reached from: other spaces of the
// lineage do not have them.
static void depart(struct heddle_space *s) {
  for (uint32_t i = 0; i < s->nadded; i++) heddle_ram_departs(s->ram, s->added[i]);
  s->nadded = 0;
}

// Makes a copy without a number of its own from *from.
static void clone(struct heddle_space *to, struct heddle_space *from) {
  // Both sides may have cached the right to write in place.
  from->version = next_number(from->ram);
  *to = *from;
  add_owner(to->root);
  to->version = next_number(from->ram);
  to->code = next_number(from->ram);
  to->keeps_added = false;
  to->added = NULL;
  to->nadded = to->added_room = 0;
}

void heddle_space_clone(struct heddle_space *to, struct heddle_space *from) {
  clone(to, from);
  to->number = next_number(from->ram);
  to->lineage = next_number(from->ram);
}

// Makes a copy for a snapshot, or of a snapshot's space: both are of one lineage. No two of a lineage may be
// run until one of them is cleared.
void heddle_space_clone_snapshot(struct heddle_space *to, struct heddle_space *from) {
  clone(to, from);
  from->keeps_added = to->keeps_added = true;
  // Others of the lineage do not have these pages: they depart with each that has them.
  for (uint32_t i = 0; i < from->nadded; i++) note_code(to, from->added[i]);
}

// Makes a space of one RAM that is a copy of a space of another RAM. The caller keeps from
// unchanged until the copy is gone.
void heddle_space_import(struct heddle_space *to, struct heddle_ram *ram, const struct heddle_space *from) {
  *to = (struct heddle_space){.ram = ram, .root = foreign_link(from->root), .resident = from->resident,
                              .zeros = from->zeros, .peak = from->peak, .number = next_number(ram), .version = next_number(ram)};
  change_code(to);
}

void heddle_space_clear_all(struct heddle_space *s) {
  if (s->ram->observer) s->ram->observer->cleared(s->ram->observed_by, s);
  if (s->root) drop_node(s->ram, s->root, LEVELS - 1);
  s->root = NULL;
  s->resident = s->zeros = 0;
  depart(s);
  free(s->added);
  s->added = NULL;
  s->added_room = 0;
}

// Returns the leaf with the entry of va, or NULL. *unique is set if no node on the way to it has
// other owners.
GENERAL static struct heddle_node *find_leaf(const struct heddle_space *s, uint64_t va, bool *unique) {
  struct heddle_node *n = node_of(s->root);
  bool only = !is_foreign(s->root) && n->refs == 1;
  for (unsigned level = LEVELS - 1; level; level--) {
    struct heddle_node *link = link_at(n, slot_of(va, level));
    if (!link) return NULL;
    n = node_of(link);
    only = only && !is_foreign(link) && n->refs == 1;
  }
  if (unique) *unique = only;
  return n;
}

// Returns the leaf of va after making all nodes on the way to it the space's own.
static struct heddle_node *own_leaf(struct heddle_space *s, uint64_t va) {
  struct heddle_node *n = own_node(s->ram, &s->root, LEVELS - 1);
  for (unsigned level = LEVELS - 1; level; level--) {
    unsigned i = slot_of(va, level);
    struct heddle_node *next = link_at(n, i);
    if (next) {
      next = own_node(s->ram, &next, level - 1);
    } else {
      next = new_node(s->ram);
      n->live++;
    }
    n->e[i] = (uintptr_t)next;
    n = next;
  }
  return n;
}

uint64_t heddle_space_get(const struct heddle_space *s, uint64_t va) {
  if (va >= HEDDLE_USER_END) return 0;
  struct heddle_node *n = find_leaf(s, va, NULL);
  return n ? n->e[slot_of(va, 0)] : 0;
}

static bool is_zero(uint64_t pte) { return pte >> HEDDLE_PAGE_SHIFT == HEDDLE_ZERO_PAGE; }

// The space has a new entry for a page other than the page of zeros.
static void note_added(struct heddle_space *s) {
  if (s->resident - s->zeros > s->peak) s->peak = s->resident - s->zeros;
}

// The entry old was removed from the space.
static void note_removed(struct heddle_space *s, uint64_t old) {
  s->resident--;
  s->zeros -= is_zero(old);
  s->version = next_number(s->ram);
  if (old & HEDDLE_PTE_EXEC) change_code(s);
  heddle_ram_unref(s->ram, old >> HEDDLE_PAGE_SHIFT);
}

// Puts pte at va; the space takes over the caller's reference to the page.
bool heddle_space_set(struct heddle_space *s, uint64_t va, uint64_t pte) {
  if (va >= HEDDLE_USER_END) return false;
  struct heddle_node *n = own_leaf(s, va);
  uint64_t *e = &n->e[slot_of(va, 0)], old = *e;
  *e = pte | HEDDLE_PTE_PRESENT;
  if (old) note_removed(s, old);
  else n->live++;
  s->resident++;
  s->zeros += is_zero(pte);
  note_added(s);
  if (pte & HEDDLE_PTE_EXEC) note_code(s, pte >> HEDDLE_PAGE_SHIFT);
  return true;
}

// Puts the page of zeros at the addresses of [start, end) that have no entry. Returns false if
// there is no room for the page tables.
bool heddle_space_fill_zero(struct heddle_space *s, uint64_t start, uint64_t end, unsigned perm) {
  if (end > HEDDLE_USER_END) end = HEDDLE_USER_END;
  if (perm & HEDDLE_PTE_EXEC) note_code(s, HEDDLE_ZERO_PAGE);
  for (uint64_t va = start & ~(HEDDLE_PAGE_SIZE - 1); va < end;) {
    if (heddle_ram_full(s->ram)) return false;
    struct heddle_node *n = own_leaf(s, va);
    unsigned i = slot_of(va, 0);
    for (; i < FAN && va < end; i++, va += HEDDLE_PAGE_SIZE) {
      if (n->e[i]) continue;
      n->e[i] = perm | HEDDLE_PTE_PRESENT;
      n->live++;
      s->resident++;
      s->zeros++;
    }
  }
  return true;
}

static uint64_t bytes_at_level(unsigned level) { return HEDDLE_PAGE_SIZE << (9 * level); }

// Subtracts the entries below n from the counts of s.
static void subtract_counts(struct heddle_space *s, const struct heddle_node *n, unsigned level) {
  for (unsigned i = 0, left = n->live; left; i++) {
    if (!n->e[i]) continue;
    left--;
    if (level) {
      subtract_counts(s, child_of(n, i), level - 1);
    } else {
      s->resident--;
      s->zeros -= is_zero(n->e[i]);
    }
  }
}

// Removes the entries of [start, end) below the node in *at, which covers the addresses from base
// on. Returns whether the node is then empty.
static bool unmap_in(struct heddle_space *s, struct heddle_node **at, unsigned level, uint64_t base,
                     uint64_t start, uint64_t end) {
  struct heddle_node *n = node_of(*at);
  bool owned = false;
  for (unsigned i = start > base ? (start - base) / bytes_at_level(level) : 0; i < FAN && n->live; i++) {
    uint64_t from = base + i * bytes_at_level(level), to = from + bytes_at_level(level);
    if (from >= end) break;
    if (!n->e[i]) continue;
    if (!owned) {
      n = own_node(s->ram, at, level);
      owned = true;
    }
    if (!level) {
      uint64_t old = n->e[i];
      n->e[i] = 0;
      n->live--;
      note_removed(s, old);
      continue;
    }
    struct heddle_node *c = link_at(n, i);
    bool gone;
    if (start <= from && to <= end) {
      subtract_counts(s, node_of(c), level - 1);
      s->version = next_number(s->ram);
      change_code(s);
      drop_node(s->ram, c, level - 1);
      gone = true;
    } else {
      gone = unmap_in(s, &c, level - 1, from, start, end);
      n->e[i] = (uintptr_t)c;
      if (gone) drop_node(s->ram, c, level - 1);
    }
    if (gone) {
      n->e[i] = 0;
      n->live--;
    }
  }
  return n->live == 0;
}

void heddle_space_unmap(struct heddle_space *s, uint64_t start, uint64_t end) {
  if (end > HEDDLE_USER_END) end = HEDDLE_USER_END;
  if (start < end) unmap_in(s, &s->root, LEVELS - 1, 0, start, end);
}

static void protect_in(struct heddle_space *s, struct heddle_node **at, unsigned level, uint64_t base,
                       uint64_t start, uint64_t end, unsigned perm) {
  struct heddle_node *n = node_of(*at);
  bool owned = false;
  for (unsigned i = start > base ? (start - base) / bytes_at_level(level) : 0; i < FAN && n->live; i++) {
    uint64_t from = base + i * bytes_at_level(level);
    if (from >= end) break;
    if (!n->e[i]) continue;
    if (!owned) {
      n = own_node(s->ram, at, level);
      owned = true;
    }
    if (level) {
      struct heddle_node *c = link_at(n, i);
      protect_in(s, &c, level - 1, from, start, end, perm);
      n->e[i] = (uintptr_t)c;
    } else {
      if ((n->e[i] ^ perm) & HEDDLE_PTE_EXEC) change_code(s);
      n->e[i] = (n->e[i] & ~(uint64_t)HEDDLE_PTE_PERM) | perm;
    }
  }
}

// Sets the rights of existing entries.
void heddle_space_protect(struct heddle_space *s, uint64_t start, uint64_t end, unsigned perm) {
  if (end > HEDDLE_USER_END) end = HEDDLE_USER_END;
  if (start >= end) return;
  protect_in(s, &s->root, LEVELS - 1, 0, start, end, perm);
  s->version = next_number(s->ram);
}

// Copies the entries of [start, end) below n to addresses that are by bytes higher. The tree of n
// must not change: it belongs to a clone.
static void copy_to(struct heddle_space *s, const struct heddle_node *n, unsigned level, uint64_t base,
                    uint64_t start, uint64_t end, uint64_t by) {
  for (unsigned i = start > base ? (start - base) / bytes_at_level(level) : 0; i < FAN; i++) {
    uint64_t from = base + i * bytes_at_level(level);
    if (from >= end) break;
    if (!n->e[i]) continue;
    if (level) {
      copy_to(s, child_of(n, i), level - 1, from, start, end, by);
    } else {
      heddle_ram_ref(s->ram, n->e[i] >> HEDDLE_PAGE_SHIFT);
      heddle_space_set(s, from + by, n->e[i]);
    }
  }
}

// Moves the entries of [from, from+len) to [to, to+len), which must be empty and must not overlap.
bool heddle_space_move(struct heddle_space *s, uint64_t from, uint64_t to, uint64_t len) {
  if (len > HEDDLE_USER_END || from > HEDDLE_USER_END - len || to > HEDDLE_USER_END - len) return false;
  struct heddle_space before;
  heddle_space_clone(&before, s);
  heddle_space_unmap(s, from, from + len);
  copy_to(s, node_of(before.root), LEVELS - 1, 0, from, from + len, to - from);
  heddle_space_clear_all(&before);
  return true;
}

// Gives the space a page of its own at va, which has an entry.
static enum heddle_walk copy_page(struct heddle_space *s, uint64_t va, bool stopped, uint64_t *pte) {
  struct heddle_ram *ram = s->ram;
  struct heddle_node *n = own_leaf(s, va);
  uint64_t *e = &n->e[slot_of(va, 0)], old = *e >> HEDDLE_PAGE_SHIFT;
  // own_leaf has added the other owners to the reference counts.
  if (old == HEDDLE_ZERO_PAGE || !heddle_ram_owns(ram, old) || ram->refs[old] > 1) {
    if ((ram->flags[old] & HEDDLE_PAGE_CODE) && !stopped) return HEDDLE_WALK_CODE;
    uint64_t page = heddle_ram_alloc(ram, old == HEDDLE_ZERO_PAGE);
    if (page == HEDDLE_NO_PAGE) return HEDDLE_WALK_NO_MEMORY;
    if (old != HEDDLE_ZERO_PAGE) {
      memcpy(heddle_ram_bytes(ram, page), heddle_ram_bytes(ram, old), HEDDLE_PAGE_SIZE);
      if (ram->observer) ram->observer->copied(ram->observed_by, s, page, old);
    }
    *e = (page << HEDDLE_PAGE_SHIFT) | (*e & (HEDDLE_PAGE_SIZE - 1));
    if (*e & HEDDLE_PTE_EXEC) note_code(s, page);
    if (ram->flags[old] & HEDDLE_PAGE_CODE) {
      // Blocks that are chained to each other would continue to run the old page's code.
      heddle_ram_written(ram, old);
    }
    s->zeros -= old == HEDDLE_ZERO_PAGE;
    note_added(s);
    heddle_ram_unref(ram, old);
    s->version = next_number(ram);
  }
  *pte = *e;
  return HEDDLE_WALK_OK;
}

// Reports whether a write to the entry's page requires a copy. Unique: no node on the way to the
// entry has other owners.
GENERAL static bool has_other_owners(const struct heddle_space *s, uint64_t e, bool unique) {
  uint64_t page = e >> HEDDLE_PAGE_SHIFT;
  return !(e & HEDDLE_PTE_SHARED) && (!unique || page == HEDDLE_ZERO_PAGE || !heddle_ram_owns(s->ram, page) ||
                                      s->ram->refs[page] > 1);
}

static enum heddle_walk translate(struct heddle_space *s, uint64_t va, enum heddle_access access, bool stopped,
                                  uint64_t *pte) {
  static const unsigned need[] = {HEDDLE_PTE_READ, HEDDLE_PTE_WRITE, HEDDLE_PTE_EXEC};
  if (va >= HEDDLE_USER_END) return HEDDLE_WALK_ABSENT;
  bool unique;
  struct heddle_node *n = find_leaf(s, va, &unique);
  uint64_t e = n ? n->e[slot_of(va, 0)] : 0;
  if (!e) return HEDDLE_WALK_ABSENT;
  if (!(e & need[access])) return HEDDLE_WALK_DENIED;
  uint64_t page = e >> HEDDLE_PAGE_SHIFT;
  if (access == HEDDLE_FETCH && !(s->ram->flags[page] & HEDDLE_PAGE_CODE)) {
    // The engine notices only the first write to a page after code in it was translated, and only
    // by the virtual address of the translation. So all mappings lose the right to write, which the
    // engine may have cached, before the page becomes code.
    bool writable = e & (HEDDLE_PTE_SHARED | HEDDLE_PTE_WRITE);
    if (writable && !stopped) return HEDDLE_WALK_CODE;
    heddle_ram_becomes_code(s->ram, page);
    if (writable) s->version = next_number(s->ram);
  }
  if (has_other_owners(s, e, unique)) {
    if (access == HEDDLE_WRITE) return copy_page(s, va, stopped, pte);
    e &= ~(uint64_t)HEDDLE_PTE_WRITE;
  }
  *pte = e;
  return HEDDLE_WALK_OK;
}

// Reports whether what a thread sees depends on the observer.
GENERAL static bool changes_entries(const struct heddle_ram *ram) { return ram->observer && ram->observer->seen; }

// heddle_space_walk for engines that execute while the guest's vector registers are in the host's:
// it uses general registers only, and changes nothing. If it returns false, heddle_space_walk must
// be called.
GENERAL bool heddle_space_peek(const struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte) {
  static const unsigned need[] = {HEDDLE_PTE_READ, HEDDLE_PTE_WRITE, HEDDLE_PTE_EXEC};
  if (va >= HEDDLE_USER_END || (changes_entries(s->ram) && access != HEDDLE_FETCH)) return false;
  bool unique;
  struct heddle_node *n = find_leaf(s, va, &unique);
  uint64_t e = n ? n->e[slot_of(va, 0)] : 0;
  if (!(e & need[access])) return false;
  if (access == HEDDLE_FETCH && !(s->ram->flags[e >> HEDDLE_PAGE_SHIFT] & HEDDLE_PAGE_CODE)) return false;
  if (has_other_owners(s, e, unique)) {
    if (access == HEDDLE_WRITE) return false;
    e &= ~(uint64_t)HEDDLE_PTE_WRITE;
  }
  *pte = e;
  return true;
}

// Makes the page at va the space's own, whatever rights its entry gives, and returns the entry, 0
// if it is absent.
uint64_t heddle_space_own(struct heddle_space *s, uint64_t va) {
  bool unique;
  struct heddle_node *n = find_leaf(s, va, &unique);
  uint64_t e = n ? n->e[slot_of(va, 0)] : 0;
  if (e && has_other_owners(s, e, unique) && copy_page(s, va, true, &e)) return 0;
  return e;
}

// Translates va. On success the WRITE bit of *pte says whether the page may be written in place. An
// access that writes copies the page first if it has other owners. Changes to pages with translated
// code are made only while the engine is stopped.
enum heddle_walk heddle_space_walk(struct heddle_space *s, uint64_t va, enum heddle_access access,
                                   bool stopped, uint64_t *pte) {
  enum heddle_walk w = translate(s, va, access, stopped, pte);
  if (stopped && changes_entries(s->ram) && !w) s->ram->observer->walked(s->ram->observed_by, s, va, access, pte);
  return w;
}

// Returns the entry of va as the running thread, if there is one, sees it.
uint64_t heddle_space_seen(const struct heddle_space *s, uint64_t va) {
  uint64_t pte = heddle_space_get(s, va);
  return changes_entries(s->ram) ? s->ram->observer->seen(s->ram->observed_by, pte) : pte;
}

struct pairs {
  uint64_t *out;
  size_t max, found;
};

static void add_pair(struct pairs *p, uint64_t va, uint64_t pte) {
  if (p->found < p->max) {
    p->out[2 * p->found] = va;
    p->out[2 * p->found + 1] = pte;
  }
  p->found++;
}

static void entries_in(const struct heddle_node *n, unsigned level, uint64_t base, uint64_t start, uint64_t end,
                       struct pairs *p) {
  for (unsigned i = start > base ? (start - base) / bytes_at_level(level) : 0; i < FAN; i++) {
    uint64_t from = base + i * bytes_at_level(level);
    if (from >= end) break;
    if (!n->e[i]) continue;
    if (level) entries_in(child_of(n, i), level - 1, from, start, end, p);
    else add_pair(p, from, n->e[i]);
  }
}

size_t heddle_space_entries(const struct heddle_space *s, uint64_t start, uint64_t end, uint64_t *out,
                            size_t max) {
  struct pairs p = {out, max, 0};
  entries_in(node_of(s->root), LEVELS - 1, 0, start, end, &p);
  return p.found;
}

// Compares the trees below a and b. The page of zeros stands for a missing entry.
static void diff_in(const struct heddle_node *a, const struct heddle_node *b, unsigned level, uint64_t base,
                    struct pairs *p) {
  if (a == b) return;
  for (unsigned i = 0; i < FAN; i++) {
    uint64_t ea = a ? a->e[i] : 0, eb = b ? b->e[i] : 0;
    if (ea == eb) continue;
    uint64_t va = base + i * bytes_at_level(level);
    if (level) {
      diff_in(a ? child_of(a, i) : NULL, b ? child_of(b, i) : NULL, level - 1, va, p);
    } else if (ea >> HEDDLE_PAGE_SHIFT != eb >> HEDDLE_PAGE_SHIFT) {
      add_pair(p, va, eb);
    }
  }
}

// Finds the addresses at which a and b have different pages, with the entry of b (0: none).
size_t heddle_space_diff(const struct heddle_space *a, const struct heddle_space *b, uint64_t *out, size_t max) {
  struct pairs p = {out, max, 0};
  diff_in(node_of(a->root), node_of(b->root), LEVELS - 1, 0, &p);
  return p.found;
}
