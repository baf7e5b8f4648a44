// Facts about translated blocks: the number of instructions, their cost, the properties that a run
// may have to examine, and how the block ends.
#ifndef HEDDLE_BLOCK_H
#define HEDDLE_BLOCK_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heddle_cpu;
struct heddle_space;

// Properties of a block that a run may have to examine.
#define HEDDLE_BLOCK_BREAK 1u    // a breakpoint is in it
#define HEDDLE_BLOCK_PAUSE 2u    // ends with PAUSE
#define HEDDLE_BLOCK_PAUSE_INSIDE 32u  // has a PAUSE before its last instruction
#define HEDDLE_BLOCK_SYNC 4u     // has an atomic instruction or fence
#define HEDDLE_BLOCK_ORDER 16u   // has a non-temporal store, or an instruction that serializes without being atomic
#define HEDDLE_BLOCK_SPECIAL 8u  // has an instruction that the engine does not execute as it should

#define HEDDLE_BLOCK_PAUSES (HEDDLE_BLOCK_PAUSE | HEDDLE_BLOCK_PAUSE_INSIDE)

// How a block ends, for a branch trace.
enum heddle_kind {
  HEDDLE_KIND_NONE,      // not a branch, or a direct jump, or leaves the program (SYSCALL, INT)
  HEDDLE_KIND_COND,      // a conditional branch
  HEDDLE_KIND_JUMP,      // an indirect jump
  HEDDLE_KIND_CALL,      // a direct call
  HEDDLE_KIND_CALL_IND,  // an indirect call
  HEDDLE_KIND_RET,       // a near return
  HEDDLE_KIND_REP,       // a repeated string instruction
};

// Facts about the bytes of a block.
struct heddle_block_facts {
  uint64_t key;  // physical address << 13 | size; 0: the slot is empty
  uint32_t cost;
  uint16_t count;
  uint8_t flags;
  uint8_t kind;
};

// A block in the table that the block hooks read. Blocks with a flag that the run watches are not
// in it. The hooks test only the sign of the remaining cycles: an instruction costs at least a
// cycle, so that cycles run out before instructions.
struct heddle_block {
  uint64_t key;    // address | tag of the address space << 48
  uint64_t take;   // cycles << 32 | instructions
  uint64_t end;    // address after the block | kind << 56 | HEDDLE_BRANCH
  uint64_t start;  // address of the block | flags << 48
};

#define HEDDLE_KIND_SHIFT 56
#define HEDDLE_BRANCH ((uint64_t)1 << 63)  // the kind is neither NONE nor COND

#define HEDDLE_BLOCKS (1u << 16)
#define HEDDLE_BLOCK_MOST 512u  // instructions; the engine cuts longer blocks
#define HEDDLE_ADDRESS (((uint64_t)1 << 48) - 1)

// The tag of no address space: no block in the table has it.
#define HEDDLE_NO_TAG ((uint64_t)0xffff << 48)
#define HEDDLE_SPACES 16u

// A place in a block, after a number of its instructions.
struct heddle_cut {
  uint64_t pc, count;    // of the block, and the number of instructions
  uint64_t code;         // of the space
  uint64_t translation;  // value of heddle_blocks.translation when this was computed
  uint64_t at;           // the address
  uint32_t rest_cost;    // of the block from this place on, in cycles
};
#define HEDDLE_CUTS 1024u

// The tables, and the address spaces that their tags stand for.
struct heddle_blocks {
  struct heddle_block *table;  // by virtual address
  struct heddle_block_facts *known;  // by physical address, for blocks within one page
  uint64_t codes[HEDDLE_SPACES], tags[HEDDLE_SPACES];
  uint64_t last_tag;  // not shifted
  unsigned next;      // index in codes to be replaced
  struct heddle_cut *cuts;
  uint64_t translation;  // number of translations so far: each may be of other code than the one before
  struct heddle_block slow;  // the last block described that is not in the table
  uint32_t longest;  // size of the largest block that was ever in the table, in bytes
};

// Stands for no block.
extern const struct heddle_block heddle_no_block;

int heddle_blocks_init(struct heddle_blocks *b);
void heddle_blocks_close(struct heddle_blocks *b);
void heddle_blocks_forget(struct heddle_blocks *b);
void heddle_blocks_evict(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n);
uint64_t heddle_blocks_tag(struct heddle_blocks *b, uint64_t code);

static inline struct heddle_block *heddle_block_slot(struct heddle_block *table, uint64_t pc) {
  return (struct heddle_block *)((char *)table + ((pc * sizeof *table) & (HEDDLE_BLOCKS - 1) * sizeof *table));
}

static inline uint64_t heddle_block_pc(const struct heddle_block *b) { return b->start & HEDDLE_ADDRESS; }
static inline uint64_t heddle_block_end(const struct heddle_block *b) { return b->end & HEDDLE_ADDRESS; }
static inline uint32_t heddle_block_count(const struct heddle_block *b) { return (uint32_t)b->take; }
static inline uint32_t heddle_block_cost(const struct heddle_block *b) { return (uint32_t)(b->take >> 32); }
static inline uint32_t heddle_block_flags(const struct heddle_block *b) { return (uint32_t)(b->start >> 48); }
static inline enum heddle_kind heddle_block_kind(const struct heddle_block *b) {
  return (enum heddle_kind)((b->end & ~HEDDLE_BRANCH) >> HEDDLE_KIND_SHIFT);
}

// The kinds of bytes at an address to be executed.
enum heddle_decoded {
  HEDDLE_DECODED,          // an instruction
  HEDDLE_DECODED_INVALID,  // not an instruction of the processor: #UD
  HEDDLE_DECODED_CUT,      // the start of an instruction whose rest is not mapped
};

bool heddle_decode(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in);
enum heddle_decoded heddle_decode_next(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in);
uint32_t heddle_highest_cost(const struct heddle_cpu *cpu);
uint32_t heddle_cost(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint8_t *flags);
bool heddle_touches_memory(const ZydisDecodedInstruction *in);
enum heddle_kind heddle_kind_of(const ZydisDecodedInstruction *in);
struct heddle_block_facts heddle_measure_block(struct heddle_cpu *cpu, uint64_t pc, uint64_t end);
struct heddle_block *heddle_describe_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size);
void heddle_block_translated(struct heddle_cpu *cpu, uint64_t pc, uint32_t size);
const struct heddle_cut *heddle_cut_block(struct heddle_cpu *cpu, const struct heddle_block *b, uint64_t count);
bool heddle_any_within(const uint64_t *sorted, size_t n, uint64_t from, uint64_t to);
bool heddle_has_breakpoint(const struct heddle_cpu *cpu, uint64_t from, uint64_t to);
size_t heddle_space_code(struct heddle_space *s, uint64_t pc, uint8_t *out, size_t max);

#endif
