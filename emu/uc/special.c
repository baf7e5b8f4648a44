// Instructions that the engine executes otherwise than a processor, and that are executed on their
// own for that reason. Where the engine's loads and stores are right, it executes the instruction, and the
// registers are corrected afterwards. docs/engine-differences.md has the differences that remain.
#include "special.h"

#include <string.h>

#include "accesses.h"
#include "approximate.h"
#include "private.h"
#include "run.h"
#include "sse.h"
#include "x87.h"

#define FLAG_ZF 0x40u
#define FLAG_AC 0x40000u
#define FLAGS_AH 0xd5u       // that LAHF and SAHF move
#define FLAGS_POPPED 0x254dd5u  // that IRET changes in a program: also TF, DF, NT, AC, ID

#define SELECTOR_CODE 0x33u
#define SELECTOR_DATA 0x2bu

static bool has_memory(const ZydisDecodedInstruction *in) {
  return (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod != 3;
}

// ---- which ones ---------------------------------------------------------------------------------

static bool is_x87(const ZydisDecodedInstruction *in) {
  return in->opcode == 0xd9 && in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && in->raw.modrm.mod == 3 &&
         heddle_x87_has((uint8_t)(0xc0 | in->raw.modrm.reg << 3 | in->raw.modrm.rm));
}

// Reports whether the engine takes AH, with a REX prefix, for SPL.
static bool moves_flags_by_ah(const ZydisDecodedInstruction *in) {
  bool moves = in->mnemonic == ZYDIS_MNEMONIC_LAHF || in->mnemonic == ZYDIS_MNEMONIC_SAHF;
  return moves && (in->attributes & ZYDIS_ATTRIB_HAS_REX);
}

static bool is_far(const ZydisDecodedInstruction *in) { return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR; }

static bool is_iret(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_IRET || in->mnemonic == ZYDIS_MNEMONIC_IRETD || in->mnemonic == ZYDIS_MNEMONIC_IRETQ;
}

// Reports whether it is a NOP that the engine does not have.
static bool is_reserved_nop(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_NOP && in->opcode_map == ZYDIS_OPCODE_MAP_0F && in->opcode == 0x18;
}

static bool is_approximation(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_RCPPS:
    case ZYDIS_MNEMONIC_RCPSS:
    case ZYDIS_MNEMONIC_RSQRTPS:
    case ZYDIS_MNEMONIC_RSQRTSS:
      return true;
    default:
      return false;
  }
}

static bool is_scalar(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_RCPSS || in->mnemonic == ZYDIS_MNEMONIC_RSQRTSS;
}

// Reports whether it is a near return that drops more bytes than the engine's signed number has.
static bool drops_many(const ZydisDecodedInstruction *in) {
  return in->opcode == 0xc2 && in->mnemonic == ZYDIS_MNEMONIC_RET && (in->raw.imm[0].value.u & 0x8000);
}

// Reports whether it is a CMPXCHG of 32 bits: the engine clears the upper halves of the registers
// that the instruction does not write.
bool heddle_is_narrow_exchange(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG && in->operand_width == 32;
}

// Reports whether it is a CMPXCHG8B or CMPXCHG16B: the engine computes the flags that these leave alone
// from an operation that may not be the last one.
static bool is_wide_exchange(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B || in->mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B;
}

enum heddle_special heddle_special_of(const ZydisDecodedInstruction *in) {
  if (is_x87(in) || moves_flags_by_ah(in) || is_far(in) || is_iret(in) || is_reserved_nop(in)) return HEDDLE_SPECIAL_EMULATED;
  if (in->mnemonic == ZYDIS_MNEMONIC_INT1) return HEDDLE_SPECIAL_EMULATED;
  bool corrected = is_approximation(in) || drops_many(in) || heddle_is_narrow_exchange(in) || is_wide_exchange(in);
  return corrected ? HEDDLE_SPECIAL_CORRECTED : HEDDLE_SPECIAL_NONE;
}

// Reports whether the upper half of RAX is zero after the code before a CMPXCHG in its block, so that the
// engine's result is right.
bool heddle_narrows_accumulator(struct heddle_cpu *cpu, const uint8_t *code, uint64_t n) {
  bool narrow = false;
  for (uint64_t at = 0; at < n;) {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code + at, n - at, &in, ops))) return false;
    at += in.length;
    for (int i = 0; i < in.operand_count; i++) {
      const ZydisDecodedOperand *o = &ops[i];
      if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
      if (o->reg.value == ZYDIS_REGISTER_EAX && in.mnemonic != ZYDIS_MNEMONIC_CMPXCHG) narrow = true;
      if (o->reg.value == ZYDIS_REGISTER_RAX) narrow = false;
    }
  }
  return narrow;
}

