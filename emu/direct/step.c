// Executing one instruction.
#include "general.h"

#include "engine.h"

static uint64_t *gpr(struct direct_engine *e) { return e->context->gpr; }

enum direct_stop direct_raise(struct direct_engine *e, uint32_t vector) {
  e->vector = vector;
  return STOP_EXCEPTION;
}

// The stop for an access that direct_locate has refused.
enum direct_stop direct_fault(struct direct_engine *e) {
  return e->walk == HEDDLE_WALK_NO_MEMORY ? STOP_NO_MEMORY : STOP_FAULT;
}

// ---- addresses ------------------------------------------------------------------------

// The address of the operand in memory, or one at a distance from it.
static uint64_t address_from(struct direct_engine *e, const struct direct_insn *in, int64_t distance) {
  const struct direct_operand *m = &in->memory;
  uint64_t at = (uint64_t)(m->disp + distance);
  if (m->base != NO_REGISTER) at += gpr(e)[m->base];
  if (m->index != NO_REGISTER) at += gpr(e)[m->index] * m->scale;
  if (m->narrow) at = (uint32_t)at;
  if (m->segment == SEGMENT_FS) at += e->context->fs_base;
  if (m->segment == SEGMENT_GS) at += e->context->gs_base;
  return at;
}

uint64_t direct_address_of(struct direct_engine *e, const struct direct_insn *in) { return address_from(e, in, 0); }

// Reports whether [va, va+n) can be an operand of the instruction as far as the address alone
// decides; otherwise vector is the exception.
bool direct_check_address(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t n) {
  if ((in->what & INSN_ALIGNED) && (va & (n - 1))) {
    e->vector = VECTOR_PROTECTION;
    return false;
  }
  if (!is_canonical(va) || !is_canonical(va + n - 1)) {
    e->vector = in->what & INSN_STACK ? VECTOR_STACK : VECTOR_PROTECTION;
    return false;
  }
  if ((e->flags & FLAG_AC) && n <= 8 && (n & (n - 1)) == 0 && (va & (n - 1))) {
    e->vector = VECTOR_ALIGNMENT;
    return false;
  }
  return true;
}

// ---- instructions that the host executes ------------------------------------------------

// How far from its operand's address BT and the like of a register have their word; keeps the
// number of the bit within the word for the unit's code.
static int64_t bit_offset(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t value = gpr(e)[insn_reg(in)];
  unsigned bits = in->width * 8u;
  int64_t offset = bits == 16 ? (int16_t)value : bits == 32 ? (int32_t)value : (int64_t)value;
  e->context->spare = (uint64_t)offset & (bits - 1);
  return (offset >> (bits == 16 ? 4 : bits == 32 ? 5 : 6)) * (int64_t)in->width;
}

// An operand in memory while its instruction is executed.
struct access {
  uint64_t va;
  uint32_t n, first;  // first: bytes of it in the first page, if it lies in two
};

static bool locate_all(struct direct_engine *e, const struct access *a, enum heddle_access access) {
  if (!direct_locate(e, a->va, access)) return false;
  return !a->first || direct_locate(e, a->va + a->first, access);
}

// Finds the operand's bytes. One that lies in two pages is copied.
static bool prepare(struct direct_engine *e, const struct direct_insn *in, struct access *a) {
  a->n = in->size;
  a->first = offset_of(a->va) + a->n > HEDDLE_PAGE_SIZE ? (uint32_t)(HEDDLE_PAGE_SIZE - offset_of(a->va)) : 0;
  // An operand that is read and written is looked up for writing first.
  if ((in->what & INSN_STORES) && !locate_all(e, a, HEDDLE_WRITE)) return false;
  if ((in->what & INSN_LOADS) && !locate_all(e, a, HEDDLE_READ)) return false;
  if (!a->first) {
    e->context->pointer = direct_locate(e, a->va, in->what & INSN_STORES ? HEDDLE_WRITE : HEDDLE_READ);
    return true;
  }
  uint8_t *copy = e->context->pointer = e->context->bounce + (a->va & 63);
  if (in->what & INSN_LOADS) return direct_read(e, a->va, copy, a->n);
  // A store that is not made, because of an x87 exception that is not masked, leaves what is there.
  copy_bytes(copy, direct_locate(e, a->va, HEDDLE_WRITE), a->first);
  copy_bytes(copy + a->first, direct_locate(e, a->va + a->first, HEDDLE_WRITE), a->n - a->first);
  return true;
}

