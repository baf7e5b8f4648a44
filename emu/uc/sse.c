// The exception flags of MXCSR (SDM volume 1, section 10.2.3). The engine keeps them in the state
// of its floating-point library and never merges them into the register that STMXCSR, FXSAVE and
// the interface show. They are merged here through a saved context, in which the position of that
// state is found by experiment.
#include "sse.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS 0x3fu  // IE DE ZE OE UE PE, the same bits in the library's flags

// Runs code in an address space of its own, in the initial context with two doubles in XMM0 and
// XMM1, and saves the resulting context.
static uc_err run_division(struct heddle_cpu *cpu, struct heddle_space *s, const double in[2], uc_context *out) {
  struct heddle_space *before = cpu->space;
  cpu->space = s;
  uc_err err = uc_context_restore(cpu->engine.uc, cpu->engine.initial);
  for (int i = 0; i < 2; i++) {
    double xmm[2] = {in[i], 0};
    uc_reg_write(cpu->engine.uc, UC_X86_REG_XMM0 + i, xmm);
  }
  uint64_t rip = 0x1000;
  uc_reg_write(cpu->engine.uc, UC_X86_REG_RIP, &rip);
  if (!err && heddle_cpu_run(cpu, 100, UINT64_MAX, UINT64_MAX, 0) != HEDDLE_STOP_SYSCALL) err = UC_ERR_EXCEPTION;
  if (!err) err = uc_context_save(cpu->engine.uc, out);
  cpu->space = before;
  return err;
}

// Finds the byte of a saved context that has the flags: the one that is 0 at first and has exactly
// the expected flags after each of several divisions. Returns 0 if there is not exactly one.
static size_t find_flags(struct heddle_cpu *cpu, struct heddle_space *s) {
  static const struct {
    double in[2];
    uint8_t flags;
  } divisions[] = {{{1, 0}, 4}, {{0, 0}, 1}, {{1, 3}, 32}, {{1, 2}, 0}, {{1e308, 1e-10}, 8 | 32}};
  size_t size = uc_context_size(cpu->engine.uc), found = 0, n = sizeof divisions / sizeof divisions[0];
  uc_context *results[sizeof divisions / sizeof divisions[0]] = {0};
  bool ok = true;
  for (size_t i = 0; i < n && ok; i++)
    ok = !uc_context_alloc(cpu->engine.uc, &results[i]) && !run_division(cpu, s, divisions[i].in, results[i]);
  for (size_t at = sizeof(size_t); ok && at < size; at++) {
    bool fits = ((uint8_t *)cpu->engine.initial)[at] == 0;
    for (size_t i = 0; i < n && fits; i++) fits = ((uint8_t *)results[i])[at] == divisions[i].flags;
    if (!fits) continue;
    if (found) ok = false;  // ambiguous
    found = at;
  }
  for (size_t i = 0; i < n; i++)
    if (results[i]) uc_context_free(results[i]);
  return ok ? found : 0;
}

int heddle_sse_init(struct heddle_cpu *cpu) {
  static const uint8_t code[] = {0xf2, 0x0f, 0x5e, 0xc1, 0x0f, 0x05};  // divsd xmm0, xmm1; syscall
  struct heddle_space s;
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  memcpy(heddle_ram_bytes(cpu->ram, page), code, sizeof code);
  heddle_space_init(&s, cpu->ram);
  heddle_space_set(&s, 0x1000, page << HEDDLE_PAGE_SHIFT | HEDDLE_PTE_READ | HEDDLE_PTE_EXEC);
  cpu->engine.sse_flags_offset = find_flags(cpu, &s);
  heddle_space_clear_all(&s);
  uc_err err = uc_context_alloc(cpu->engine.uc, &cpu->engine.scratch);
  if (!err) err = uc_context_restore(cpu->engine.uc, cpu->engine.initial);
  return err;
}

uint32_t heddle_sse_flags(struct heddle_cpu *cpu) {
  if (!cpu->engine.sse_flags_offset) return 0;
  uc_context_save(cpu->engine.uc, cpu->engine.scratch);
  return ((uint8_t *)cpu->engine.scratch)[cpu->engine.sse_flags_offset] & FLAGS;
}

void heddle_sse_set_flags(struct heddle_cpu *cpu, uint32_t mxcsr) {
  if (!cpu->engine.sse_flags_offset) return;
  uc_context_save(cpu->engine.uc, cpu->engine.scratch);
  uint8_t *flags = &((uint8_t *)cpu->engine.scratch)[cpu->engine.sse_flags_offset];
  if (*flags == (mxcsr & FLAGS)) return;
  *flags = mxcsr & FLAGS;
  uc_context_restore(cpu->engine.uc, cpu->engine.scratch);
}

// Reports whether the instruction compares strings whose lengths are in EAX and EDX.
static bool has_lengths(const ZydisDecodedInstruction *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_PCMPESTRI || in->mnemonic == ZYDIS_MNEMONIC_PCMPESTRM;
}

bool heddle_sse_special(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_STMXCSR:
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
      return true;
    default:
      return has_lengths(in);
  }
}

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

// Stores zeros that the instruction stores on a processor and the engine leaves out.
static void store_zeros(struct heddle_cpu *cpu, uint64_t at, size_t n) {
  static const uint8_t zeros[8];
  size_t done;
  if (!heddle_space_write(cpu->space, at, zeros, n, &done)) heddle_mem_add_store(&cpu->logs.memory, at, n);
}

// The fields of an FXSAVE image that the engine leaves as they were: the last opcode, and the bytes
// after each x87 register.
static void complete_fxsave(struct heddle_cpu *cpu, uint64_t at) {
  store_zeros(cpu, at + 6, 2);
  for (unsigned i = 0; i < 8; i++) store_zeros(cpu, at + 32 + 16 * i + 10, 6);
}

// The instruction at pc has run: makes the flags in memory and in the engine equal.
void heddle_sse_after(struct heddle_cpu *cpu, uint64_t pc, const ZydisDecodedInstruction *in) {
  if (has_lengths(in)) return;
  uint32_t mxcsr = 0;
  size_t done;
  bool save = in->mnemonic == ZYDIS_MNEMONIC_FXSAVE || in->mnemonic == ZYDIS_MNEMONIC_FXSAVE64;
  if (!save && in->mnemonic != ZYDIS_MNEMONIC_STMXCSR) {
    uc_reg_read(cpu->engine.uc, UC_X86_REG_MXCSR, &mxcsr);
    heddle_sse_set_flags(cpu, mxcsr);
    return;
  }
  uint64_t at;
  if (!heddle_cpu_operand(cpu, pc, &at)) return;
  if (save) {
    complete_fxsave(cpu, at);
    at += 24;  // offset of MXCSR in the image
  }
  if (heddle_space_read(cpu->space, at, &mxcsr, sizeof mxcsr, &done)) return;
  mxcsr |= heddle_sse_flags(cpu);
  heddle_space_write(cpu->space, at, &mxcsr, sizeof mxcsr, &done);
}
