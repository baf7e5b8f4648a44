// The exception flags of MXCSR and of the x87 status word (SDM volume 1, sections 10.2.3 and 8.1.3).
// The engine keeps them in the states of its floating-point library and never merges them into the
// registers that STMXCSR, FNSTSW, FXSAVE and the interface show; of the x87 flags it sets only ZE there, also for 0/0.
// They are merged here through a saved context, in which the positions of those states are found by
// experiment. The status register itself has none of the flags then.
#include "sse.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS 0x3fu  // IE DE ZE OE UE PE, the same bits in the library's flags

// A division: two numbers, as the registers have them, and the flags that it raises.
struct division {
  uint64_t in[2][2];
  uint8_t flags;
};

#define DIVISIONS 5

// A division of the first of two registers by the second.
struct divider {
  int first;    // of the registers
  uint64_t at;  // of the code
  struct division divisions[DIVISIONS];
};

#define CODE 0x1000u

static const uint8_t code[] = {0xf2, 0x0f, 0x5e, 0xc1, 0x0f, 0x05,  // divsd xmm0, xmm1; syscall
                               0xd8, 0xf1, 0x0f, 0x05};             // fdiv st, st(1); syscall

#define ONE ((uint64_t)1 << 63)

static const struct divider sse_divider = {
    UC_X86_REG_XMM0, CODE,
    {{{{0x3ff0000000000000}, {0}}, 4},
     {{{0}, {0}}, 1},
     {{{0x3ff0000000000000}, {0x4008000000000000}}, 32},
     {{{0x3ff0000000000000}, {0x4000000000000000}}, 0},
     {{{0x7fe0000000000000}, {0x0010000000000000}}, 8 | 32}}};

static const struct divider x87_divider = {
    UC_X86_REG_FP0, CODE + 6,
    {{{{ONE, 0x3fff}, {0, 0}}, 4},
     {{{0, 0}, {0, 0}}, 1},
     {{{ONE, 0x3fff}, {ONE | ONE >> 1, 0x4000}}, 32},
     {{{ONE, 0x3fff}, {ONE, 0x4000}}, 0},
     {{{ONE, 0x7ffe}, {ONE, 1}}, 8 | 32}}};

// Runs a division in an address space of its own, in the initial context, and saves the resulting
// context.
static uc_err run_division(struct heddle_cpu *cpu, struct heddle_space *s, const struct divider *d, unsigned i,
                           uc_context *out) {
  struct heddle_space *before = cpu->space;
  cpu->space = s;
  uc_err err = uc_context_restore(cpu->engine.uc, cpu->engine.initial);
  for (int k = 0; k < 2; k++) uc_reg_write(cpu->engine.uc, d->first + k, d->divisions[i].in[k]);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_RIP, &d->at);
  if (!err && heddle_cpu_run(cpu, 100, UINT64_MAX, UINT64_MAX, 0) != HEDDLE_STOP_SYSCALL) err = UC_ERR_EXCEPTION;
  if (!err) err = uc_context_save(cpu->engine.uc, out);
  cpu->space = before;
  return err;
}

// Finds the byte of a saved context that has the flags: the one that is 0 at first and has exactly
// the expected flags after each of several divisions. Returns 0 if there is not exactly one.
static size_t find_flags(struct heddle_cpu *cpu, struct heddle_space *s, const struct divider *d) {
  size_t size = uc_context_size(cpu->engine.uc), found = 0;
  uc_context *results[DIVISIONS] = {0};
  bool ok = true;
  for (unsigned i = 0; i < DIVISIONS && ok; i++)
    ok = !uc_context_alloc(cpu->engine.uc, &results[i]) && !run_division(cpu, s, d, i, results[i]);
  for (size_t at = sizeof(size_t); ok && at < size; at++) {
    bool fits = ((uint8_t *)cpu->engine.initial)[at] == 0;
    for (unsigned i = 0; i < DIVISIONS && fits; i++) fits = ((uint8_t *)results[i])[at] == d->divisions[i].flags;
    if (!fits) continue;
    if (found) ok = false;  // ambiguous
    found = at;
  }
  for (unsigned i = 0; i < DIVISIONS; i++)
    if (results[i]) uc_context_free(results[i]);
  return ok ? found : 0;
}

int heddle_sse_init(struct heddle_cpu *cpu) {
  struct heddle_space s;
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  memcpy(heddle_ram_bytes(cpu->ram, page), code, sizeof code);
  heddle_space_init(&s, cpu->ram);
  heddle_space_set(&s, CODE, page << HEDDLE_PAGE_SHIFT | HEDDLE_PTE_READ | HEDDLE_PTE_EXEC);
  size_t sse = find_flags(cpu, &s, &sse_divider), x87 = find_flags(cpu, &s, &x87_divider);
  heddle_space_clear_all(&s);
  uc_err err = uc_context_alloc(cpu->engine.uc, &cpu->engine.scratch);
  cpu->engine.sse_flags_offset = sse;
  cpu->engine.x87_flags_offset = x87;
  if (!err) err = uc_context_restore(cpu->engine.uc, cpu->engine.initial);
  return err;
}

