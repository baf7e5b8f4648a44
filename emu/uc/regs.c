// Registers in batches, floating-point state, CPUID, operands of instructions, addresses of faults.
#include "run.h"
#include "inside.h"
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
  f.fcw = fcw;
  f.fsw = fsw;
  f.fop = fop;
  f.ftw = registers_in_use(tags);
  f.mxcsr_mask = MXCSR_MASK;
  f.mxcsr |= heddle_sse_flags(cpu);
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
  uint16_t tags = tag_word(f.ftw), fcw = f.fcw, fsw = f.fsw, fop = f.fop;
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
  heddle_sse_set_flags(cpu, mxcsr);
}

// The processor that the guest sees (SDM volume 2, CPUID). glibc requires a vendor that it knows,
// FPU and MMX; features that the engine lacks are not announced.
void heddle_cpu_cpuid(const struct heddle_cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]) {
  uint32_t *eax = &out[0], *ebx = &out[1], *ecx = &out[2], *edx = &out[3];
  static const char brand[48] = "heddle emulated x86-64 processor";
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

static uint64_t register_value(struct heddle_cpu *cpu, ZydisRegister reg, uint64_t next) {
  if (reg == ZYDIS_REGISTER_NONE) return 0;
  if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return next;
  bool narrow = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32;
  int id = ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
  uint64_t value = 0;
  if (id >= 0 && id < 16) uc_reg_read(cpu->engine.uc, reg_ids[id], &value);
  return narrow ? (uint32_t)value : value;
}

static uint64_t segment_base(struct heddle_cpu *cpu, ZydisRegister reg) {
  uint64_t base = 0;
  if (reg == ZYDIS_REGISTER_FS) uc_reg_read(cpu->engine.uc, UC_X86_REG_FS_BASE, &base);
  if (reg == ZYDIS_REGISTER_GS) uc_reg_read(cpu->engine.uc, UC_X86_REG_GS_BASE, &base);
  return base;
}

// Returns the address of an explicit memory operand; next is the address of the next instruction.
static uint64_t effective_address(struct heddle_cpu *cpu, const ZydisDecodedOperand *o, uint64_t next) {
  uint64_t at = register_value(cpu, o->mem.base, next) + register_value(cpu, o->mem.index, next) * o->mem.scale;
  if (o->mem.disp.has_displacement) at += (uint64_t)o->mem.disp.value;
  return at + segment_base(cpu, o->mem.segment);
}

// Finds the address of the first memory operand of the instruction at pc, which has not changed the
// registers yet. Returns false if it has none.
bool heddle_cpu_operand(struct heddle_cpu *cpu, uint64_t pc, uint64_t *at) {
  uint8_t code[15];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, &in, ops))) return false;
  for (int i = 0; i < in.operand_count; i++) {
    if (ops[i].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    *at = effective_address(cpu, &ops[i], pc + in.length);
    return true;
  }
  return false;
}

// Reports whether the instruction stores to the bytes of its operand.
static bool stores_its_operand(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_POP:
      return false;
    default:
      return true;
  }
}

// Returns the distance in bytes from the operand's address to the word of a BT, BTS, BTR or BTC
// with a register (SDM volume 2, section 3.1.1.9).
static int64_t bit_offset(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *bit) {
  bool tests = in->mnemonic == ZYDIS_MNEMONIC_BT || in->mnemonic == ZYDIS_MNEMONIC_BTS ||
      in->mnemonic == ZYDIS_MNEMONIC_BTR || in->mnemonic == ZYDIS_MNEMONIC_BTC;
  if (!tests || bit->type != ZYDIS_OPERAND_TYPE_REGISTER) return 0;
  uint64_t value = register_value(cpu, bit->reg.value, 0);
  int64_t bits = bit->size == 16 ? (int16_t)value : bit->size == 32 ? (int32_t)value : (int64_t)value;
  int64_t words = (bits - (bits & (bit->size - 1))) / bit->size;
  return words * (bit->size / 8);
}

static bool is_push(const ZydisDecodedOperand *o) {
  return o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP;
}

// Returns the only operand in memory that the instruction writes, or NULL.
static const ZydisDecodedOperand *stored_operand(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops) {
  const ZydisDecodedOperand *found = NULL;
  for (int i = 0; i < in->operand_count; i++) {
    const ZydisDecodedOperand *o = &ops[i];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
    if (found) return NULL;
    found = o;
  }
  return found;
}

// Reports whether the loads and stores of the instruction differ from its operands.
static bool is_irregular(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_XLAT:
    case ZYDIS_MNEMONIC_SYSCALL:
      return true;
    default:
      return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || in->meta.category == ZYDIS_CATEGORY_INTERRUPT;
  }
}

// Reports whether an operand in memory is an address that is not accessed.
static bool accesses_nothing(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *o) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB:
    case ZYDIS_MNEMONIC_CLDEMOTE:
    case ZYDIS_MNEMONIC_NOP:
      return true;
    default:
      return o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || in->meta.category == ZYDIS_CATEGORY_PREFETCH ||
             in->meta.category == ZYDIS_CATEGORY_NOP || in->meta.category == ZYDIS_CATEGORY_WIDENOP;
  }
}