// ---- memory ---------------------------------------------------------------------------------------

static bool is_canonical(uint64_t va) { return (uint64_t)((int64_t)(va << 16) >> 16) == va; }

static enum heddle_stop raise_vector(struct heddle_cpu *cpu, uint32_t vector) {
  cpu->run.vector = vector;
  return HEDDLE_STOP_EXCEPTION;
}

static enum heddle_stop refuse(struct heddle_cpu *cpu, uint64_t va, enum heddle_access access, enum heddle_walk why) {
  cpu->run.fault_kind = why;
  cpu->run.fault_access = access;
  cpu->run.fault_page = va;
  cpu->run.fault_ahead = false;
  return why == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
}

// Reads memory as the loaded thread sees it.
static enum heddle_stop load(struct heddle_cpu *cpu, uint64_t va, void *to, size_t n) {
  if (!is_canonical(va) || !is_canonical(va + n - 1)) return raise_vector(cpu, VECTOR_PROTECTION);
  for (size_t done = 0; done < n;) {
    uint64_t pte, at = va + done, offset = at & (HEDDLE_PAGE_SIZE - 1);
    enum heddle_walk why = heddle_space_walk(cpu->space, at, HEDDLE_READ, true, &pte);
    if (why) return refuse(cpu, at, HEDDLE_READ, why);
    if (cpu->private_pages) pte = heddle_private_seen(cpu->private_pages, pte);
    size_t part = HEDDLE_PAGE_SIZE - offset < n - done ? HEDDLE_PAGE_SIZE - offset : n - done;
    memcpy((uint8_t *)to + done, heddle_ram_bytes(cpu->ram, pte >> HEDDLE_PAGE_SHIFT) + offset, part);
    done += part;
  }
  return HEDDLE_STOP_NONE;
}

static enum heddle_stop store(struct heddle_cpu *cpu, uint64_t va, const void *from, size_t n) {
  size_t done;
  if (!is_canonical(va) || !is_canonical(va + n - 1)) return raise_vector(cpu, VECTOR_STACK);
  uint64_t pte;
  for (size_t at = 0; at < n; at += n - 1) {
    enum heddle_walk why = heddle_space_walk(cpu->space, va + at, HEDDLE_WRITE, true, &pte);
    if (why) return refuse(cpu, va + at, HEDDLE_WRITE, why);
  }
  heddle_space_write(cpu->space, va, from, n, &done);
  return HEDDLE_STOP_NONE;
}

// ---- far branches ---------------------------------------------------------------------------------

// A program's code segment is the only one to go to: of the others that Linux has, one is for code of 32
// bits, which there is no engine for, and those of the kernel are not for programs.
static enum heddle_stop go_far(struct heddle_cpu *cpu, uint16_t selector, uint64_t offset) {
  if ((selector | 3) != SELECTOR_CODE || !is_canonical(offset)) return raise_vector(cpu, VECTOR_PROTECTION);
  set_reg(cpu, UC_X86_REG_RIP, offset);
  return HEDDLE_STOP_NONE;
}

// A far CALL or JMP. AMD's processors have no pointers with offsets of 64 bits.
static enum heddle_stop branch_far(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  uint8_t bytes[6];
  uint64_t at, offset = 0;
  uint16_t selector;
  unsigned width = in->operand_width == 16 ? 2 : 4, slot = in->operand_width / 8;
  if (!heddle_cpu_operand(cpu, pc, &at)) return raise_vector(cpu, VECTOR_INVALID_OPCODE);
  enum heddle_stop why = load(cpu, at, bytes, width + 2);
  if (why) return why;
  memcpy(&offset, bytes, width);
  memcpy(&selector, bytes + width, 2);
  why = go_far(cpu, selector, offset);
  if (why || in->mnemonic == ZYDIS_MNEMONIC_JMP) return why;
  uint64_t rsp = get_reg(cpu, UC_X86_REG_RSP) - 2 * slot, next = pc + in->length, code = SELECTOR_CODE;
  uint8_t frame[16];
  memcpy(frame, &next, slot);
  memcpy(frame + slot, &code, slot);
  why = store(cpu, rsp, frame, 2 * slot);
  set_reg(cpu, UC_X86_REG_RIP, why ? pc : offset);
  if (!why) set_reg(cpu, UC_X86_REG_RSP, rsp);
  return why;
}

