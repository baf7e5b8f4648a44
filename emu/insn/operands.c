#include "operands.h"

// ---- decoding ---------------------------------------------------------------

// Decodes the instruction at regs->rip. Returns false if the bytes are not an instruction.
bool heddle_insn_decode(const uint8_t *code, size_t len, const struct heddle_regs *regs, struct heddle_insn *out) {
  ZydisDecoder decoder;
  out->regs = regs;
  return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
         ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &out->in, out->ops));
}

bool heddle_is_repeated(const ZydisDecodedInstruction *in) {
  return in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

// Returns the number of iterations that a repeated string instruction has left.
uint64_t heddle_rep_count(const ZydisDecodedInstruction *in, uint64_t rcx) {
  return in->address_width == 32 ? (uint32_t)rcx : rcx;
}

static bool has_modrm_memory(const ZydisDecodedInstruction *in) {
  return (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod != 3;
}

bool heddle_is_atomic(const ZydisDecodedInstruction *in) {
  return (in->attributes & ZYDIS_ATTRIB_HAS_LOCK) || (in->mnemonic == ZYDIS_MNEMONIC_XCHG && has_modrm_memory(in));
}

uint32_t heddle_order_of(const ZydisDecodedInstruction *in) {
  if (heddle_is_atomic(in)) return HEDDLE_ORDER_LOCKED;
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_CPUID:
      return HEDDLE_ORDER_FULL;
    case ZYDIS_MNEMONIC_SFENCE:
      return HEDDLE_ORDER_STORES;
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVNTQ:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
      return HEDDLE_ORDER_WEAK;
    default:
      return 0;
  }
}

// ---- addresses --------------------------------------------------------------

static uint64_t register_value(const struct heddle_insn *i, ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return 0;
  if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return i->regs->rip + i->in.length;
  bool narrow = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32;
  int id = ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
  uint64_t value = id >= 0 && id < 16 ? i->regs->gpr[id] : 0;
  return narrow ? (uint32_t)value : value;
}

static uint64_t segment_base(const struct heddle_insn *i, ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_FS) return i->regs->fs_base;
  return reg == ZYDIS_REGISTER_GS ? i->regs->gs_base : 0;
}

// Returns the offset in its segment of an operand in memory, as base, index and displacement give it.
static uint64_t encoded_offset(const struct heddle_insn *i, const ZydisDecodedOperand *o) {
  uint64_t at = register_value(i, o->mem.base) + register_value(i, o->mem.index) * o->mem.scale;
  return o->mem.disp.has_displacement ? at + (uint64_t)o->mem.disp.value : at;
}

// Returns the distance in bytes from the operand's address to the word of a BT, BTS, BTR or BTC
// with a register (SDM volume 2, section 3.1.1.9).
static int64_t bit_offset(const struct heddle_insn *i) {
  const ZydisDecodedOperand *bit = &i->ops[1];
  ZydisMnemonic m = i->in.mnemonic;
  bool tests = m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR || m == ZYDIS_MNEMONIC_BTC;
  if (!tests || bit->type != ZYDIS_OPERAND_TYPE_REGISTER) return 0;
  uint64_t value = register_value(i, bit->reg.value);
  int64_t bits = bit->size == 16 ? (int16_t)value : bit->size == 32 ? (int32_t)value : (int64_t)value;
  int64_t words = (bits - (bits & (bit->size - 1))) / bit->size;
  return words * (bit->size / 8);
}

static bool is_push(const ZydisDecodedOperand *o) {
  return o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP;
}

static uint64_t address_of(const struct heddle_insn *i, const ZydisDecodedOperand *o) {
  uint64_t offset = encoded_offset(i, o), size = o->size / 8;
  if (is_push(o)) {
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) offset -= size;
  } else {
    offset += (uint64_t)bit_offset(i);
    // POP computes its operand's address with the stack pointer after the pop.
    if (i->in.mnemonic == ZYDIS_MNEMONIC_POP && o->mem.base == ZYDIS_REGISTER_RSP) offset += size;
  }
  return segment_base(i, o->mem.segment) + (i->in.address_width == 32 ? (uint32_t)offset : offset);
}

// Finds the address of the first memory operand. Returns false if it has no such operand.
bool heddle_insn_first_operand(const struct heddle_insn *i, uint64_t *at) {
  for (int k = 0; k < i->in.operand_count; k++) {
    const ZydisDecodedOperand *o = &i->ops[k];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    *at = segment_base(i, o->mem.segment) + encoded_offset(i, o);
    return true;
  }
  return false;
}

// ---- accesses ---------------------------------------------------------------

// Reports whether the instruction accesses those elements of its operand alone that a mask in a vector
// register selects.
bool heddle_is_masked(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
      return true;
    default:
      return false;
  }
}

