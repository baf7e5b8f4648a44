#include "block.h"

#include <stdlib.h>
#include <string.h>

#include "accesses.h"
#include "cpu.h"
#include "special.h"
#include "sse.h"

const struct heddle_block heddle_no_block;

int heddle_blocks_init(struct heddle_blocks *b) {
  // With large pages of the host: the table is read at every block.
  b->table = aligned_alloc(1u << 21, HEDDLE_BLOCKS * sizeof *b->table);
  b->known = malloc(HEDDLE_BLOCKS * sizeof *b->known);
  b->cuts = calloc(HEDDLE_CUTS, sizeof *b->cuts);
  b->translation = 1;
  if (!b->table || !b->known || !b->cuts) return -1;
  heddle_advise_huge(b->table, HEDDLE_BLOCKS * sizeof *b->table);
  heddle_blocks_forget(b);
  return 0;
}

void heddle_blocks_close(struct heddle_blocks *b) {
  free(b->table);
  free(b->known);
  free(b->cuts);
}

void heddle_blocks_forget(struct heddle_blocks *b) {
  memset(b->table, 0, HEDDLE_BLOCKS * sizeof *b->table);
  memset(b->known, 0, HEDDLE_BLOCKS * sizeof *b->known);
  memset(b->codes, 0, sizeof b->codes);
  b->last_tag = 0;
}

// Returns the tag for the space whose code has the given number. The least recently added space
// gives its tag up; if it returns, its blocks are decoded again.
uint64_t heddle_blocks_tag(struct heddle_blocks *b, uint64_t code) {
  for (unsigned i = 0; i < HEDDLE_SPACES; i++)
    if (b->codes[i] == code) return b->tags[i];
  if (++b->last_tag == HEDDLE_NO_TAG >> 48) {
    heddle_blocks_forget(b);
    b->last_tag = 1;
  }
  b->codes[b->next] = code;
  uint64_t tag = b->tags[b->next] = b->last_tag << 48;
  b->next = (b->next + 1) % HEDDLE_SPACES;
  return tag;
}

// ---- decoding ---------------------------------------------------------------

// Copies the code at pc up to the first byte that is not mapped executable.
size_t heddle_space_code(struct heddle_space *s, uint64_t pc, uint8_t *out, size_t max) {
  size_t done = 0;
  while (done < max) {
    uint64_t pte, at = pc + done;
    if (heddle_space_walk(s, at, HEDDLE_FETCH, true, &pte)) break;
    size_t n = HEDDLE_PAGE_SIZE - (at & (HEDDLE_PAGE_SIZE - 1));
    if (n > max - done) n = max - done;
    memcpy(out + done, s->ram->base + (pte & ~(HEDDLE_PAGE_SIZE - 1)) + (at & (HEDDLE_PAGE_SIZE - 1)), n);
    done += n;
  }
  return done;
}

static bool decode_bytes(struct heddle_cpu *cpu, const uint8_t *code, size_t len, ZydisDecodedInstruction *in) {
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&cpu->decoder, NULL, code, len, in));
}

// Decodes the instruction at pc. Returns false if the bytes are not an instruction.
bool heddle_decode(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in) {
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  return decode_bytes(cpu, code, heddle_space_code(cpu->space, pc, code, sizeof code), in);
}

// Reports whether the engine lacks the instruction but would execute it as another one: VEX code as
// SSE code with two operands.
static bool is_misread(const ZydisDecodedInstruction *in) { return in->encoding > ZYDIS_INSTRUCTION_ENCODING_3DNOW; }
_Static_assert(ZYDIS_INSTRUCTION_ENCODING_XOP > ZYDIS_INSTRUCTION_ENCODING_3DNOW &&
                   ZYDIS_INSTRUCTION_ENCODING_VEX > ZYDIS_INSTRUCTION_ENCODING_3DNOW &&
                   ZYDIS_INSTRUCTION_ENCODING_EVEX > ZYDIS_INSTRUCTION_ENCODING_3DNOW &&
                   ZYDIS_INSTRUCTION_ENCODING_MVEX > ZYDIS_INSTRUCTION_ENCODING_3DNOW,
               "the encodings of vector extensions come last");

// Decodes the instruction at pc for execution. An instruction that is not completely mapped is left
// to the engine, which faults there.
enum heddle_decoded heddle_decode_next(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in) {
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  if (decode_bytes(cpu, code, len, in)) return is_misread(in) ? HEDDLE_DECODED_INVALID : HEDDLE_DECODED;
  *in = (ZydisDecodedInstruction){.mnemonic = ZYDIS_MNEMONIC_INVALID};
  return len < sizeof code ? HEDDLE_DECODED_CUT : HEDDLE_DECODED_INVALID;
}

// Reports whether the instruction accesses memory, its stack slot included.
bool heddle_touches_memory(const ZydisDecodedInstruction *in) {
  if ((in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod != 3)
    return in->mnemonic != ZYDIS_MNEMONIC_LEA && in->mnemonic != ZYDIS_MNEMONIC_NOP;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_STRINGOP:
      return true;
    default:
      return false;
  }
}