// A far RET or IRET, which take words from the stack.
static enum heddle_stop return_far(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  enum { OFFSET, CODE, FLAGS, STACK, DATA, WORDS };
  uint64_t words[WORDS] = {0}, rsp = get_reg(cpu, UC_X86_REG_RSP);
  unsigned slot = in->operand_width / 8, n = is_iret(in) ? WORDS : FLAGS;
  if (!is_canonical(rsp) || !is_canonical(rsp + n * slot - 1)) return raise_vector(cpu, VECTOR_STACK);
  for (unsigned i = 0; i < n; i++) {
    enum heddle_stop why = load(cpu, rsp + i * slot, &words[i], slot);
    if (why) return why;
  }
  if ((uint16_t)words[CODE] != SELECTOR_CODE || (is_iret(in) && (uint16_t)words[DATA] != SELECTOR_DATA))
    return raise_vector(cpu, VECTOR_PROTECTION);
  enum heddle_stop why = go_far(cpu, SELECTOR_CODE, words[OFFSET]);
  if (why) return why;
  if (!is_iret(in)) {
    set_reg(cpu, UC_X86_REG_RSP, rsp + n * slot + (uint16_t)in->raw.imm[0].value.u);
    return HEDDLE_STOP_NONE;
  }
  uint64_t mask = FLAGS_POPPED & (slot == 2 ? 0xffff : UINT32_MAX);
  set_reg(cpu, UC_X86_REG_RFLAGS, (get_reg(cpu, UC_X86_REG_RFLAGS) & ~mask) | (words[FLAGS] & mask));
  set_reg(cpu, UC_X86_REG_RSP, words[STACK]);
  return HEDDLE_STOP_NONE;
}

// ---- instructions that C executes -------------------------------------------------------------------

static enum heddle_stop execute_x87(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint8_t image[512] __attribute__((aligned(16)));
  struct heddle_x87 state;
  heddle_cpu_get_fp(cpu, image);
  memcpy(&state, image, sizeof state);
  if (!heddle_x87_execute(&state, (uint8_t)(0xc0 | in->raw.modrm.reg << 3 | in->raw.modrm.rm)))
    return raise_vector(cpu, VECTOR_FLOAT);
  memcpy(image, &state, sizeof state);
  heddle_cpu_set_fp(cpu, image);
  return HEDDLE_STOP_NONE;
}

static void move_flags(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t rax = get_reg(cpu, UC_X86_REG_RAX), flags = get_reg(cpu, UC_X86_REG_RFLAGS);
  if (in->mnemonic == ZYDIS_MNEMONIC_LAHF)
    set_reg(cpu, UC_X86_REG_RAX, (rax & ~(uint64_t)0xff00) | (flags & FLAGS_AH) << 8 | 0x200);
  else set_reg(cpu, UC_X86_REG_RFLAGS, (flags & ~(uint64_t)FLAGS_AH) | (rax >> 8 & FLAGS_AH));
}

// Executes the instruction at pc, and moves the PC unless the instruction did nothing.
enum heddle_stop heddle_special_emulate(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  enum heddle_stop why = HEDDLE_STOP_NONE;
  if (is_iret(in) || (is_far(in) && in->mnemonic == ZYDIS_MNEMONIC_RET)) return return_far(cpu, in);
  if (is_far(in)) return branch_far(cpu, pc, in);
  if (is_x87(in)) why = execute_x87(cpu, in);
  else if (moves_flags_by_ah(in)) move_flags(cpu, in);
  if (why) return why;
  set_reg(cpu, UC_X86_REG_RIP, pc + in->length);
  if (in->mnemonic != ZYDIS_MNEMONIC_INT1) return HEDDLE_STOP_NONE;
  cpu->run.vector = VECTOR_DEBUG;
  return HEDDLE_STOP_INTERRUPT;
}

// ---- corrections ----------------------------------------------------------------------------------------

static int register_of(unsigned number) {
  static const int ids[] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX, UC_X86_REG_RSP, UC_X86_REG_RBP,
                            UC_X86_REG_RSI, UC_X86_REG_RDI, UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
                            UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};
  return ids[number & 15];
}

static unsigned rm_of(const ZydisDecodedInstruction *in) { return in->raw.modrm.rm | (unsigned)in->raw.rex.B << 3; }

static unsigned reg_of(const ZydisDecodedInstruction *in) { return in->raw.modrm.reg | (unsigned)in->raw.rex.R << 3; }