// Makes the flags that the manual leaves undefined 0.
static void define_flags(struct direct_engine *e, const struct direct_insn *in, unsigned count) {
  uint64_t flags = flags_of(e->context), undefined = in->flags_undefined;
  if (in->what & INSN_FLAGS_BY_COUNT) {
    count &= in->width == 8 ? 63 : 31;
    if (!count) undefined = 0;
    if (count == 1) undefined &= ~(uint64_t)FLAG_OF;
    bool left_or_right = in->mnemonic == ZYDIS_MNEMONIC_SHL || in->mnemonic == ZYDIS_MNEMONIC_SHR;
    if (left_or_right && count >= 8u * in->width) undefined |= FLAG_CF;
  }
  set_flags_of(e->context, flags & ~undefined);
}

static bool scans_bits(const struct direct_insn *in) {
  return in->mnemonic == ZYDIS_MNEMONIC_BSF || in->mnemonic == ZYDIS_MNEMONIC_BSR;
}

static enum direct_stop execute_native(struct direct_engine *e, const struct direct_unit *u) {
  const struct direct_insn *in = &u->in;
  struct direct_context *c = e->context;
  struct access a = {0};
  if (in->what & INSN_MEMORY) {
    a.va = address_from(e, in, in->what & INSN_BIT_STRING ? bit_offset(e, in) : 0);
    if (!direct_check_address(e, in, a.va, in->size)) return STOP_EXCEPTION;
    if (!prepare(e, in, &a)) return direct_fault(e);
  }
  bool whole = (in->what & INSN_MEMORY) && !a.first && (e->log.what & LOG_UNITS);
  if (whole && (in->what & INSN_LOADS)) direct_log_access(e, a.va, c->pointer, a.n, false);
  if (in->what & INSN_FLOAT) direct_float_load(e);
  uint64_t destination = gpr(e)[insn_reg(in)];
  unsigned count = (unsigned)gpr(e)[RCX];
  c->target = u->code;
  uint8_t old[64];
  bool buffers = e->buffers && (in->what & INSN_STORES) && !a.first;
  if (buffers) copy_bytes(old, c->pointer, a.n);
  if (e->code_changed) {
    e->code_changed = false;
    direct_serialize();
  }
  e->failed_returns = 0;
  if (direct_enter_unit()) return direct_raise(e, e->host_vector);
  if (a.first && (in->what & INSN_STORES)) direct_write(e, a.va, c->pointer, a.n);
  if (buffers) direct_buffer_store(e, in, a.va, old, a.n);
  if (whole && (in->what & INSN_STORES)) direct_log_access(e, a.va, c->pointer, a.n, true);
  if (in->flags_undefined) define_flags(e, in, count);
  // Of zero, processors leave different things in the destination.
  if (scans_bits(in) && (flags_of(c) & FLAG_ZF)) gpr(e)[insn_reg(in)] = destination;
  c->rip = in->pc + in->length;
  return STOP_NONE;
}

// ---- the stack ----------------------------------------------------------------------------

static bool check_stack(struct direct_engine *e, uint64_t va, unsigned width) {
  if (!is_canonical(va) || !is_canonical(va + width - 1)) {
    e->vector = VECTOR_STACK;
    return false;
  }
  if ((e->flags & FLAG_AC) && (va & (width - 1))) {
    e->vector = VECTOR_ALIGNMENT;
    return false;
  }
  return true;
}

#define NO_VECTOR UINT32_MAX

// The stop for an access to the stack that failed: vector is NO_VECTOR for a page fault.
static enum direct_stop failed(struct direct_engine *e) {
  return e->vector == NO_VECTOR ? direct_fault(e) : STOP_EXCEPTION;
}

bool direct_push(struct direct_engine *e, uint64_t value, unsigned width) {
  uint64_t at = gpr(e)[RSP] - width;
  e->vector = NO_VECTOR;
  if (!check_stack(e, at, width) || !direct_write(e, at, &value, width)) return false;
  gpr(e)[RSP] = at;
  return true;
}

