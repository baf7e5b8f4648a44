// Superblocks: straight runs of instructions, through direct jumps and calls and branches that
// are not taken, as one piece of translated code.
#ifndef HEDDLE_DIRECT_BLOCK_H
#define HEDDLE_DIRECT_BLOCK_H

#include "engine.h"

#define BLOCK_INSNS 48u   // instructions of a block, at most
#define BLOCK_COST 240u   // cycles of a block, at most
#define HEAT_START 512u   // executions of a short block after which a long one takes its place
#define BLOCK_PAGES 4u    // pages that a block's instructions lie in, at most

// ---- flags --------------------------------------------------------------------------------

// How the six arithmetic flags follow from kept values. Between blocks they are either in
// SAVED_FLAGS or follow from FIRST and SECOND by FORMULA: the number of the formula with the width of the
// operation in the bits from 8 on. With FORMULA_CONSTANT, SECOND is the signed number in the upper half.
enum direct_formula {
  FORMULA_SAVED,
  FORMULA_ADD,      // first: the sum, second: the addend
  FORMULA_SUBTRACT, // first: the difference, second: the subtrahend
  FORMULA_COMPARE,  // first - second
  FORMULA_LOGIC,    // first: the result
  FORMULA_TEST,     // first & second
  FORMULA_NEGATE,   // first: the result
  FORMULA_LEFT,     // first << second
  FORMULA_RIGHT,    // first >> second
  FORMULA_ARITHMETIC_RIGHT,
  FORMULA_EQUAL,    // as after the comparison of a value with itself
  // Within a block only:
  FORMULA_ENTRY,    // as they were where the block was entered
  FORMULA_HOST,     // in the host's flags alone
};

#define FORMULA_CONSTANT 0x8000u

// Where the value of a formula is: a register, or one of these.
#define OPERAND_KEPT 16u      // in FIRST or SECOND
#define OPERAND_CONSTANT 17u

struct direct_flags {
  uint8_t formula, width;
  uint8_t first, second;
  uint16_t undefined;    // flags that the host has set, and that are 0
  int32_t constant;
  // A shift of SHIFTED after that, whose flags these are unless the count is 0; 0: none. The count is in a register, or
  // OPERAND_KEPT in COUNT.
  uint8_t shift, shift_width, count;
};

// The bits of a register that are the count of a shift.
static inline uint32_t direct_count_mask(unsigned width) { return width == 8 ? 63 : 31; }

uint64_t direct_formula_flags(unsigned formula, unsigned width, uint64_t first, uint64_t second);
void direct_settle_flags(struct direct_engine *e);

// ---- points ---------------------------------------------------------------------------------

// A place in a block where it may be left before the instruction: a check of an access, or
// an instruction that can raise an exception.
struct direct_point {
  uint64_t pc;
  uint32_t block;
  uint16_t at;           // offset in the block's code: where the check begins, or the instruction
  uint16_t cost;         // of the instructions before it
  uint8_t count;         // ... their number
  uint8_t stores;        // ... of those that store
  bool write, stack;     // stack: by way of the entry for the stack
  uint16_t size;         // bytes that the check covers, 0: it is not of an access
  uint16_t own, own_size;  // those of the instruction among them
  uint16_t after;          // offset in the block's code of the instruction after the check, 0: the address is known
  uint32_t apart;          // the block from here on that checks each access on its own, if it is known
  bool boundary;         // the instruction is the first or follows a branch
  uint8_t events, branches, accesses;  // of the block before it
  struct direct_flags flags;
};

#define FLAG_CODE_BYTES 11u  // of a conditional jump and another one

// ---- exits ------------------------------------------------------------------------------------

