// Logs of runs: branches, code, instructions, accesses to memory, atomic instructions.
//
// Blocks write a raw log: what is known when a block is translated is not in it. A block that is
// left by an exit has one record of 8-byte words: the exit's number and the number of words, with the
// rest of the cycles in the upper half if branches are timed; the words that the exit's accesses have kept (addresses and
// values); and the target if the branch is indirect. Where a block is left before an instruction,
// the C around it knows the point. C makes the entries of all logs from that each time that
// translated code is left, and logs units itself.
//
// A log of branches alone with compressed returns and without times has no record for a block without an
// indirect branch. When a block is left it writes its outcomes into a table of the bank, as bytes with up to 7
// outcomes each after a leading 1, from higher addresses to lower ones. The place is the lowest 16 bits of the
// budget, whose number of instructions has 16 bits then: charging the block moves it, so that a branch costs a
// load and a store. A byte of 0 stands for an indirect branch: the raw log has the exit's number and the target.
//
// Compressed returns: the context has the return addresses of the last calls of the run. A return to
// the newest is an outcome of 1 and takes it away; another return, which may be to 0, forgets all, by a 0
// in the newest place. A place that was taken away has 0, too.
#ifndef HEDDLE_DIRECT_LOG_H
#define HEDDLE_DIRECT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"
#include "insn.h"

// What is logged.
#define LOG_BRANCHES 1u
#define LOG_TIMED 2u         // ... with times
#define LOG_COUNT 4u         // branches are counted
#define LOG_INSTRUCTIONS 8u
#define LOG_ATOMICS 16u
#define LOG_MEMORY 32u       // accesses, with values
#define LOG_PHYSICAL 64u     // accesses of units, by physical address: all run as units
#define LOG_RETURNS 128u     // ... of branches, with compressed returns
#define LOG_UNITS (LOG_MEMORY | LOG_PHYSICAL)  // what units log of their accesses
#define LOG_RAW (LOG_BRANCHES | LOG_INSTRUCTIONS | LOG_MEMORY)  // what needs the raw log

// Entries of the log of branches, as emu.BranchWord has them.
#define WORD_TNT 1u
#define WORD_TIP 2u
#define WORD_CALL 3u
#define WORD_RET 4u
#define WORD_TIME 5u
#define WORD_TAG_SHIFT 60
#define WORD_OUTCOMES 47u       // in a word, at most
#define WORD_OUTCOMES_TIMED 6u

// Words after which a run stops.
#define LOG_FULL (1u << 14)

// The raw log: its words, and those that the record of one block can take. Beside collected outcomes it has
// two words for a cycle, at most.
#define RAW_WORDS (1u << 14)
#define RAW_WORDS_COLLECTED (2u << COLLECTED_BITS)
#define RECORD_WORDS 1024u

// The first word of a record.
#define RECORD_EXIT_BITS 20
static inline uint32_t record_exit(uint64_t head) { return (uint32_t)head & ((1u << RECORD_EXIT_BITS) - 1); }
static inline uint32_t record_words(uint64_t head) { return (uint32_t)head >> RECORD_EXIT_BITS; }

// Collected outcomes: the bits of their place, the outcomes in a byte, and the bytes of a block.
#define COLLECTED_BITS 16u
#define COLLECTED_IN_BYTE 7u
#define COLLECTED_MOST 8u

// The register in which translated code has the end of the raw log, unless it collects outcomes. The guest's is
// in the context.
#define LOG_REGISTER R15

struct direct_engine;
struct direct_block;
struct direct_point;
struct direct_unit;

// A conditional branch or a call on a block's path.
struct direct_event {
  uint64_t value;  // of a call: the return address
  uint16_t cost;   // cycles of the block up to it
  bool call, taken;
};

// An instruction of a block.
struct direct_place {
  uint64_t pc;
  uint32_t length;
};

// What is known of an exit's record.
struct direct_record {
  uint8_t branches;
  uint8_t kind;         // of the last instruction, if the block is left by it
  bool taken;
  uint64_t end;         // of the last instruction
  uint32_t event, place, access;  // the first of the block's
  uint8_t accesses, accesses_before;    // before: the last instruction
  uint16_t cost;
  uint8_t events;       // before the last instruction
  uint8_t places;
} __attribute__((aligned(64)));

// Code that was about to run.
struct direct_code_entry {
  uint64_t pc, at;
  uint32_t size, offset;
};

// An atomic instruction or a fence.
struct direct_atomic {
  uint64_t pc, addr;
  uint64_t instructions, cycles;  // of the run before it
  uint32_t size;                  // of the access in bytes, 0: a fence
};

#define ATOMICS 4096u

struct direct_atomic_log {
  bool muted;
  bool gated;     // runs also stop before and after each atomic instruction
  bool admitted;  // the next one needs no stop before it
  bool at;        // the run has stopped before one
  uint64_t where; // address of its operand
  bool compares;  // it is a CMPXCHG
  bool sets;      // it is an OR
  size_t n, taken;
  struct direct_atomic *entries;
};

