// The arithmetic flags that blocks leave to be computed when they are needed.
#include "general.h"

#include "block.h"

static uint64_t cut(uint64_t value, unsigned width) { return width == 8 ? value : value & (((uint64_t)1 << 8 * width) - 1); }

// ZF, SF and PF of a result.
static uint64_t result_flags(uint64_t result, unsigned width) {
  uint64_t flags = 0;
  result = cut(result, width);
  if (!result) flags |= FLAG_ZF;
  if (result >> (8 * width - 1)) flags |= FLAG_SF;
  if (!(__builtin_popcountll(result & 0xff) & 1)) flags |= FLAG_PF;
  return flags;
}

static uint64_t sum_flags(uint64_t a, uint64_t b, unsigned width) {
  uint64_t r = cut(a + b, width), flags = result_flags(r, width);
  a = cut(a, width);
  b = cut(b, width);
  if (r < a) flags |= FLAG_CF;
  if ((a ^ b ^ r) & 0x10) flags |= FLAG_AF;
  if ((~(a ^ b) & (a ^ r)) >> (8 * width - 1) & 1) flags |= FLAG_OF;
  return flags;
}

static uint64_t difference_flags(uint64_t a, uint64_t b, unsigned width) {
  uint64_t r = cut(a - b, width), flags = result_flags(r, width);
  a = cut(a, width);
  b = cut(b, width);
  if (a < b) flags |= FLAG_CF;
  if ((a ^ b ^ r) & 0x10) flags |= FLAG_AF;
  if (((a ^ b) & (a ^ r)) >> (8 * width - 1) & 1) flags |= FLAG_OF;
  return flags;
}

// Shifts by a constant that is not zero. AF, and OF unless the count is 1, are undefined, and CF of
// SHL and SHR from the width on.
static uint64_t shift_flags(unsigned formula, uint64_t value, unsigned count, unsigned width) {
  unsigned bits = 8 * width;
  uint64_t result, flags = 0;
  value = cut(value, width);
  int64_t extended = (int64_t)(value << (64 - bits)) >> (64 - bits);
  if (formula == FORMULA_LEFT) {
    result = count < bits ? cut(value << count, width) : 0;
    if (count < bits && (value >> (bits - count) & 1)) flags |= FLAG_CF;
    if (count == 1 && ((result ^ value) >> (bits - 1) & 1)) flags |= FLAG_OF;
  } else if (formula == FORMULA_RIGHT) {
    result = count < bits ? value >> count : 0;
    if (count < bits && (value >> (count - 1) & 1)) flags |= FLAG_CF;
    if (count == 1 && (value >> (bits - 1) & 1)) flags |= FLAG_OF;
  } else {
    result = (uint64_t)(extended >> (count < bits ? count : bits - 1));
    if (extended >> (count < bits ? count - 1 : bits - 1) & 1) flags |= FLAG_CF;
  }
  return flags | result_flags(result, width);
}

uint64_t direct_formula_flags(unsigned formula, unsigned width, uint64_t first, uint64_t second) {
  switch (formula) {
    case FORMULA_ADD:
      return sum_flags(first - second, second, width);
    case FORMULA_SUBTRACT:
      return difference_flags(first + second, second, width);
    case FORMULA_COMPARE:
      return difference_flags(first, second, width);
    case FORMULA_LOGIC:
      return result_flags(first, width);
    case FORMULA_TEST:
      return result_flags(first & second, width);
    case FORMULA_NEGATE:
      return difference_flags(0, 0 - first, width);
    case FORMULA_EQUAL:
      return FLAG_ZF | FLAG_PF;
    default:
      return shift_flags(formula, first, (unsigned)second, width);
  }
}

// Puts the flags, as a block has left them, into FLAGS.
void direct_settle_flags(struct direct_engine *e) {
  struct direct_context *c = e->context;
  unsigned formula = c->formula & 0xff, width = c->formula >> 8 & 15;
  if (c->formula & FORMULA_CONSTANT) c->second = (uint64_t)(int64_t)((int32_t)c->formula >> 16);
  if (formula == FORMULA_SAVED) c->flags = c->saved_flags;
  else set_flags_of(c, direct_formula_flags(formula, width, c->first, c->second));
}