// Returns the operand in memory whose addresses a vector register gives, of a gathering load, or NULL.
const ZydisDecodedOperand *heddle_gathered_operand(const struct heddle_insn *i) {
  for (int k = 0; k < i->in.operand_count; k++)
    if (i->ops[k].type == ZYDIS_OPERAND_TYPE_MEMORY && i->ops[k].mem.type == ZYDIS_MEMOP_TYPE_VSIB) return &i->ops[k];
  return NULL;
}

// Returns the address of an element of a gathering load with a value of its index.
uint64_t heddle_gathered_address(const struct heddle_insn *i, const ZydisDecodedOperand *o, uint64_t index) {
  uint64_t offset = register_value(i, o->mem.base) + index * o->mem.scale;
  if (o->mem.disp.has_displacement) offset += (uint64_t)o->mem.disp.value;
  return segment_base(i, o->mem.segment) + (i->in.address_width == 32 ? (uint32_t)offset : offset);
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
      return o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || o->mem.type == ZYDIS_MEMOP_TYPE_VSIB || in->meta.category == ZYDIS_CATEGORY_PREFETCH ||
             in->meta.category == ZYDIS_CATEGORY_NOP || in->meta.category == ZYDIS_CATEGORY_WIDENOP;
  }
}

// Reports whether the instruction is a repeated one without iterations left.
static bool is_over(const struct heddle_insn *i) {
  return heddle_is_repeated(&i->in) && !heddle_rep_count(&i->in, i->regs->gpr[1]);
}

// Finds the memory that the instruction is about to access, as far as its operands name it, and
// returns the number of such operands. Those of gathering loads do not, and masks do not matter. A repeated instruction is about to execute one iteration.
size_t heddle_insn_operands(const struct heddle_insn *i, struct heddle_operand out[HEDDLE_OPERANDS]) {
  size_t n = 0;
  if (is_over(i)) return 0;
  for (int k = 0; k < i->in.operand_count && n < HEDDLE_OPERANDS; k++) {
    const ZydisDecodedOperand *o = &i->ops[k];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !o->actions || accesses_nothing(&i->in, o)) continue;
    out[n++] = (struct heddle_operand){address_of(i, o), o->size / 8u, o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE};
  }
  return n;
}

// Reports whether the loads and stores of the instruction differ from its operands.
static bool is_irregular(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_XLAT:
    case ZYDIS_MNEMONIC_SYSCALL:
      return true;
    default:
      return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || in->meta.category == ZYDIS_CATEGORY_INTERRUPT || heddle_is_masked(in);
  }
}

// Finds the loads, then the stores, of the instruction. Returns their number, or -1 if there are
// more than most, or one has more than HEDDLE_ACCESS_BYTES, or they differ from the operands.
int heddle_insn_accesses(const struct heddle_insn *i, struct heddle_insn_access *out, int most) {
  int n = 0;
  if (is_irregular(&i->in) || heddle_gathered_operand(i)) return -1;
  if (is_over(i)) return 0;
  for (uint32_t stores = 0; stores < 2; stores++) {
    ZydisOperandActions mask = stores ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    for (int k = 0; k < i->in.operand_count; k++) {
      const ZydisDecodedOperand *o = &i->ops[k];
      if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !(o->actions & mask) || accesses_nothing(&i->in, o)) continue;
      uint32_t size = o->size / 8u;
      if (n == most || !size || size > HEDDLE_ACCESS_BYTES) return -1;
      out[n++] = (struct heddle_insn_access){.at = address_of(i, o), .size = size, .stores = stores};
    }
  }
  return n;
}

// Reports whether the instruction stores to the bytes of its operand.
static bool stores_its_operand(const ZydisDecodedInstruction *in) {
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_POP:
      return false;
    default:
      return !heddle_is_masked(in);
  }
}

// Returns the only operand in memory that the instruction writes, or NULL.
static const ZydisDecodedOperand *stored_operand(const struct heddle_insn *i) {
  const ZydisDecodedOperand *found = NULL;
  for (int k = 0; k < i->in.operand_count; k++) {
    const ZydisDecodedOperand *o = &i->ops[k];
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
    if (found) return NULL;
    found = o;
  }
  return found;
}

// Finds the memory that the instruction stores to. Returns false if its operands do not name it.
bool heddle_insn_store(const struct heddle_insn *i, uint64_t *at, uint32_t *size) {
  const ZydisDecodedOperand *o = stores_its_operand(&i->in) && !is_over(i) ? stored_operand(i) : NULL;
  if (!o) return false;
  *size = o->size / 8u;
  *at = address_of(i, o);
  return *size && *size <= HEDDLE_ACCESS_BYTES;
}