static uint8_t flags_at(struct heddle_cpu *cpu, size_t offset) {
  return offset ? ((uint8_t *)cpu->engine.scratch)[offset] & FLAGS : 0;
}

// Reads the flags of MXCSR and of the x87 status word.
struct heddle_float_flags heddle_float_flags(struct heddle_cpu *cpu) {
  // During initialization the positions are not known yet.
  if (!cpu->engine.sse_flags_offset && !cpu->engine.x87_flags_offset) return (struct heddle_float_flags){0, 0};
  uc_context_save(cpu->engine.uc, cpu->engine.scratch);
  return (struct heddle_float_flags){flags_at(cpu, cpu->engine.sse_flags_offset), flags_at(cpu, cpu->engine.x87_flags_offset)};
}

void heddle_float_set_flags(struct heddle_cpu *cpu, struct heddle_float_flags flags) {
  struct heddle_float_flags now = heddle_float_flags(cpu);
  if ((!cpu->engine.sse_flags_offset && !cpu->engine.x87_flags_offset) || (now.sse == flags.sse && now.x87 == flags.x87))
    return;
  uint8_t *context = (uint8_t *)cpu->engine.scratch;
  if (cpu->engine.sse_flags_offset) context[cpu->engine.sse_flags_offset] = flags.sse & FLAGS;
  if (cpu->engine.x87_flags_offset) context[cpu->engine.x87_flags_offset] = flags.x87 & FLAGS;
  uc_context_restore(cpu->engine.uc, cpu->engine.scratch);
}

// Reports whether the instruction compares strings whose lengths are in EAX and EDX.
static bool has_lengths(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_PCMPESTRI || in->mnemonic == ZYDIS_MNEMONIC_PCMPESTRM;
}

static bool is_fxsave(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_FXSAVE || in->mnemonic == ZYDIS_MNEMONIC_FXSAVE64;
}

static bool is_fxrstor(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_FXRSTOR || in->mnemonic == ZYDIS_MNEMONIC_FXRSTOR64;
}

// The instructions that show flags, and those that set them.
static bool shows_flags(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_STMXCSR:
    case ZYDIS_MNEMONIC_FNSTSW:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
      return true;
    default:
      return is_fxsave(in);
  }
}

static bool sets_flags(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_FNCLEX:
    case ZYDIS_MNEMONIC_FNINIT:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
      return true;
    default:
      return false;
  }
}

bool heddle_sse_special(const ZydisDecodedInstruction *in) { return shows_flags(in) || sets_flags(in) || has_lengths(in); }

// Replaces lengths in EAX and EDX that the engine cannot handle. The length is the absolute value,
// at most the number of elements of the operand (SDM volume 2, PCMPESTRI). The engine has none for
// the smallest number, and would read far beyond the operand. Returns whether a length was
// replaced.
bool heddle_sse_replace_lengths(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint64_t lengths[2]) {
  static const int regs[] = {UC_X86_REG_RAX, UC_X86_REG_RDX};
  if (!has_lengths(in)) return false;
  bool shortened = false;
  for (int i = 0; i < 2; i++) {
    uc_reg_read(cpu->engine.uc, regs[i], &lengths[i]);
    bool wide = in->attributes & ZYDIS_ATTRIB_HAS_REX && in->raw.rex.W;
    bool least = wide ? lengths[i] == (uint64_t)1 << 63 : (uint32_t)lengths[i] == 1u << 31;
    uint64_t all = 16;
    if (least) uc_reg_write(cpu->engine.uc, regs[i], &all);
    shortened |= least;
  }
  return shortened;
}

void heddle_sse_restore_lengths(struct heddle_cpu *cpu, const uint64_t lengths[2]) {
  uc_reg_write(cpu->engine.uc, UC_X86_REG_RAX, &lengths[0]);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_RDX, &lengths[1]);
}

// Stores bytes that the instruction stores on a processor, and the engine leaves out or has others for.
static void store_bytes(struct heddle_cpu *cpu, uint64_t at, const uint8_t *bytes, size_t n) {
  size_t done;
  if (!heddle_space_write(cpu->space, at, bytes, n, &done)) heddle_mem_add_store(&cpu->logs.memory, at, n);
}

static void store_zeros(struct heddle_cpu *cpu, uint64_t at, size_t n) {
  static const uint8_t zeros[8];
  store_bytes(cpu, at, zeros, n);
}