bool direct_pop(struct direct_engine *e, uint64_t *value, unsigned width) {
  uint64_t at = gpr(e)[RSP];
  e->vector = NO_VECTOR;
  *value = 0;
  if (!check_stack(e, at, width) || !direct_read(e, at, value, width)) return false;
  gpr(e)[RSP] = at + width;
  return true;
}

// The bytes that the instruction pushes or pops, or that its target has.
static unsigned width_of(const struct direct_insn *in) { return in->operand16 && !in->w ? 2 : 8; }

static void set_register(struct direct_engine *e, unsigned r, uint64_t value, unsigned width) {
  if (width == 2) gpr(e)[r] = (gpr(e)[r] & ~(uint64_t)0xffff) | (uint16_t)value;
  else gpr(e)[r] = width == 4 ? (uint32_t)value : value;
}

// Reads the operand of a branch or a push: a register or memory.
static bool read_operand(struct direct_engine *e, const struct direct_insn *in, uint64_t *value, unsigned width) {
  e->vector = NO_VECTOR;
  *value = 0;
  if (insn_is_register(in)) {
    *value = width == 2 ? (uint16_t)gpr(e)[insn_rm(in)] : gpr(e)[insn_rm(in)];
    return true;
  }
  uint64_t va = direct_address_of(e, in);
  return direct_check_address(e, in, va, width) && direct_read(e, va, value, width);
}

static enum direct_stop push(struct direct_engine *e, const struct direct_insn *in) {
  unsigned width = width_of(in);
  uint64_t value;
  if (in->has_modrm) {
    if (!read_operand(e, in, &value, width)) return failed(e);
  } else if (in->opcode >= 0x50 && in->opcode < 0x58) {
    value = gpr(e)[(in->opcode & 7u) | (unsigned)in->b << 3];
  } else {
    value = (uint64_t)in->imm;
  }
  return direct_push(e, value, width) ? STOP_NONE : failed(e);
}

static enum direct_stop pop(struct direct_engine *e, const struct direct_insn *in) {
  unsigned width = width_of(in);
  uint64_t value, before = gpr(e)[RSP];
  if (!direct_pop(e, &value, width)) return failed(e);
  if (!in->has_modrm || insn_is_register(in)) {
    set_register(e, in->has_modrm ? insn_rm(in) : (in->opcode & 7u) | (unsigned)in->b << 3, value, width);
    return STOP_NONE;
  }
  // The address is computed with the stack pointer after the load.
  uint64_t va = direct_address_of(e, in);
  e->vector = NO_VECTOR;
  if (direct_check_address(e, in, va, width) && direct_write(e, va, &value, width)) return STOP_NONE;
  gpr(e)[RSP] = before;
  return failed(e);
}

static enum direct_stop leave(struct direct_engine *e, const struct direct_insn *in) {
  unsigned width = width_of(in);
  uint64_t value, before = gpr(e)[RSP];
  gpr(e)[RSP] = gpr(e)[RBP];
  if (!direct_pop(e, &value, width)) {
    gpr(e)[RSP] = before;
    return failed(e);
  }
  set_register(e, RBP, value, width);
  return STOP_NONE;
}

// ---- branches -------------------------------------------------------------------------------

// Reports whether a condition, as Jcc encodes it, holds.
static bool holds(uint64_t flags, unsigned condition) {
  bool c = flags & FLAG_CF, z = flags & FLAG_ZF, s = flags & FLAG_SF, o = flags & FLAG_OF, p = flags & FLAG_PF;
  bool result = false;
  switch (condition >> 1) {
    case 0:
      result = o;
      break;
    case 1:
      result = c;
      break;
    case 2:
      result = z;
      break;
    case 3:
      result = c || z;
      break;
    case 4:
      result = s;
      break;
    case 5:
      result = p;
      break;
    case 6:
      result = s != o;
      break;
    default:
      result = z || s != o;
  }
  return result != (condition & 1);
}