// Returns a bound on the cycles of an instruction.
uint32_t heddle_highest_cost(const struct heddle_cpu *cpu) {
  const struct heddle_costs *c = &cpu->costs;
  return c->instruction + c->memory + c->divide + c->atomic + c->fence + c->sqrt + c->transcendental + c->check;
}

// Returns the cycles of the instruction, and adds the flags (HEDDLE_BLOCK_...) that it gives to its
// block.
uint32_t heddle_cost(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint8_t *flags) {
  const struct heddle_costs *c = &cpu->costs;
  uint32_t cost = c->instruction;
  if (heddle_touches_memory(in)) cost += c->memory;
  if (in->meta.category == ZYDIS_CATEGORY_CALL || in->meta.category == ZYDIS_CATEGORY_RET) cost += c->check;
  if (heddle_is_pause(in)) *flags |= HEDDLE_BLOCK_PAUSE;
  bool exchange = heddle_is_narrow_exchange(in) && in->raw.modrm.mod != 3;  // see heddle_measure_block
  bool flagged = in->mnemonic == ZYDIS_MNEMONIC_POPFQ || in->mnemonic == ZYDIS_MNEMONIC_POPF;
  if (heddle_sse_special(in) || is_misread(in) || flagged || (heddle_special_of(in) && !exchange)) *flags |= HEDDLE_BLOCK_SPECIAL;
  if (heddle_order_of(in) & (HEDDLE_ORDER_WEAK | HEDDLE_ORDER_FULL)) *flags |= HEDDLE_BLOCK_ORDER;
  if (heddle_is_atomic(in)) {
    *flags |= HEDDLE_BLOCK_SYNC;
    return cost + c->atomic;
  }
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FIDIVR:
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVPD:
    case ZYDIS_MNEMONIC_DIVPS:
      return cost + c->divide;
    case ZYDIS_MNEMONIC_FSQRT:
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTPD:
    case ZYDIS_MNEMONIC_SQRTPS:
      return cost + c->sqrt;
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_LFENCE:
      *flags |= HEDDLE_BLOCK_SYNC;
      return cost + c->fence;
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FCOS:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FYL2XP1:
      return cost + c->transcendental;
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_IN:
    case ZYDIS_MNEMONIC_INSB:
    case ZYDIS_MNEMONIC_INSW:
    case ZYDIS_MNEMONIC_INSD:
    case ZYDIS_MNEMONIC_OUT:
    case ZYDIS_MNEMONIC_OUTSB:
    case ZYDIS_MNEMONIC_OUTSW:
    case ZYDIS_MNEMONIC_OUTSD:
      *flags |= HEDDLE_BLOCK_SPECIAL;
      return cost;
    default:
      return cost;
  }
}

// Returns how a block ends whose last instruction this is.
enum heddle_kind heddle_kind_of(const ZydisDecodedInstruction *in) {
  if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return HEDDLE_KIND_NONE;
  bool indirect = in->attributes & ZYDIS_ATTRIB_HAS_MODRM;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return HEDDLE_KIND_COND;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return indirect ? HEDDLE_KIND_JUMP : HEDDLE_KIND_NONE;
    case ZYDIS_CATEGORY_CALL:
      return indirect ? HEDDLE_KIND_CALL_IND : HEDDLE_KIND_CALL;
    case ZYDIS_CATEGORY_RET:
      return in->mnemonic == ZYDIS_MNEMONIC_RET ? HEDDLE_KIND_RET : HEDDLE_KIND_NONE;
    default:
      return heddle_is_repeated(in) ? HEDDLE_KIND_REP : HEDDLE_KIND_NONE;
  }
}

// Reports whether one of n sorted addresses is in [from, to).
bool heddle_any_within(const uint64_t *sorted, size_t n, uint64_t from, uint64_t to) {
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (sorted[mid] < from) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && sorted[lo] < to;
}

bool heddle_has_breakpoint(const struct heddle_cpu *cpu, uint64_t from, uint64_t to) {
  return heddle_any_within(cpu->stops.breakpoints, cpu->stops.nbreakpoints, from, to);
}

#define MAX_BLOCK (HEDDLE_BLOCK_MOST * ZYDIS_MAX_INSTRUCTION_LENGTH)

// Counts the instructions of [pc, end) and adds up their costs.
struct heddle_block_facts heddle_measure_block(struct heddle_cpu *cpu, uint64_t pc, uint64_t end) {
  uint8_t code[MAX_BLOCK + ZYDIS_MAX_INSTRUCTION_LENGTH];
  size_t size = end - pc < MAX_BLOCK ? end - pc : MAX_BLOCK;
  size_t len = heddle_space_code(cpu->space, pc, code, size);
  struct heddle_block_facts k = {0};
  for (size_t at = 0; at < size;) {
    ZydisDecodedInstruction in;
    k.count++;
    if (k.flags & HEDDLE_BLOCK_PAUSE) k.flags = (k.flags & ~HEDDLE_BLOCK_PAUSE) | HEDDLE_BLOCK_PAUSE_INSIDE;
    if (!decode_bytes(cpu, code + at, len - at, &in)) {
      // Processors raise #UD here, or fault if the rest is not mapped. The engine may behave
      // otherwise.
      k.cost += cpu->costs.instruction;
      k.flags |= HEDDLE_BLOCK_SPECIAL;
      k.kind = HEDDLE_KIND_NONE;
      break;
    }
    k.cost += heddle_cost(cpu, &in, &k.flags);
    if (heddle_is_narrow_exchange(&in) && !heddle_narrows_accumulator(cpu, code, at)) k.flags |= HEDDLE_BLOCK_SPECIAL;
    k.kind = heddle_kind_of(&in);
    at += in.length;
  }
  return k;
}