static uint64_t address_of(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
                           const ZydisDecodedOperand *o, uint64_t next) {
  uint64_t base = segment_base(cpu, o->mem.segment), offset = effective_address(cpu, o, next) - base,
      size = o->size / 8;
  if (is_push(o)) {
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) offset -= size;
  } else {
    offset += (uint64_t)bit_offset(cpu, in, &ops[1]);
    // POP computes its operand's address with the stack pointer after the pop.
    if (in->mnemonic == ZYDIS_MNEMONIC_POP && o->mem.base == ZYDIS_REGISTER_RSP) offset += size;
  }
  return base + (in->address_width == 32 ? (uint32_t)offset : offset);
}

bool heddle_cpu_store_of(struct heddle_cpu *cpu, uint64_t pc, uint64_t *at, uint32_t *size) {
  uint8_t code[15];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, &in, ops)) || !stores_its_operand(&in))
    return false;
  const ZydisDecodedOperand *o = stored_operand(&in, ops);
  if (!o) return false;
  *size = o->size / 8;
  *at = address_of(cpu, &in, ops, o, pc + in.length);
  bool crosses = (*at & (HEDDLE_PAGE_SIZE - 1)) + *size > HEDDLE_PAGE_SIZE;
  return *size && *size <= (crosses ? 8 : 16);
}

// Finds the loads, then the stores, of the instruction at pc, which has not changed the registers
// yet. Returns their number, or -1 if there are more than most, or one has more than 16 bytes, or
// they differ from the operands.
int heddle_cpu_accesses(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in, struct heddle_piece *out,
                        int most) {
  uint8_t code[15];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, in, ops)) || is_irregular(in)) return -1;
  if (heddle_kind_of(in) == HEDDLE_KIND_REP && !heddle_rep_count(cpu, in)) return 0;
  int n = 0;
  for (uint32_t stores = 0; stores < 2; stores++) {
    ZydisOperandActions mask = stores ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    for (int i = 0; i < in->operand_count; i++) {
      const ZydisDecodedOperand *o = &ops[i];
      if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !(o->actions & mask) || accesses_nothing(in, o)) continue;
      uint32_t size = o->size / 8;
      if (n == most || !size || size > sizeof out->bytes) return -1;
      out[n++] = (struct heddle_piece){.addr = address_of(cpu, in, ops, o, pc + in->length), .size = size,
                                       .stores = stores};
    }
  }
  return n;
}

// Returns the count of a repeated string instruction.
uint64_t heddle_rep_count(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t rcx = get_reg(cpu, UC_X86_REG_RCX);
  return in->address_width == 32 ? (uint32_t)rcx : rcx;
}

// Reports whether the instruction at the PC is a repeated one without iterations left.
bool heddle_cpu_repetition_over(struct heddle_cpu *cpu) {
  ZydisDecodedInstruction in;
  return heddle_decode(cpu, get_rip(cpu), &in) && heddle_kind_of(&in) == HEDDLE_KIND_REP && !heddle_rep_count(cpu, &in);
}

// Finds the memory that the instruction at the PC is about to access, as far as its operands name
// it, and returns the number of such operands. A repeated instruction is about to execute one
// iteration.
size_t heddle_cpu_operands(struct heddle_cpu *cpu, struct heddle_operand *out) {
  uint64_t pc = get_rip(cpu);
  uint8_t code[15];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code), n = 0;
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, &in, ops))) return 0;
  if (heddle_kind_of(&in) == HEDDLE_KIND_REP && !heddle_rep_count(cpu, &in)) return 0;
  for (int i = 0; i < in.operand_count && n < HEDDLE_OPERANDS; i++) {
    const ZydisDecodedOperand *o = &ops[i];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !o->actions || accesses_nothing(&in, o)) continue;
    out[n++] = (struct heddle_operand){address_of(cpu, &in, ops, o, pc + in.length), o->size / 8,
                                       o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE};
  }
  return n;
}

// Returns the exact address of the last page fault. The engine reports the page; the rest follows
// from the operands of the instruction at the PC.
uint64_t heddle_cpu_fault_address(struct heddle_cpu *cpu) {
  uint64_t pc = 0, page = cpu->run.fault_page & ~(HEDDLE_PAGE_SIZE - 1);
  uc_reg_read(cpu->engine.uc, UC_X86_REG_RIP, &pc);
  if (cpu->run.fault_page != page) return cpu->run.fault_page;
  if (cpu->run.fault_access == HEDDLE_FETCH) return pc >> HEDDLE_PAGE_SHIFT == page >> HEDDLE_PAGE_SHIFT ? pc : page;
  uint8_t code[15];
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&cpu->decoder, code, len, &in, ops))) return page;
  for (int i = 0; i < in.operand_count; i++) {
    const ZydisDecodedOperand *o = &ops[i];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN) continue;
    uint64_t at = effective_address(cpu, o, pc + in.length);
    uint64_t size = o->size / 8 ? o->size / 8 : 1;
    // A push writes below the stack pointer.
    bool push = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP &&
                (o->actions & ZYDIS_OPERAND_ACTION_WRITE);
    if (push) at -= size;
    if (at + size <= page || at >= page + HEDDLE_PAGE_SIZE) continue;
    return at < page ? page : at;
  }
  return page;
}
