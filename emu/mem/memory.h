// Physical pages and address spaces. space.go and ram.go describe them.
#ifndef HEDDLE_MEMORY_H
#define HEDDLE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEDDLE_PAGE_SHIFT 12
#define HEDDLE_PAGE_SIZE ((uint64_t)1 << HEDDLE_PAGE_SHIFT)
#define HEDDLE_USER_END ((uint64_t)1 << 47)

// Page 0 is the page of zeros that untouched anonymous memory reads. It is never freed and never
// written.
#define HEDDLE_ZERO_PAGE 0
// The result of an allocation beyond the limit.
#define HEDDLE_NO_PAGE UINT64_MAX

// Pages beyond the limit, for cores' private copies of pages.
#define HEDDLE_PRIVATE_PAGES ((uint64_t)1 << 18)

// A page table entry: page number << 12 and these bits.
#define HEDDLE_PTE_READ 1u
#define HEDDLE_PTE_WRITE 2u
#define HEDDLE_PTE_EXEC 4u
#define HEDDLE_PTE_PERM 7u
#define HEDDLE_PTE_SHARED 8u   // written in place, whatever its reference count
#define HEDDLE_PTE_PRESENT 16u
#define HEDDLE_PTE_NOTED 32u   // a mark of the space's owner, which changes of rights keep

enum heddle_access { HEDDLE_READ, HEDDLE_WRITE, HEDDLE_FETCH };

// Results of a translation.
enum heddle_walk {
  HEDDLE_WALK_OK,
  HEDDLE_WALK_ABSENT,     // no entry, or the address is not a user address
  HEDDLE_WALK_DENIED,     // an entry without the right
  HEDDLE_WALK_NO_MEMORY,  // a copy was needed and the limit is reached
  HEDDLE_WALK_CODE,       // a page becomes code or is no longer code: the engine must stop first
};

// Bytes of a cache line: an access within one becomes visible at once (SDM volume 3, section
// 8.1.1).
#define HEDDLE_LINE_SIZE 64u

// Per-page flags.
#define HEDDLE_PAGE_CODE 1u   // the engine may hold translations of the page
#define HEDDLE_PAGE_STALE 2u  // ... and its bytes have changed since, without the engine
#define HEDDLE_PAGE_DEPARTED 4u  // a space that had it as code has gone (heddle_space_clone_snapshot)

// Several RAMs can lie in one mapping. Each allocates, counts and writes only pages of its own. It
// can read foreign pages, those of the others, whose owner must not write or free them meanwhile.
struct heddle_ram {
  uint8_t *base;    // of the mapping
  uint64_t pages;   // of the mapping
  uint64_t first;   // first own page, and number of own pages, with those for private copies
  uint64_t span;
  uint64_t limit;   // on the number of allocated pages
  uint64_t fresh;   // own pages from here on were never allocated and are zero
  uint64_t used;    // allocated pages, without the page of zeros
  uint64_t peak;    // largest value of used
  int64_t used_elsewhere, tables_elsewhere;  // added to used and tables for the limit
  uint32_t *refs;   // owners of each own page
  uint8_t *flags;   // of all pages of the mapping
  uint32_t *freed;  // stack of pages that were freed; at its bottom those with code, whose content may be wanted again
  uint64_t nfreed, nkept;
  uint64_t kept_next;  // of the latter, the next one that makes room for another
  uint32_t *stale;  // pages with HEDDLE_PAGE_STALE, each once
  uint64_t nstale;
  uint32_t *departed;  // pages with HEDDLE_PAGE_DEPARTED, each once
  uint64_t ndeparted, departed_room;
  // Foreign pages with code, with the bytes that were translated, and of each page its position in
  // the list, from 1 on. NULL: there are no other RAMs.
  struct heddle_foreign_code *foreign;
  uint64_t nforeign, foreign_room;
  uint32_t *foreign_index;
  uint64_t tables;  // nodes of page tables, which count against the limit
  uint64_t serial;  // last version or code of a space
  const struct heddle_observer *observer;  // of the pages, or NULL
  void *observed_by;                       // the argument of its functions
  bool reads_for_guest;  // the kernel reads on behalf of the guest
  bool commits;          // bytes are written because a store buffer commits a store
};

struct heddle_node;
struct heddle_space;

// Functions that are called after pages have changed or were read, for a log of memory and for
// private pages. The first argument of each is the observer.
struct heddle_observer {
  void (*allocated)(void *observer, uint64_t page);
  // The space has the page from now on in place of the one that it is a copy of, which other spaces may have.
  void (*copied)(void *observer, const struct heddle_space *s, uint64_t page, uint64_t from);
  // The kernel has read or written n bytes at va, all in one page.
  void (*read)(void *observer, uint64_t page, uint64_t va, size_t n);
  void (*written)(void *observer, uint64_t page, uint64_t va, const void *bytes, size_t n);
  // The page was changed in a way that no other function reports.
  void (*changed)(void *observer, uint64_t page);
  void (*cleared)(void *observer, const struct heddle_space *s);
  // A walk while the engine was stopped has found *pte; the function may change it.
  void (*walked)(void *observer, struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte);
  // Returns the entry as the running thread sees it.
  uint64_t (*seen)(void *observer, uint64_t pte);
  // The last two are NULL if the observer does not change what threads see.
};

