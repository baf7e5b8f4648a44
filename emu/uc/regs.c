// Registers in batches, floating-point state, CPUID, operands of instructions, addresses of faults.
#include "run.h"
#include "sse.h"

#include <string.h>

// In the order of instruction encoding, then the other fields of struct heddle_regs.
static const int reg_ids[] = {
    UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX,    UC_X86_REG_RBX,     UC_X86_REG_RSP,
    UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,    UC_X86_REG_R8,      UC_X86_REG_R9,
    UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12,    UC_X86_REG_R13,     UC_X86_REG_R14,
    UC_X86_REG_R15, UC_X86_REG_RIP, UC_X86_REG_RFLAGS, UC_X86_REG_FS_BASE, UC_X86_REG_GS_BASE,
};
#define NREGS ((int)(sizeof reg_ids / sizeof reg_ids[0]))
_Static_assert(sizeof(struct heddle_regs) == 8 * sizeof reg_ids / sizeof reg_ids[0], "one word each");

static void register_pointers(struct heddle_regs *r, void *at[]) {
  uint64_t *words = (uint64_t *)r;
  for (int i = 0; i < NREGS; i++) at[i] = &words[i];
}

void heddle_cpu_get_regs(struct heddle_cpu *cpu, struct heddle_regs *r) {
  void *at[NREGS];
  register_pointers(r, at);
  uc_reg_read_batch(cpu->engine.uc, (int *)reg_ids, at, NREGS);
}

uint64_t heddle_cpu_pc(struct heddle_cpu *cpu) { return get_rip(cpu); }

void heddle_cpu_set_regs(struct heddle_cpu *cpu, const struct heddle_regs *r) {
  struct heddle_regs copy = *r;
  void *at[NREGS];
  register_pointers(&copy, at);
  uc_reg_write_batch(cpu->engine.uc, (int *)reg_ids, at, NREGS);
}

// The layout of FXSAVE in 64-bit mode (SDM volume 1, table 10-2).
struct fxsave {
  uint16_t fcw, fsw;
  uint8_t ftw, reserved;
  uint16_t fop;
  uint64_t fip, fdp;
  uint32_t mxcsr, mxcsr_mask;
  uint8_t st[8][16];
  uint8_t xmm[16][16];
  uint8_t rest[96];
};
_Static_assert(sizeof(struct fxsave) == 512, "FXSAVE image");

#define MXCSR_MASK 0xffffu
#define EXCEPTION_FLAGS 0x3fu  // of MXCSR and of the status word, which the engine keeps elsewhere: see sse.c

// The tag word has two bits for each register, the image one: whether the register is in use.
static uint8_t registers_in_use(uint16_t tags) {
  uint8_t used = 0;
  for (int i = 0; i < 8; i++)
    if ((tags >> (2 * i) & 3) != 3) used |= (uint8_t)(1u << i);
  return used;
}

static uint16_t tag_word(uint8_t used) {
  uint16_t tags = 0;
  for (int i = 0; i < 8; i++)
    if (!(used & 1u << i)) tags |= (uint16_t)(3u << (2 * i));
  return tags;
}

void heddle_cpu_get_fp(struct heddle_cpu *cpu, void *fxsave) {
  struct fxsave f;
  uint16_t tags = 0, fcw = 0, fsw = 0, fop = 0;
  memset(&f, 0, sizeof f);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FPCW, &fcw);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FPSW, &fsw);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FPTAG, &tags);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FOP, &fop);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FIP, &f.fip);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_FDP, &f.fdp);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_MXCSR, &f.mxcsr);
  struct heddle_float_flags flags = heddle_float_flags(cpu);
  f.fcw = fcw;
  f.fsw = (uint16_t)((fsw & ~EXCEPTION_FLAGS) | flags.x87);
  f.fop = fop;
  f.ftw = registers_in_use(tags);
  f.mxcsr_mask = MXCSR_MASK;
  f.mxcsr |= flags.sse;
  // The engine numbers registers, the image stack positions.
  unsigned top = fsw >> 11 & 7;
  for (unsigned i = 0; i < 8; i++)
    uc_reg_read(cpu->engine.uc, UC_X86_REG_FP0 + (int)((top + i) & 7), f.st[i]);
  for (int i = 0; i < 16; i++) uc_reg_read(cpu->engine.uc, UC_X86_REG_XMM0 + i, f.xmm[i]);
  memcpy(fxsave, &f, sizeof f);
}

void heddle_cpu_set_fp(struct heddle_cpu *cpu, const void *fxsave) {
  struct fxsave f;
  memcpy(&f, fxsave, sizeof f);
  uint16_t tags = tag_word(f.ftw), fcw = f.fcw, fsw = f.fsw & (uint16_t)~EXCEPTION_FLAGS, fop = f.fop;
  uint32_t mxcsr = f.mxcsr & MXCSR_MASK;
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FPCW, &fcw);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FPSW, &fsw);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FOP, &fop);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FIP, &f.fip);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FDP, &f.fdp);
  uc_reg_write(cpu->engine.uc, UC_X86_REG_MXCSR, &mxcsr);
  unsigned top = fsw >> 11 & 7;
  for (unsigned i = 0; i < 8; i++)
    uc_reg_write(cpu->engine.uc, UC_X86_REG_FP0 + (int)((top + i) & 7), f.st[i]);
  for (int i = 0; i < 16; i++) uc_reg_write(cpu->engine.uc, UC_X86_REG_XMM0 + i, f.xmm[i]);
  // Last, since writing a register marks it as in use.
  uc_reg_write(cpu->engine.uc, UC_X86_REG_FPTAG, &tags);
  heddle_float_set_flags(cpu, (struct heddle_float_flags){mxcsr & EXCEPTION_FLAGS, f.fsw & EXCEPTION_FLAGS});
}

