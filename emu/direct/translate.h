// A block while it is translated.
#ifndef HEDDLE_DIRECT_TRANSLATE_H
#define HEDDLE_DIRECT_TRANSLATE_H

#include "block.h"
#include "encode.h"

// A branch out of the block: where it jumps from, and the flags then.
struct branch {
  uint8_t *jump;
  unsigned insn;
  struct direct_flags flags;
  bool in_host;
};

// A check that may fail: page is the entry that the pointer register was compared with; or the address
// is known.
struct miss {
  uint8_t *jump;
  uint32_t point;
  struct place page;
  bool constant;
  uint64_t address;
};

// Accesses by one register share a check: the pointer register has the host's address of [base + low], and
// the bytes up to high may be accessed.
struct group {
  bool valid, write;
  uint8_t base;
  uint16_t word;     // of the record: the guest's address of [base + low]
  int32_t low, high;
};

#define GROUP_BYTES 256

// What the record of a block has before an instruction.
struct recorded {
  uint16_t words;
  uint8_t events, branches, accesses;
};

// The guest's address of an access, as the record has it: at is added to the word, or is the address if
// that is 0.
struct where {
  uint16_t word;
  uint64_t at;
};

// What a block collects when it is left: bytes as log.h has them.
struct collected {
  unsigned n;
  uint8_t bytes[COLLECTED_MOST];
};

// Where a block leaves off if it returns to elsewhere than after the newest call, and continues.
struct other_return {
  uint8_t *from[2];
  const uint8_t *after;
  uint32_t number;  // of the exit
  struct collected collected;
};

struct translation {
  struct direct_engine *e;
  struct direct_block *block;
  const struct direct_insn *insns;
  const bool *taken;             // of conditional branches
  unsigned n;
  struct code c;
  unsigned scratch, pointer;     // the registers of the code itself
  // Where the flags can be had from. In the host's flags they are, too, if in_host.
  struct direct_flags flags;
  bool in_host;
  struct group group;
  unsigned log;                  // the register with the end of the raw log
  struct recorded recorded;
  struct where where;            // of the last access
  uint8_t *needs_flags;   // the jump of a block that needs them when they are not in SAVED_FLAGS
  uint8_t *hot;           // the jump of a short block that has been executed often
  uint32_t flags_ready;   // where that block continues
  struct other_return other_return;
  unsigned nbranches, nmisses;
  // By instruction, written before they are read.
  uint16_t cost_before[BLOCK_INSNS];
  uint8_t stores_before[BLOCK_INSNS];
  struct recorded recorded_before[BLOCK_INSNS];
  struct branch branches[BLOCK_INSNS];
  struct miss misses[2 * BLOCK_INSNS];
};

// accessgroup.c
void extend_group(const struct translation *t, unsigned i, struct group *g);
void move_group(struct translation *t, unsigned i);

// translatelog.c
void begin_record(struct translation *t);
void record_before(struct translation *t, unsigned i);
void record_after(struct translation *t, unsigned i);
unsigned put_collect(struct translation *t, unsigned i, const struct direct_exit *x);
void put_other_return(struct translation *t);
void put_record(struct translation *t, unsigned i, const struct direct_exit *x);
uint16_t put_address_word(struct translation *t);
void put_log_before(struct translation *t, unsigned i, struct place m);
void put_log_after(struct translation *t, unsigned i, struct place m);
void put_log_register(struct translation *t, unsigned i, unsigned r, bool store);
void log_constant_store(struct translation *t, unsigned i, int64_t value);
// translatestores.c
void count_stores(struct translation *t);
void put_stored(struct translation *t, unsigned i, struct place m, unsigned size);
void put_stores_exit(struct translation *t, unsigned i);

// translateflags.c
bool flags_are_needed(const struct translation *t);
bool flags_are_ignored(const struct translation *t);
bool stores_flags(const struct translation *t);
void put_flags_aside(struct translation *t);
void put_flags_before(struct translation *t, unsigned i);
void put_flags_after(struct translation *t, unsigned i, struct place m);
void put_shift_flags(struct translation *t);
void put_flags(struct translation *t);
void put_exit_flags(struct translation *t);
void note_equal(struct direct_flags *f);

#endif