struct direct_exit {
  uint64_t target;       // of a direct branch
  uint32_t block;
  uint32_t linked;       // the block that it jumps to, 0: C
  uint32_t next_linked;  // exit to the same block
  uint32_t jump[2];      // offsets in the block's code of jumps to patch: with and without the block's own registers
  uint32_t start[2];     // their targets when it is not linked
  // Where it stores the flags, 0: nowhere. While it is linked to a block that ignores flags, a jump to that block is there, and
  // one to flags_leave, which stores them before C is entered; flag_code has the bytes that the two replace.
  uint32_t flags, flags_leave;
  uint8_t flag_code[FLAG_CODE_BYTES];
  uint16_t count, cost;
  uint8_t class;         // of an indirect branch, 0: direct
  bool boundary;         // it follows a branch
  uint16_t released;     // bytes that RET releases besides the address
  uint16_t last_cost;    // of the branch itself
  uint64_t pc;           // of an indirect branch
};

// ---- blocks -----------------------------------------------------------------------------------

struct direct_block {
  uint64_t pc;
  uint64_t code;                 // the number (direct_code_number) of the space for which pages and links hold, unless shared
  uint64_t space;                // ... and that space's number
  uint64_t virt[BLOCK_PAGES];
  uint32_t phys[BLOCK_PAGES];
  uint32_t next_in_page[BLOCK_PAGES];
  uint32_t next_at[BLOCK_PAGES]; // the next of the same slot of direct_blocks.at, as a number of at_number
  // The offsets in the page of the first and the last instruction that begins there; high < low: none does.
  uint16_t low[BLOCK_PAGES], high[BLOCK_PAGES];
  uint32_t next;                 // of the same hash
  uint32_t region;
  uint32_t linked;               // the first exit that jumps here
  uint32_t first_exit, first_point;
  uint32_t first_event, first_place, first_access;
  uint16_t exits, points;
  uint8_t events, accesses;
  uint8_t pages, n;              // n == 0: the first instruction is for C
  uint16_t cost;
  // Registers that 10, 11 and, with a raw log, 15 have changed places with, or NO_REGISTER.
  uint8_t swapped[3];
  bool needs_flags, live;
  bool ignores_flags;            // it sets all flags before it can be left
  bool shared;                   // it and its links hold for each space that has its pages at its addresses
  bool is_short;                 // it ends at its first branch, and counts how often it is executed
  bool is_target;                // it has been in a table of targets
  bool apart;                    // each access has a check of its own
  bool is_last;                  // of the kind BLOCK_LAST
  bool pauses;                   // it begins with PAUSE, and is run where no PAUSE ends the run
  uint8_t crossings;             // in a row, see note_crossing
  uint64_t last_crossing;
  uint32_t size;
  uint8_t *start;                // of the code, where it is written
  uint32_t entry, inner, checked;  // offsets: with the guest's registers in their places, with those of
                                   // the block, and for indirect branches
};

// Code is in regions, which are emptied in turn.
#define REGIONS 24u
#define REGION_BLOCKS 16384u
#define BLOCKS (REGIONS * REGION_BLOCKS + 1)
#define REGION_EXITS 40960u
#define REGION_POINTS 131072u
#define REGION_EVENTS 131072u
#define REGION_PLACES 524288u
#define REGION_ACCESSES 524288u
#define BLOCK_ACCESSES (3u * BLOCK_INSNS)
#define REGION_BYTES ((CODE_BYTES - UNIT_CODE_BYTES) / REGIONS)
#define BLOCK_HASH 131072u
#define BLOCK_AT 16384u
#define BLOCK_BYTES 32768u       // of a block's code, at most: offsets have 16 bits
#define BLOCK_EXITS 128u

// How much of a region's memory the host has supplied, in bytes from its beginning. Emptying a region
// keeps it.
struct direct_supplied {
  size_t code, blocks, exits, points;
};

struct direct_region {
  uint32_t nblocks, nexits, npoints, nevents, nplaces, naccesses;
  size_t bytes;
};