struct heddle_foreign_code {
  uint32_t page;
  uint8_t *bytes;
};

struct heddle_space {
  struct heddle_ram *ram;
  uint64_t number;    // another for each space but snapshots and what is restored from them
  struct heddle_node *root;
  uint64_t resident;  // number of entries
  uint64_t zeros;     // ... for the page of zeros
  uint64_t peak;      // largest number of entries for other pages
  uint64_t version;   // changed whenever a cached translation may be outdated
  uint64_t code;      // changed whenever executable entries change
  // Like code, but a snapshot and what is restored from it have the same number (heddle_space_clone_snapshot).
  // The executable pages that were added since the space got it are in the list, if it keeps one.
  uint64_t lineage;
  bool keeps_added;
  uint32_t *added;
  uint32_t nadded, added_room;
};
// Numbers, versions, codes and lineages grow and are unique among all spaces of one RAM.

void *heddle_reserve(uint64_t bytes);
void heddle_populate(void *at, uint64_t bytes);
void heddle_unreserve(void *at, uint64_t bytes);
void heddle_advise_huge(void *at, uint64_t bytes);
int heddle_ram_init(struct heddle_ram *ram, uint8_t *base, uint64_t limit, unsigned index, unsigned count);
uint64_t heddle_ram_span(uint64_t limit);
void heddle_ram_check_foreign(struct heddle_ram *ram);
void heddle_ram_close(struct heddle_ram *ram);
uint64_t heddle_ram_alloc(struct heddle_ram *ram, bool zero);
uint64_t heddle_ram_alloc_filled(struct heddle_ram *ram, const uint8_t *content);
uint64_t heddle_ram_take(struct heddle_ram *ram, bool zero);
void heddle_ram_give_back(struct heddle_ram *ram, uint64_t page);
void heddle_ram_ref(struct heddle_ram *ram, uint64_t page);
void heddle_ram_unref(struct heddle_ram *ram, uint64_t page);
void heddle_ram_written(struct heddle_ram *ram, uint64_t page);
void heddle_ram_changed(struct heddle_ram *ram, uint64_t page);
bool heddle_ram_full(const struct heddle_ram *ram);
void heddle_ram_departs(struct heddle_ram *ram, uint64_t page);
void heddle_ram_becomes_code(struct heddle_ram *ram, uint64_t page);

// Reports whether a page belongs to the RAM.
static inline bool heddle_ram_owns(const struct heddle_ram *ram, uint64_t page) {
  return page - ram->first < ram->span;
}

static inline uint8_t *heddle_ram_bytes(const struct heddle_ram *ram, uint64_t page) {
  return ram->base + (page << HEDDLE_PAGE_SHIFT);
}

void heddle_space_init(struct heddle_space *s, struct heddle_ram *ram);
void heddle_space_clone(struct heddle_space *to, struct heddle_space *from);
void heddle_space_clone_snapshot(struct heddle_space *to, struct heddle_space *from);
void heddle_space_import(struct heddle_space *to, struct heddle_ram *ram, const struct heddle_space *from);
void heddle_space_clear_all(struct heddle_space *s);
uint64_t heddle_space_get(const struct heddle_space *s, uint64_t va);
bool heddle_space_set(struct heddle_space *s, uint64_t va, uint64_t pte);
bool heddle_space_fill_zero(struct heddle_space *s, uint64_t start, uint64_t end, unsigned perm);
void heddle_space_unmap(struct heddle_space *s, uint64_t start, uint64_t end);
void heddle_space_protect(struct heddle_space *s, uint64_t start, uint64_t end, unsigned perm);
bool heddle_space_move(struct heddle_space *s, uint64_t from, uint64_t to, uint64_t len);
enum heddle_walk heddle_space_walk(struct heddle_space *s, uint64_t va, enum heddle_access access,
                                   bool stopped, uint64_t *pte);
bool heddle_space_peek(const struct heddle_space *s, uint64_t va, enum heddle_access access, uint64_t *pte);
uint64_t heddle_space_seen(const struct heddle_space *s, uint64_t va);
uint64_t heddle_space_own(struct heddle_space *s, uint64_t va);
enum heddle_walk heddle_space_read(struct heddle_space *s, uint64_t va, void *to, size_t len, size_t *done);
enum heddle_walk heddle_space_write(struct heddle_space *s, uint64_t va, const void *from, size_t len,
                                    size_t *done);
size_t heddle_space_read_string(struct heddle_space *s, uint64_t va, char *to, size_t max,
                                enum heddle_walk *why);
// Stores up to max (va, pte) pairs and returns the number of entries, which may exceed max.
size_t heddle_space_entries(const struct heddle_space *s, uint64_t start, uint64_t end, uint64_t *out,
                            size_t max);
size_t heddle_space_diff(const struct heddle_space *a, const struct heddle_space *b, uint64_t *out, size_t max);

#endif