// The fields of an x87 environment (SDM volume 1, figures 8-9 and 8-12): reserved ones have all bits set,
// and the addresses of the last instruction and its operand are 0, as in the image of FXSAVE.
static void complete_environment(struct heddle_cpu *cpu, uint64_t at, bool in_16_bits) {
  static const uint8_t ones[2] = {0xff, 0xff};
  if (in_16_bits) {
    store_zeros(cpu, at + 6, 8);
    return;
  }
  for (unsigned i = 2; i <= 10; i += 4) store_bytes(cpu, at + i, ones, 2);
  store_zeros(cpu, at + 12, 8);
  store_zeros(cpu, at + 20, 6);
  store_bytes(cpu, at + 26, ones, 2);
}

// The fields of an FXSAVE image that are 0 and that the engine leaves as they were, or has other values
// for: the opcode and the addresses of the last x87 instruction and its operand, as on AMD's processors
// without a pending exception, and the bytes after each x87 register.
static void complete_fxsave(struct heddle_cpu *cpu, uint64_t at) {
  store_zeros(cpu, at + 6, 2);
  store_zeros(cpu, at + 8, 8);
  store_zeros(cpu, at + 16, 8);
  for (unsigned i = 0; i < 8; i++) store_zeros(cpu, at + 32 + 16 * i + 10, 6);
}

// Puts flags into a word in memory, which the instruction has just stored, from its bit 0 on.
static void show_in_memory(struct heddle_cpu *cpu, uint64_t at, unsigned bytes, uint32_t flags) {
  uint32_t word = 0;
  size_t done;
  if (heddle_space_read(cpu->space, at, &word, bytes, &done)) return;
  word = (word & ~FLAGS) | flags;
  heddle_space_write(cpu->space, at, &word, bytes, &done);
}

static void show_flags(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_shown *shown) {
  bool in_register = in->mnemonic == ZYDIS_MNEMONIC_FNSTSW && in->raw.modrm.mod == 3;
  if (in_register) {
    uint64_t rax;
    uc_reg_read(cpu->engine.uc, UC_X86_REG_RAX, &rax);
    rax = (rax & ~(uint64_t)FLAGS) | shown->flags.x87;
    uc_reg_write(cpu->engine.uc, UC_X86_REG_RAX, &rax);
    return;
  }
  if (!shown->has_address) return;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_STMXCSR:
      show_in_memory(cpu, shown->at, 4, shown->flags.sse);
      break;
    case ZYDIS_MNEMONIC_FNSTSW:
      show_in_memory(cpu, shown->at, 2, shown->flags.x87);
      break;
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
      show_in_memory(cpu, shown->at + (in->operand_width == 16 ? 2 : 4), 2, shown->flags.x87);
      complete_environment(cpu, shown->at, in->operand_width == 16);
      break;
    default:  // FXSAVE
      complete_fxsave(cpu, shown->at);
      show_in_memory(cpu, shown->at + 2, 2, shown->flags.x87);
      show_in_memory(cpu, shown->at + 24, 4, shown->flags.sse);
  }
}

// Moves the flags that the instruction has set from the registers to the library's states.
static void take_flags(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, struct heddle_float_flags flags) {
  uint32_t mxcsr = 0;
  uint16_t fsw = 0;
  uc_reg_read(cpu->engine.uc, UC_X86_REG_MXCSR, &mxcsr);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FPSW, &fsw);
  bool fxrstor = is_fxrstor(in);
  bool sse = fxrstor || in->mnemonic == ZYDIS_MNEMONIC_LDMXCSR;
  if (sse) flags.sse = mxcsr & FLAGS;
  if (fxrstor || !sse) flags.x87 = fsw & FLAGS;
  heddle_float_set_flags(cpu, flags);
  fsw &= (uint16_t)~FLAGS;
  if (fxrstor || !sse) uc_reg_write(cpu->engine.uc, UC_X86_REG_FPSW, &fsw);
}

#define MXCSR_RESERVED 0xffff0000u

// Notes the state before the instruction at pc that heddle_sse_after needs. Returns false if the
// instruction loads a value for MXCSR that raises #GP; the engine takes any.
bool heddle_sse_before(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in, struct heddle_shown *shown) {
  uint32_t mxcsr = 0;
  size_t done;
  if (has_lengths(in)) return true;
  shown->flags = heddle_float_flags(cpu);
  shown->has_address = heddle_cpu_operand(cpu, pc, &shown->at);
  bool loads = in->mnemonic == ZYDIS_MNEMONIC_LDMXCSR || is_fxrstor(in);
  if (!loads || !shown->has_address) return true;
  return heddle_space_read(cpu->space, shown->at + (is_fxrstor(in) ? 24 : 0), &mxcsr, sizeof mxcsr, &done) ||
         !(mxcsr & MXCSR_RESERVED);
}

// The instruction has run: makes the flags in memory and in the engine equal.
void heddle_sse_after(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const struct heddle_shown *shown) {
  if (shows_flags(in)) show_flags(cpu, in, shown);
  if (sets_flags(in)) take_flags(cpu, in, shown->flags);
}
