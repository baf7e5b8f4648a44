// String instructions.
#include "general.h"

#include "engine.h"

static uint64_t *gpr(struct direct_engine *e) { return e->context->gpr; }

// The operation, apart from its width.
enum { MOVES, STORES, LOADS, COMPARES, SCANS };

static int operation_of(const struct direct_insn *in) {
  switch (in->opcode & 0xfe) {
    case 0xa4:
      return MOVES;
    case 0xaa:
      return STORES;
    case 0xac:
      return LOADS;
    case 0xa6:
      return COMPARES;
    default:
      return SCANS;
  }
}

static uint64_t truncate(const struct direct_insn *in, uint64_t address) { return in->address == 4 ? (uint32_t)address : address; }

// The address of the source, at RSI, and of the destination, at RDI.
static uint64_t source(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t base = in->memory.segment == SEGMENT_FS ? e->context->fs_base : in->memory.segment == SEGMENT_GS ? e->context->gs_base : 0;
  return base + truncate(in, gpr(e)[RSI]);
}

static uint64_t destination(struct direct_engine *e, const struct direct_insn *in) { return truncate(in, gpr(e)[RDI]); }

static void advance(struct direct_engine *e, const struct direct_insn *in, unsigned r) {
  int64_t step = e->flags & FLAG_DF ? -(int64_t)in->width : in->width;
  gpr(e)[r] = truncate(in, gpr(e)[r] + (uint64_t)step);
}

static bool load(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t *value) {
  *value = 0;
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, in->width) && direct_read(e, va, value, in->width);
}

static bool store(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t value) {
  e->vector = UINT32_MAX;
  return direct_check_address(e, in, va, in->width) && direct_write(e, va, &value, in->width);
}

// Sets the flags as CMP of two values does.
static void compare(struct direct_engine *e, uint64_t a, uint64_t b, unsigned width) {
  unsigned bits = 8 * width;
  uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, sign = (uint64_t)1 << (bits - 1);
  a &= mask;
  b &= mask;
  uint64_t r = (a - b) & mask, flags = 0;
  if (a < b) flags |= FLAG_CF;
  if (!(__builtin_popcountll(r & 0xff) & 1)) flags |= FLAG_PF;
  if ((a ^ b ^ r) & 0x10) flags |= FLAG_AF;
  if (!r) flags |= FLAG_ZF;
  if (r & sign) flags |= FLAG_SF;
  if ((a ^ b) & (a ^ r) & sign) flags |= FLAG_OF;
  set_flags_of(e->context, flags);
}

static enum direct_stop failed(struct direct_engine *e) { return e->vector == UINT32_MAX ? direct_fault(e) : STOP_EXCEPTION; }

// One execution without a prefix.
static enum direct_stop once(struct direct_engine *e, const struct direct_insn *in) {
  uint64_t a, b, mask = in->width == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * in->width) - 1;
  switch (operation_of(in)) {
    case MOVES:
      if (!load(e, in, source(e, in), &a) || !store(e, in, destination(e, in), a)) return failed(e);
      break;
    case STORES:
      if (!store(e, in, destination(e, in), gpr(e)[RAX])) return failed(e);
      advance(e, in, RDI);
      return STOP_NONE;
    case LOADS:
      if (!load(e, in, source(e, in), &a)) return failed(e);
      gpr(e)[RAX] = in->width >= 4 ? a : (gpr(e)[RAX] & ~mask) | a;
      advance(e, in, RSI);
      return STOP_NONE;
    case COMPARES:
      if (!load(e, in, destination(e, in), &b) || !load(e, in, source(e, in), &a)) return failed(e);
      compare(e, a, b, in->width);
      break;
    default:
      if (!load(e, in, destination(e, in), &b)) return failed(e);
      compare(e, gpr(e)[RAX], b, in->width);
      advance(e, in, RDI);
      return STOP_NONE;
  }
  advance(e, in, RSI);
  advance(e, in, RDI);
  return STOP_NONE;
}

// Executes a string instruction; of a repeated one, an iteration, or its end when no iterations
// are left. The PC stays at the instruction after the last iteration, too.
enum direct_stop direct_string(struct direct_engine *e, const struct direct_insn *in) {
  struct direct_context *c = e->context;
  c->rip = in->pc + in->length;
  bool repeated = in->what & INSN_REPEATED;
  if (repeated && !truncate(in, gpr(e)[RCX])) return STOP_NONE;
  enum direct_stop why = once(e, in);
  if (why) {
    c->rip = in->pc;
    return why;
  }
  if (!repeated) return why;
  gpr(e)[RCX] = truncate(in, gpr(e)[RCX] - 1);
  int operation = operation_of(in);
  bool equal = flags_of(c) & FLAG_ZF, while_equal = !(in->what & INSN_REPNE);
  bool over = (operation == COMPARES || operation == SCANS) && equal != while_equal;
  if (!over) c->rip = in->pc;
  return STOP_NONE;
}