// Finds the place in a block after count of its instructions.
const struct heddle_cut *heddle_cut_block(struct heddle_cpu *cpu, const struct heddle_block *b, uint64_t count) {
  uint64_t pc = heddle_block_pc(b), code = cpu->space->code, translation = cpu->blocks.translation;
  struct heddle_cut *c = &cpu->blocks.cuts[(pc + count * 31) & (HEDDLE_CUTS - 1)];
  if (c->pc == pc && c->count == count && c->code == code && c->translation == translation) return c;
  uint64_t at = pc;
  for (uint64_t i = 0; i < count; i++) {
    ZydisDecodedInstruction in;
    if (!heddle_decode(cpu, at, &in)) break;
    at += in.length;
  }
  uint32_t rest = heddle_measure_block(cpu, at, heddle_block_end(b)).cost;
  *c = (struct heddle_cut){pc, count, code, translation, at, rest};
  return c;
}

// ---- tables -----------------------------------------------------------------

// Returns the slot of a block by its physical address, or NULL if it lies in two pages.
static struct heddle_block_facts *facts_slot(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, uint64_t *key) {
  uint64_t pte, offset = pc & (HEDDLE_PAGE_SIZE - 1);
  if (offset + size > HEDDLE_PAGE_SIZE) return NULL;
  if (heddle_space_walk(cpu->space, pc, HEDDLE_FETCH, true, &pte)) return NULL;
  uint64_t at = (pte & ~(HEDDLE_PAGE_SIZE - 1)) + offset;
  *key = at << 13 | size;
  return &cpu->blocks.known[(at ^ at >> 16) & (HEDDLE_BLOCKS - 1)];
}

static struct heddle_block_facts look_up_facts(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  uint64_t key;
  struct heddle_block_facts *slot = facts_slot(cpu, pc, size, &key);
  if (slot && slot->key == key) return *slot;
  struct heddle_block_facts k = heddle_measure_block(cpu, pc, pc + size);
  if (slot) {
    k.key = key;
    *slot = k;
  }
  return k;
}

// Describes the block at pc in the current space, and puts it into the table unless it has a flag
// that the run watches.
struct heddle_block *heddle_describe_block(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  struct heddle_block_facts k = look_up_facts(cpu, pc, size);
  uint32_t flags = k.flags;
  if (cpu->stops.nbreakpoints && heddle_has_breakpoint(cpu, pc, pc + size)) flags |= HEDDLE_BLOCK_BREAK;
  flags &= cpu->run.watched & ~heddle_pause_ignored(cpu, pc);
  struct heddle_block *b = flags ? &cpu->blocks.slow : heddle_block_slot(cpu->blocks.table, pc);
  if (size > cpu->blocks.longest) cpu->blocks.longest = size;
  uint64_t end = (pc + size) | (uint64_t)k.kind << HEDDLE_KIND_SHIFT;
  if (k.kind > HEDDLE_KIND_COND) end |= HEDDLE_BRANCH;
  *b = (struct heddle_block){pc | cpu->run.tag, (uint64_t)k.cost << 32 | k.count, end, pc | (uint64_t)flags << 48};
  if (!flags && (k.flags & HEDDLE_BLOCK_PAUSES)) heddle_pause_note_slot(cpu, b);
  return b;
}

// Removes the blocks that contain an address from the table. They start at most the longest block's
// size before it.
static void evict_blocks_at(struct heddle_blocks *blocks, uint64_t address) {
  for (uint64_t pc = address; pc + blocks->longest > address && pc <= address; pc--) {
    struct heddle_block *b = heddle_block_slot(blocks->table, pc);
    if (heddle_block_pc(b) == pc && heddle_block_end(b) > address) b->key = 0;
  }
}

// Removes the blocks from the table that contain one of n sorted breakpoints which the processor
// does not have yet. Blocks with older breakpoints are not in the table.
void heddle_blocks_evict(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!heddle_has_breakpoint(cpu, sorted[i], sorted[i] + 1)) evict_blocks_at(&cpu->blocks, sorted[i]);
}

// A block has been translated: the facts about an earlier block at its address are outdated.
void heddle_block_translated(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  heddle_block_slot(cpu->blocks.table, pc)->key = 0;
  cpu->blocks.translation++;
  uint64_t key;
  struct heddle_block_facts *known = cpu->space ? facts_slot(cpu, pc, size, &key) : NULL;
  if (known) known->key = 0;
}