// The processor that the guest sees (SDM volume 2, CPUID). glibc requires a vendor that it knows,
// FPU and MMX; features that the engine lacks are not announced.
void heddle_cpu_cpuid(const struct heddle_cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]) {
  uint32_t *eax = &out[0], *ebx = &out[1], *ecx = &out[2], *edx = &out[3];
  static const char brand[48] = "heddle emulated x86-64 CPU";
  memset(out, 0, 4 * sizeof *out);
  (void)subleaf;
  switch (leaf) {
    case 0:
    case 0x80000000u:
      *eax = leaf ? 0x80000008u : 7;
      *ebx = 0x68747541;  // AuthenticAMD
      *edx = 0x69746e65;
      *ecx = 0x444d4163;
      break;
    case 1:
      *eax = 0x00100f42;
      *ebx = 8u << 8 | cpu->cores << 16 | cpu->core << 24;
      // SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT.
      *ecx = 1u | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23;
      *edx = 0x078bfbff | (cpu->cores > 1 ? 1u << 28 : 0);
      break;
    case 0x80000001u:
      *eax = 0x00100f42;
      *ecx = 1u | (cpu->cores > 1 ? 2u : 0);         // LAHF, CMP legacy
      *edx = 1u << 11 | 1u << 20 | 1u << 29;         // SYSCALL, NX, long mode
      break;
    case 0x80000002u:
    case 0x80000003u:
    case 0x80000004u:
      memcpy(out, brand + 16 * (leaf - 0x80000002u), 16);
      break;
    case 0x80000005u:  // L1: 64 KiB each, 2 ways, lines of 64 bytes
      *ecx = *edx = 64u << 24 | 2u << 16 | 1u << 8 | 64;
      break;
    case 0x80000006u:  // L2: 512 KiB, 16 ways; L3: 6 MiB, 48 ways
      *ecx = 512u << 16 | 8u << 12 | 1u << 8 | 64;
      *edx = 12u << 18 | 11u << 12 | 1u << 8 | 64;
      break;
    case 0x80000008u:
      *eax = 48u << 8 | 48;
      *ecx = cpu->cores - 1;
      break;
    default:
      break;
  }
}

// Decodes the instruction at pc, which the loaded thread is about to execute; regs receives the
// thread's registers.
bool heddle_cpu_decode_at(struct heddle_cpu *cpu, uint64_t pc, struct heddle_regs *regs, struct heddle_insn *out) {
  uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  heddle_cpu_get_regs(cpu, regs);
  regs->rip = pc;
  return heddle_insn_decode(code, len, regs, out);
}

// Finds the address of the first memory operand of the instruction at pc, which has not changed the
// registers yet. Returns false if it has none.
bool heddle_cpu_operand(struct heddle_cpu *cpu, uint64_t pc, uint64_t *at) {
  struct heddle_regs regs;
  struct heddle_insn i;
  return heddle_cpu_decode_at(cpu, pc, &regs, &i) && heddle_insn_first_operand(&i, at);
}

// Finds the loads, then the stores, of the instruction at pc, which has not changed the registers
// yet: see heddle_insn_accesses.
int heddle_cpu_accesses(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in, struct heddle_insn_access *out,
                        int most) {
  struct heddle_regs regs;
  struct heddle_insn i;
  if (!heddle_cpu_decode_at(cpu, pc, &regs, &i)) return -1;
  *in = i.in;
  return heddle_insn_accesses(&i, out, most);
}

// Reports whether the instruction at the PC is a repeated one without iterations left.
bool heddle_cpu_repetition_over(struct heddle_cpu *cpu) {
  ZydisDecodedInstruction in;
  return heddle_decode(cpu, get_rip(cpu), &in) && heddle_is_repeated(&in) &&
         !heddle_rep_count(&in, get_reg(cpu, UC_X86_REG_RCX));
}

// Finds the memory that the instruction at the PC is about to access: see heddle_insn_operands.
size_t heddle_cpu_operands(struct heddle_cpu *cpu, struct heddle_operand *out) {
  struct heddle_regs regs;
  struct heddle_insn i;
  return heddle_cpu_decode_at(cpu, get_rip(cpu), &regs, &i) ? heddle_insn_operands(&i, out) : 0;
}

// Returns the exact address of the last page fault. The engine reports the page; the rest follows
// from the operands of the instruction at the PC.
uint64_t heddle_cpu_fault_address(struct heddle_cpu *cpu) {
  uint64_t pc = 0, page = cpu->run.fault_page & ~(HEDDLE_PAGE_SIZE - 1);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_RIP, &pc);
  if (cpu->run.fault_page != page) return cpu->run.fault_page;
  if (cpu->run.fault_access == HEDDLE_FETCH) return pc >> HEDDLE_PAGE_SHIFT == page >> HEDDLE_PAGE_SHIFT ? pc : page;
  struct heddle_regs regs;
  struct heddle_insn i;
  struct heddle_operand all[HEDDLE_OPERANDS];
  size_t n = heddle_cpu_decode_at(cpu, pc, &regs, &i) ? heddle_insn_operands(&i, all) : 0;
  for (size_t k = 0; k < n; k++) {
    uint64_t at = all[k].at, size = all[k].size ? all[k].size : 1;
    if (at + size > page && at < page + HEDDLE_PAGE_SIZE) return at < page ? page : at;
  }
  return page;
}
