#include "number.h"

struct x87_finite x87_unpack(struct x87_number a) {
  unsigned exponent = x87_exponent(a) ? x87_exponent(a) : 1;
  unsigned shift = (unsigned)__builtin_clzll(a.mantissa);
  return (struct x87_finite){x87_negative(a), (int32_t)exponent - X87_BIAS - (int32_t)shift, a.mantissa << shift};
}

// The first bits of a mantissa, and the rest compared with zero, half and one unit of their last
// place.
struct split {
  uint64_t kept;
  bool carry;     // kept, rounded up, is 2^64
  int half;       // the rest: below, equal to or above half a unit
  bool nonzero;
  bool decidable; // the rest is not so near to zero, half or one unit that the error matters
};

// Splits a mantissa of n words, shifted right by bits, after its first 64 bits.
static struct split split_mantissa(unsigned n, const struct x87_real *r, uint64_t bits) {
  struct split s = {.decidable = true};
  uint64_t m[WIDE_MOST + 2] = {0};
  unsigned words = n + 2;
  wide_copy(n, m + 2, r->f.m);
  // Of a number below a quarter of the last place only the sign matters.
  bool lost = wide_shift_right(words, m, m, bits < 66 ? bits : 66);
  s.kept = m[words - 1];
  s.carry = s.kept == UINT64_MAX;
  uint64_t half[WIDE_MOST + 1] = {0};
  half[words - 2] = (uint64_t)1 << 63;
  s.nonzero = lost || !wide_is_zero(words - 1, m);
  s.half = wide_compare(words - 1, m, half);
  if (!s.half && lost) s.half = 1;
  if (r->rounds_like || bits > 66) return s;
  uint64_t error[WIDE_MOST + 1] = {0}, low[WIDE_MOST + 1], high[WIDE_MOST + 1];
  unsigned at = 128 + r->error;
  error[at / 64] = (uint64_t)1 << at % 64;
  wide_copy(words - 1, low, m);
  // The error shifts with the mantissa; it is not made smaller here.
  for (unsigned i = 0; i < 2; i++) {
    bool below = wide_subtract(words - 1, high, low, error);
    bool above = wide_add(words - 1, high, low, error);
    if (below || above) s.decidable = false;
    wide_subtract(words - 1, low, low, half);  // and relative to half a unit
  }
  return s;
}

static bool rounds_up(const struct split *s, bool negative, uint16_t control) {
  switch (control & X87_CONTROL_DIRECTION) {
    case X87_NEAREST:
      return s->half > 0 || (!s->half && (s->kept & 1));
    case X87_DOWN:
      return negative && s->nonzero;
    case X87_UP:
      return !negative && s->nonzero;
    default:
      return false;
  }
}

static struct x87_rounded overflow(bool negative, uint16_t control) {
  unsigned direction = control & X87_CONTROL_DIRECTION;
  bool infinite = direction == X87_NEAREST || direction == (negative ? X87_DOWN : X87_UP);
  struct x87_rounded r = {.flags = X87_OE | X87_PE, .up = infinite};
  r.value = infinite ? x87_infinite(negative) : x87_make(negative, X87_MOST - 1, UINT64_MAX);
  return r;
}

#define TRAPPED_BIAS 24576  // SDM volume 1, section 8.5.4

// Rounds to 64 bits. Returns false if the approximation does not decide the result.
bool x87_round(unsigned n, const struct x87_real *r, uint16_t control, struct x87_rounded *out) {
  int64_t exponent = r->f.exponent - 1 + X87_BIAS;
  *out = (struct x87_rounded){0};
  struct split s = split_mantissa(n, r, 0);
  bool up = rounds_up(&s, r->negative, control);
  // Tininess is detected after rounding (SDM volume 1, section 4.9.1.5).
  bool tiny = exponent < 1 && !(exponent == 0 && up && s.carry), traps = tiny && !(control & X87_UE);
  if (traps) {
    exponent += TRAPPED_BIAS;
    out->flags |= X87_UE;
  } else if (exponent < 1) {
    bool decidable = s.decidable;
    s = split_mantissa(n, r, (uint64_t)(1 - exponent));
    s.decidable &= decidable;
    up = rounds_up(&s, r->negative, control);
    exponent = 0;
  }
  if (s.nonzero) out->flags |= X87_PE;
  if (tiny && s.nonzero) out->flags |= X87_UE;
  uint64_t mantissa = s.kept + up;
  if (up && s.carry) {
    mantissa = X87_INTEGER;
    exponent++;
  }
  if (!exponent && mantissa >> 63) exponent = 1;
  out->up = up;
  if (exponent >= X87_MOST && (control & X87_OE)) {
    *out = overflow(r->negative, control);
    return s.decidable;
  }
  if (exponent >= X87_MOST) {
    exponent -= TRAPPED_BIAS;
    out->flags |= X87_OE;
  }
  // Beyond the range of results for traps.
  if (exponent < 0) *out = (struct x87_rounded){x87_zero(r->negative), X87_UE | X87_PE, false};
  else if (exponent >= X87_MOST) *out = (struct x87_rounded){x87_infinite(r->negative), X87_OE | X87_PE, true};
  else out->value = x87_make(r->negative, (unsigned)exponent, mantissa);
  return s.decidable;
}

// Rounds a number of three words.
struct x87_rounded x87_round_exact(bool negative, const struct wide_float *f, uint16_t control) {
  struct x87_real r = {.negative = negative, .rounds_like = true, .f = *f};
  struct x87_rounded out;
  x87_round(3, &r, control, &out);
  return out;
}
