// The encoder of memory traces. docs/memory-trace.md has the format.
#ifndef HEDDLE_MEMTRACE_ENCODE_H
#define HEDDLE_MEMTRACE_ENCODE_H

#include "memlog.h"

// The head of an item: which form follows, what is given, and how many predicted records precede it.
#define HEAD_FIRST 0u     // the form that came after the last one the last time
#define HEAD_SECOND 1u    // the form that came before that one
#define HEAD_NUMBER 2u    // a number follows, a new one with the definition
#define HEAD_ITEM 3u      // no record: a byte with the kind follows
#define HEAD_BRANCHES 4u  // the number of branches is given
#define HEAD_PATTERN_SHIFT 3
#define HEAD_RUN_SHIFT 6
#define HEAD_RUN_MOST 3u  // a number follows, which is added

// Which words are given, and how: one of the form's patterns is 0 to PATTERNS - 1.
#define PATTERNS 6u
#define PATTERN_NONE 6u  // no words are given
#define PATTERN_NEW 7u   // the pattern follows

// Items that are no records.
enum { ITEM_END, ITEM_PIECE, ITEM_MAP, ITEM_KERNEL, ITEM_LATER, ITEM_CONTENT, ITEM_ZERO, ITEM_COPY, ITEM_VIEW, ITEM_READ, ITEM_PART };

// How a word is given: up to 8, the bytes of its difference to the last one.
#define MISS_OTHER 9u   // an address: as far from its last one as the address before. A value: the last one given at its address

#define FORM_WORDS 64u
#define NO_WORD 255u
#define NO_NUMBER UINT32_MAX
#define KIND_BLOCK ((uint32_t)1 << 31)
#define ACCESS_SIZE 31u  // of an access's description
#define ACCESS_STORE 32u
#define ACCESS_ATOMIC 64u

// Bounds of a block in bytes: in all, and of pages and the kernel's stores.
#define MEMTRACE_MAX_BYTES ((size_t)12 << 20)
#define MEMTRACE_MAX_DATA ((size_t)2 << 20)

#define VALUES 65536u
#define LASTS 256u

static inline uint32_t memtrace_slot(uint64_t addr) { return (uint32_t)(addr >> 2 ^ addr << 14 ^ addr >> 20) & (VALUES - 1); }

// A point in a run, as event.Stamp has it.
struct memtrace_stamp {
  uint64_t seq, sync, thread, core, time, instructions, branches;
};

// A word of a form: the value of an access, or an address.
struct memtrace_word {
  uint64_t at;      // what is added to the address
  uint8_t address;  // the number of the word that has the address, from 1; 0: none
  uint8_t size;     // bytes; 0: it is not used
  uint8_t shift;    // 64 less its bits
  uint8_t before;   // of an address: the last one before it, or NO_WORD
  bool value;
};

// Which of a record's words are given, and how: four bits for each.
struct memtrace_pattern {
  uint64_t words;
  uint64_t codes[FORM_WORDS / 16];
};

// Accesses that are executed one after the other, and the words that a record of them has.
struct memtrace_form {
  struct memtrace_form *next[2];  // that came after it, the last first
  uint64_t branches[2];           // between them
  uint64_t key;                   // the address of the engine's description, or a PC
  uint32_t kind;                  // KIND_BLOCK and the number of accesses, or the description
  uint32_t number;                // or NO_NUMBER
  uint32_t accesses;
  uint32_t first, words;          // of a record
  uint32_t padded;                // words, rounded up
  uint64_t values;                // the words that are values, as bits
  struct memtrace_word *word;
  uint32_t replaced;              // the pattern that the next new one replaces
  struct memtrace_pattern patterns[PATTERNS];
  uint64_t x[];                   // the last words, their last differences, their masks
};

struct memtrace_buffer {
  uint8_t *bytes;
  size_t n, room;
};

// A block that is complete.
struct memtrace_block {
  struct memtrace_block *next;
  struct memtrace_buffer out, numbers;
  struct memtrace_stamp *stamps;
  size_t nstamps;
};

struct memtrace_page {
  uint64_t number, page;  // number: 0 free, else the page's number and 1
};

struct memtrace_encoder {
  struct heddle_mem_consumer consumer;  // the first field: a pointer to it is one to the encoder
  struct memtrace_form *last;
  uint64_t run;       // predicted records that are not in the block yet
  uint64_t branches;  // before the last record
  uint64_t start;     // branches of the thread where the engine's count was counted
  uint32_t counted;
  uint64_t era;       // of the addresses in forms
  uint64_t accesses, most, data;  // of the block
  size_t mapped;      // bytes of it up to the mappings that it begins with
  struct memtrace_buffer out, numbers;  // the columns of the block
  struct memtrace_buffer spare[2];

  struct memtrace_form **forms, **table;
  uint32_t nforms, forms_room, table_room;
  uint64_t pc;  // of the last definition
  struct memtrace_arena *arena;
  struct memtrace_form *origin, *nothing;
  struct memtrace_form *lasts[LASTS];  // by thread

  struct memtrace_page *pages;
  size_t npages, pages_room;

  bool begun;  // the block has a piece
  struct memtrace_stamp stamp;
  struct memtrace_stamp *stamps;
  size_t nstamps, stamps_room;

  struct memtrace_block *done, **tail;
  uint64_t values[VALUES];
};

struct memtrace_encoder *memtrace_open(uint64_t most);
void memtrace_close(struct memtrace_encoder *e);
void memtrace_begin(struct memtrace_encoder *e, const struct memtrace_stamp *at, uint64_t counted);
void memtrace_add(struct memtrace_encoder *e, const struct heddle_mem_entry *entries, size_t n, const uint8_t *bytes);
void memtrace_finish(struct memtrace_encoder *e);
struct memtrace_block *memtrace_take(struct memtrace_encoder *e);
void memtrace_free(struct memtrace_encoder *e, struct memtrace_block *b);

// For record.h.
void memtrace_grow(struct memtrace_buffer *b, size_t n);
void memtrace_put_form(struct memtrace_encoder *e, struct memtrace_form *f, const struct heddle_mem_access *a, unsigned flags);
struct memtrace_form *memtrace_block_form(struct memtrace_encoder *e, const struct heddle_mem_access *a, uint32_t n);
void memtrace_forget_addresses(struct memtrace_encoder *e);
void memtrace_hold(struct memtrace_encoder *e);
size_t memtrace_take_avx2(struct heddle_mem_consumer *c, const struct heddle_mem_access *a, size_t n, const uint64_t *record,
                          uint32_t branches);

#endif