// An access to a physical page.
struct direct_physical {
  uint64_t at;
  uint32_t size, store;
};

#define PHYSICALS 512u

struct direct_physical_log {
  uint64_t count;  // may exceed PHYSICALS: later ones are not kept
  struct direct_physical entries[PHYSICALS];
};

struct direct_log {
  uint32_t what;
  bool running;            // a thread runs

  uint64_t *raw;
  uint8_t *stream;         // room for the collected outcomes of a run, as a stream of bits
  bool extracts;           // the host's processor extracts bits under a mask (BMI2)
  const uint64_t *from;    // what is before it has been drained
  unsigned skip;           // accesses of the record at from that have been logged already
  const struct direct_point *point;  // where the block is while a page is supplied, or NULL
  const uint64_t *record;            // its record
  uint32_t ratio;          // words that a block's record takes for a cycle, at most
  int64_t granted;         // cycles, to the translated code that runs

  uint64_t *words;         // of branches
  size_t nwords, room;
  uint64_t outcomes;       // that are not in a word yet, after a leading 1
  uint64_t outcomes_full;
  uint64_t branches;       // counted in all runs

  struct direct_code_entry *code;
  size_t ncode, code_room;
  uint8_t *bytes;
  size_t nbytes, bytes_room;

  uint64_t *instructions;
  size_t ninstructions, instructions_room;

  struct direct_atomic_log atomics;

  struct direct_physical_log *physical;

  struct heddle_mem_core memory;
  const void *bank;        // whose pages are in the log of memory

  uint64_t physical_start; // of the unit
  const struct direct_insn *unit;  // that is executed, or NULL
};

bool direct_log_open(struct direct_engine *e);
void direct_log_close(struct direct_engine *e);
int direct_log_start(struct direct_engine *e, uint32_t what);
int direct_log_atomics(struct direct_engine *e);

void direct_log_begin(struct direct_engine *e, int64_t granted);
void direct_log_drain(struct direct_engine *e, const uint64_t *end);
void direct_log_part(struct direct_engine *e, const struct direct_point *p, const uint64_t *record);
int64_t direct_log_room(const struct direct_engine *e);
void direct_log_unit(struct direct_engine *e, const struct direct_insn *in);
void direct_log_unit_code(struct direct_engine *e, struct direct_unit *u);
void direct_log_block_code(struct direct_engine *e, const struct direct_block *b);
void direct_log_end(struct direct_engine *e);
void direct_log_flush(struct direct_engine *e);
void direct_log_forget_calls(struct direct_engine *e);

// memorylog.c
bool direct_memory_log_open(struct direct_engine *e);
int direct_log_memory(struct direct_engine *e, const struct heddle_mem_range *data, size_t ndata,
                      const struct heddle_mem_range *code, size_t ncode, bool partial);
void direct_log_physical(struct direct_engine *e, struct direct_physical_log *log);
void direct_memory_log_close(struct direct_engine *e);
struct heddle_mem_consumer *direct_log_consumer(const struct direct_log *log);
void direct_log_accesses(struct direct_engine *e, uint32_t first, unsigned from, unsigned upto, const uint64_t *record);
void direct_log_access(struct direct_engine *e, uint64_t va, const void *bytes, size_t n, bool store);
void direct_memory_log_run(struct direct_engine *e);
void direct_memory_log_sync(struct direct_engine *e);
void direct_memory_log_fill(struct direct_engine *e, uint64_t va, uint64_t page);
void direct_memory_log_begin(struct direct_engine *e, const struct direct_insn *in);
void direct_memory_log_undo(struct direct_engine *e, const struct direct_insn *in);

bool direct_atomic_stops(struct direct_engine *e, const struct direct_insn *in);
bool direct_atomic_begin(struct direct_engine *e, const struct direct_insn *in);
void direct_atomic_end(struct direct_engine *e);

static inline bool log_is_raw(const struct direct_log *log) { return log->what & LOG_RAW; }

// Reports whether blocks collect outcomes instead of writing a record each.
static inline bool log_collects(const struct direct_log *log) {
  return (log->what & (LOG_RAW | LOG_TIMED | LOG_RETURNS)) == (LOG_BRANCHES | LOG_RETURNS);
}

// The bits of the budget below its cycles: as many as one immediate of 32 bits has room for beside the cost of a
// block, unless a log needs more of them.
static inline unsigned direct_budget_shift(const struct direct_log *log) { return log_is_raw(log) ? 32 : 20; }

// Reports whether a register has the end of the raw log.
static inline bool log_has_register(const struct direct_log *log) { return log_is_raw(log) && !log_collects(log); }

static inline bool log_is_full(const struct direct_log *log) {
  return log->nwords > LOG_FULL || log->atomics.n == ATOMICS || log->memory.full;
}

// Reports whether a gated run stops before the next instruction.
static inline bool direct_atomic_waits(const struct direct_log *log) { return log->atomics.gated && log->atomics.n; }

#endif