// Notes the state that heddle_special_correct needs.
enum heddle_stop heddle_special_before(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in,
                                       struct heddle_before *b) {
  if (heddle_is_narrow_exchange(in)) {
    b->accumulator = get_reg(cpu, UC_X86_REG_RAX);
    if (!has_memory(in)) b->destination = get_reg(cpu, register_of(rm_of(in)));
  }
  if (is_wide_exchange(in)) b->rflags = get_reg(cpu, UC_X86_REG_RFLAGS);
  if (!is_approximation(in)) return HEDDLE_STOP_NONE;
  b->flags = heddle_float_flags(cpu);
  if (!has_memory(in)) {
    uc_reg_read(cpu->engine.uc, UC_X86_REG_XMM0 + (int)rm_of(in), b->operand);
  } else {
    heddle_cpu_operand(cpu, pc, &b->at);
    if (!is_scalar(in) && (b->at & 15)) return raise_vector(cpu, VECTOR_PROTECTION);
  }
  return HEDDLE_STOP_NONE;
}

// CMPXCHG writes either the accumulator or the destination.
static void correct_exchange(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_before *b) {
  bool equal = get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_ZF;
  if (equal && (has_memory(in) || rm_of(in))) set_reg(cpu, UC_X86_REG_RAX, b->accumulator);
  if (!equal && !has_memory(in) && rm_of(in)) set_reg(cpu, register_of(rm_of(in)), b->destination);
}

// CMPXCHG8B and CMPXCHG16B change ZF alone.
static void correct_flags(struct heddle_cpu *cpu, const struct heddle_before *b) {
  uint64_t zero = get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_ZF;
  set_reg(cpu, UC_X86_REG_RFLAGS, (b->rflags & ~(uint64_t)FLAG_ZF) | zero);
}

// The engine has loaded the operand, and changed flags in MXCSR that the instruction does not.
static void correct_approximation(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_before *b) {
  bool root = in->mnemonic == ZYDIS_MNEMONIC_RSQRTPS || in->mnemonic == ZYDIS_MNEMONIC_RSQRTSS;
  int id = UC_X86_REG_XMM0 + (int)reg_of(in);
  unsigned n = is_scalar(in) ? 1 : 4;
  uint32_t result[4], operand[4];
  memcpy(operand, b->operand, sizeof operand);
  if (has_memory(in)) load(cpu, b->at, operand, n * sizeof *operand);
  uc_reg_read(cpu->engine.uc, id, result);
  for (unsigned i = 0; i < n; i++) result[i] = root ? heddle_reciprocal_root(operand[i]) : heddle_reciprocal(operand[i]);
  uc_reg_write(cpu->engine.uc, id, result);
  heddle_float_set_flags(cpu, b->flags);
}

// The engine has executed the instruction: corrects its result.
void heddle_special_correct(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_before *b) {
  if (heddle_is_narrow_exchange(in)) correct_exchange(cpu, in, b);
  else if (is_wide_exchange(in)) correct_flags(cpu, b);
  else if (is_approximation(in)) correct_approximation(cpu, in, b);
  else set_reg(cpu, UC_X86_REG_RSP, get_reg(cpu, UC_X86_REG_RSP) + 0x10000);  // imm16, taken as a negative number
}

// ---- alignment and addresses ----------------------------------------------------------------------------

// Reports whether EFLAGS.AC is set and an operand of the instruction at pc is not aligned to its
// size, for the sizes that processors check.
bool heddle_special_misaligned(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_insn_access accesses[4];
  ZydisDecodedInstruction in;
  if (!cpu->run.checks_alignment) return false;
  int n = heddle_cpu_accesses(cpu, pc, &in, accesses, 4);
  for (int i = 0; i < n; i++) {
    uint32_t size = accesses[i].size;
    if (size <= 8 && !(size & (size - 1)) && (accesses[i].at & (size - 1))) return true;
  }
  return false;
}

// Notes whether the loaded thread has set EFLAGS.AC. Its instructions are executed one at a time then.
void heddle_special_note_flags(struct heddle_cpu *cpu) {
  cpu->run.checks_alignment = get_reg(cpu, UC_X86_REG_RFLAGS) & FLAG_AC;
}

// Returns the exception that an access of the instruction at pc to an address raises by that address alone, or
// HEDDLE_NO_VECTOR.
uint32_t heddle_special_address_vector(struct heddle_cpu *cpu, uint64_t pc, uint64_t va) {
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (is_canonical(va)) return HEDDLE_NO_VECTOR;
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, &in, ops))) return VECTOR_PROTECTION;
  for (int i = 0; i < in.operand_count; i++)
    if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
      return ops[i].mem.segment == ZYDIS_REGISTER_SS ? VECTOR_STACK : VECTOR_PROTECTION;
  return VECTOR_PROTECTION;
}