struct direct_blocks {
  struct direct_region regions[REGIONS];
  struct direct_supplied supplied[REGIONS];
  unsigned region;               // that new blocks go to
  struct direct_block *all;      // by region, from 1 on
  struct direct_exit *exits;
  struct direct_point *points;
  uint32_t *hash;                // by address and page
  uint32_t *in_page;             // by page, the first of its blocks
  uint32_t *at;                  // by virtual page (at_slot), the first of the blocks there, as a number of at_number
  // With a raw log, otherwise NULL: by the number of the exit, and by region.
  struct direct_record *records;
  struct direct_event *events;
  struct direct_place *places;
  struct heddle_mem_access *accesses;
  uint16_t cost_most;            // of a block that has been made
  uint16_t last_cost_most;       // ... of the kind BLOCK_LAST
  uint64_t *apart;               // by cache_slot: where all blocks check each access on its own
};

// The number of crossings in a row, at most this many instructions apart, after which that is done.
#define CROSSINGS_MOST 32u
#define CROSSING_INSNS 512u

// What EXIT holds besides numbers of exits.
#define EXIT_UNKNOWN 0x80000000u   // an indirect branch to RIP
#define EXIT_HOT 0x80000001u       // a short block has been executed often

static inline const uint8_t *direct_block_code(const struct direct_engine *e, const struct direct_block *b, uint32_t at) {
  return direct_executable(&e->code, b->start + at);
}

static inline uint32_t direct_block_number(const struct direct_engine *e, const struct direct_block *b) {
  return (uint32_t)(b - e->blocks->all);
}

// The bank's byte for the block, see BANK_HELD.
static inline uint8_t *direct_held(const struct direct_engine *e, const struct direct_bank *bank, const struct direct_block *b) {
  return (uint8_t *)bank->context + BANK_HELD + direct_block_number(e, b);
}
_Static_assert(BLOCKS <= BANK_HELD_BYTES, "context.h");

// How often the block is still executed as a short one.
static inline uint16_t *direct_heat(const struct direct_engine *e, const struct direct_block *b) {
  return (uint16_t *)e->code.data + direct_block_number(e, b);
}

// Reports whether the block is known to be of the loaded space's code.
static inline bool direct_block_holds(const struct direct_engine *e, const struct direct_block *b) {
  return b->shared ? *direct_held(e, e->bank, b) : b->code == direct_code_number(e);
}

// The register that PUSH or POP names.
static inline unsigned direct_stack_register(const struct direct_insn *in) {
  return in->has_modrm ? insn_rm(in) : (in->opcode & 7u) | (unsigned)in->b << 3;
}

// Reports whether a block logs a store of the instruction for buffers.
static inline bool direct_is_logged_store(const struct direct_insn *in) {
  return (in->what & INSN_STORES) || in->class == CLASS_PUSH || in->class == CLASS_CALL || in->class == CLASS_CALL_TO;
}

// The instructions of a block.
struct outline {
  unsigned n, cost;
  uint64_t next;            // after the last, if it does not go elsewhere
  uint32_t registers;
  bool unrolled, is_short;
  struct direct_block *block;
  struct direct_insn insns[BLOCK_INSNS];
  bool taken[BLOCK_INSNS];  // the block continues where a conditional branch goes if it is taken
};

enum block_kind {
  BLOCK_PLAIN,
  BLOCK_APART,  // with a check for each access
  BLOCK_LAST,   // up to the first branch, where a run that is not exact can end
};

struct direct_block *direct_block_find(struct direct_engine *e, uint64_t pc, enum block_kind kind);
struct direct_block *direct_block_lengthen(struct direct_engine *e, uint64_t pc);
void direct_block_check_apart(struct direct_engine *e, struct direct_block *b);
void direct_block_link(struct direct_engine *e, struct direct_exit *x, struct direct_block *to);
void direct_block_target(struct direct_engine *e, struct direct_block *b);
void direct_blocks_forget(struct direct_bank *b);

// translate.c: code for the block's instructions; counts what it takes in the region.
void direct_translate(struct direct_engine *e, struct direct_block *b, const struct outline *o);
void direct_translate_shared(struct direct_engine *e);

#endif