// LOOP, LOOPE, LOOPNE, and the jumps if RCX or ECX is zero.
static bool loops(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t count = gpr(e)[RCX];
  if (in->address == 4) count = (uint32_t)count;
  if (in->opcode == 0xe3) return count == 0;
  count--;
  if (in->address == 4) count = (uint32_t)count;
  gpr(e)[RCX] = count;
  bool zero = flags_of(e->context) & FLAG_ZF;
  return count && (in->opcode == 0xe2 || zero == (in->opcode == 0xe1));
}

// Goes to an address that was not known before.
static enum direct_stop go_to(struct direct_engine *e, uint64_t target) {
  if (!is_canonical(target)) return direct_raise(e, VECTOR_PROTECTION);
  e->context->rip = target;
  return STOP_NONE;
}

static enum direct_stop call(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t target = in->target;
  unsigned width = width_of(in);
  if (in->class == CLASS_CALL_TO && !read_operand(e, in, &target, width)) return failed(e);
  if (!is_canonical(target)) {
    // The stack comes first.
    e->vector = NO_VECTOR;
    bool fits = check_stack(e, gpr(e)[RSP] - width, width) && direct_writable(e, gpr(e)[RSP] - width, width);
    return fits ? direct_raise(e, VECTOR_PROTECTION) : failed(e);
  }
  if (!direct_push(e, in->pc + in->length, width)) return failed(e);
  e->context->rip = target;
  return STOP_NONE;
}

static enum direct_stop ret(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t target, before = gpr(e)[RSP];
  if (!direct_pop(e, &target, width_of(in))) return failed(e);
  gpr(e)[RSP] += (uint16_t)in->imm;
  if (is_canonical(target)) {
    e->context->rip = target;
    return STOP_NONE;
  }
  gpr(e)[RSP] = before;
  return direct_raise(e, VECTOR_PROTECTION);
}

// ---- dispatch --------------------------------------------------------------------------------

static uint32_t interrupt_vector(const struct direct_insn *in) {
  if (in->opcode == 0xcc) return VECTOR_BREAKPOINT;
  return in->opcode == 0xf1 ? VECTOR_DEBUG : (uint8_t)in->imm;
}

// Executes the instruction. NONE, SYSCALL and INTERRUPT: it has retired, and the program counter
// is after it. Otherwise it has done nothing.
enum direct_stop direct_step(struct direct_engine *e, struct direct_unit *u) {
  const struct direct_insn *in = &u->in;
  struct direct_context *c = e->context;
  uint64_t next = in->pc + in->length, target;
  enum direct_stop why = STOP_NONE;
  switch ((enum direct_class)in->class) {
    case CLASS_INVALID:
      return direct_raise(e, VECTOR_INVALID_OPCODE);
    case CLASS_PRIVILEGED:
      return direct_raise(e, VECTOR_PROTECTION);
    case CLASS_NATIVE:
      return execute_native(e, u);
    case CLASS_NOTHING:
    case CLASS_PREFETCH:
    case CLASS_PAUSE:
      break;
    case CLASS_JUMP:
      c->rip = in->target;
      return STOP_NONE;
    case CLASS_JUMP_IF:
      c->rip = holds(flags_of(c), in->opcode & 15u) ? in->target : next;
      return STOP_NONE;
    case CLASS_LOOP:
      c->rip = loops(e, in) ? in->target : next;
      return STOP_NONE;
    case CLASS_JUMP_TO:
      return read_operand(e, in, &target, width_of(in)) ? go_to(e, target) : failed(e);
    case CLASS_CALL:
    case CLASS_CALL_TO:
      return call(e, in);
    case CLASS_RETURN:
      return ret(e, in);
    case CLASS_PUSH:
      why = push(e, in);
      break;
    case CLASS_POP:
      why = pop(e, in);
      break;
    case CLASS_LEAVE:
      why = leave(e, in);
      break;
    case CLASS_STRING:
      return direct_string(e, in);
    case CLASS_SYSCALL:
      c->rip = next;
      return STOP_SYSCALL;
    case CLASS_INTERRUPT:
      e->vector = interrupt_vector(in);
      c->rip = next;
      return STOP_INTERRUPT;
    case CLASS_EMULATED:
      return direct_emulate(e, in);
  }
  if (!why) c->rip = next;
  return why;
}
