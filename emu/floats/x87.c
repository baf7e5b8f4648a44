// The frame of the instructions: operands, special cases, exceptions and the stack, by the tables in
// volume 2 of Intel's manual. Where it leaves something undefined, this is as on AMD's processors.
#include "x87.h"

#include <string.h>

#include "transcendental.h"

enum {
  F2XM1 = 0xf0,
  FYL2X = 0xf1,
  FPTAN = 0xf2,
  FPATAN = 0xf3,
  FXTRACT = 0xf4,
  FPREM1 = 0xf5,
  FPREM = 0xf8,
  FYL2XP1 = 0xf9,
  FSINCOS = 0xfb,
  FSCALE = 0xfd,
  FSIN = 0xfe,
  FCOS = 0xff,
};

#define STATUS_SF 0x40u  // stack fault
#define STATUS_ES 0x80u
#define STATUS_C0 0x100u
#define STATUS_C1 0x200u
#define STATUS_C2 0x400u
#define STATUS_C3 0x4000u
#define STATUS_B 0x8000u

bool heddle_x87_has(uint8_t modrm) {
  switch (modrm) {
    case F2XM1:
    case FYL2X:
    case FPTAN:
    case FPATAN:
    case FXTRACT:
    case FPREM1:
    case FPREM:
    case FYL2XP1:
    case FSINCOS:
    case FSCALE:
    case FSIN:
    case FCOS:
      return true;
    default:
      return false;
  }
}

// ---- the stack ---------------------------------------------------------------------------------

static unsigned top_of(const struct heddle_x87 *s) { return s->fsw >> 11 & 7; }

static bool is_used(const struct heddle_x87 *s, unsigned i) { return s->ftw >> ((top_of(s) + i) & 7) & 1; }

static struct x87_number get(const struct heddle_x87 *s, unsigned i) {
  struct x87_number a;
  memcpy(&a.mantissa, s->st[i], 8);
  memcpy(&a.head, s->st[i] + 8, 2);
  return a;
}

static void put(struct heddle_x87 *s, unsigned i, struct x87_number a) {
  memcpy(s->st[i], &a.mantissa, 8);
  memcpy(s->st[i] + 8, &a.head, 2);
  s->ftw |= (uint8_t)(1u << ((top_of(s) + i) & 7));
}

static void set_top(struct heddle_x87 *s, unsigned top) { s->fsw = (uint16_t)((s->fsw & ~0x3800u) | (top & 7) << 11); }

static void pop(struct heddle_x87 *s) {
  uint8_t first[16];
  s->ftw &= (uint8_t)~(1u << top_of(s));
  memcpy(first, s->st[0], sizeof first);
  memmove(s->st[0], s->st[1], 7 * sizeof s->st[0]);
  memcpy(s->st[7], first, sizeof first);
  set_top(s, top_of(s) + 1);
}

static void push(struct heddle_x87 *s, struct x87_number a) {
  uint8_t last[16];
  memcpy(last, s->st[7], sizeof last);
  memmove(s->st[1], s->st[0], 7 * sizeof s->st[0]);
  memcpy(s->st[0], last, sizeof last);
  set_top(s, top_of(s) - 1);
  put(s, 0, a);
}

// ---- results -------------------------------------------------------------------------------------

struct outcome {
  unsigned flags;      // exceptions, and STATUS_SF
  unsigned conditions; // of STATUS_C0 to C3
  unsigned defined;    // those that the instruction defines; it leaves the others alone
  bool incomplete;     // the operand is beyond the range of the instruction: nothing but C2 changes
  struct x87_number value, second;
};

static void invalid(struct outcome *o) {
  o->flags |= X87_IE;
  o->value = o->second = x87_indefinite();
}

static void rounded(struct outcome *o, struct x87_rounded r) {
  o->value = r.value;
  o->flags |= r.flags;
  if (r.up) o->conditions |= STATUS_C1;
}

static void transcend(struct outcome *o, enum x87_function function, struct x87_number x, struct x87_number y, uint16_t control) {
  struct x87_finite a = x87_unpack(x), b = x87_unpack(y);
  rounded(o, x87_transcend(function, &a, &b, control));
}

// ---- operands -------------------------------------------------------------------------------------

static struct x87_number quiet(struct x87_number a) {
  a.mantissa |= X87_QUIET;
  return a;
}

// The NaN that is the result of an instruction with one or two (SDM volume 1, table 4-7).
static struct x87_number choose_nan(struct x87_number a, struct x87_number b) {
  if (!x87_is_nan(b)) return quiet(a);
  if (!x87_is_nan(a)) return quiet(b);
  if (x87_is_signaling(a) != x87_is_signaling(b)) return x87_is_signaling(a) ? b : a;
  if (a.mantissa != b.mantissa) return quiet(a.mantissa > b.mantissa ? a : b);
  return quiet(x87_negative(a) ? b : a);
}

// Handles the operands that no instruction computes with. Returns whether that was all.
static bool take_operands(struct outcome *o, struct x87_number a, struct x87_number b) {
  if (x87_is_unsupported(a) || x87_is_unsupported(b)) {
    invalid(o);
    return true;
  }
  if (x87_is_nan(a) || x87_is_nan(b)) {
    if (x87_is_signaling(a) || x87_is_signaling(b)) o->flags |= X87_IE;
    o->value = o->second = choose_nan(a, b);
    return true;
  }
  return false;
}

static void note_denormal(struct outcome *o, struct x87_number a) {
  if (x87_is_denormal(a)) o->flags |= X87_DE;
}

// ---- functions of one operand -------------------------------------------------------------------

#define RANGE 63  // FSIN and its kin take numbers below 2^63

static void turn(struct outcome *o, uint8_t op, struct x87_number x, uint16_t control) {
  if (x87_is_infinite(x)) {
    invalid(o);
    return;
  }
  if (x87_exponent(x) >= X87_BIAS + RANGE) {
    o->incomplete = true;
    o->conditions |= STATUS_C2;
    return;
  }
  note_denormal(o, x);
  bool zero = x87_is_zero(x);
  struct x87_number one = x87_one(false);
  if (op == FPTAN) {
    o->second = one;
    if (zero) o->value = x;
    else transcend(o, X87_TANGENT, x, one, control);
    return;
  }
  if (op == FSINCOS) {
    if (zero) {
      o->second = one;
    } else {
      transcend(o, X87_COSINE, x, one, control);
      o->second = o->value;
      o->conditions &= ~STATUS_C1;
    }
  }
  if (zero) o->value = op == FCOS ? one : x;
  else transcend(o, op == FCOS ? X87_COSINE : X87_SINE, x, one, control);
}

static void power(struct outcome *o, struct x87_number x, uint16_t control) {
  note_denormal(o, x);
  if (x87_is_infinite(x)) {
    o->value = x87_negative(x) ? x87_one(true) : x;
  } else if (x87_is_zero(x)) {
    o->value = x;
  } else if (x87_exponent(x) < X87_BIAS) {
    transcend(o, X87_POWER, x, x87_one(false), control);
  } else if (x87_exponent(x) == X87_BIAS && x.mantissa == X87_INTEGER && x87_negative(x)) {
    o->value = x87_make(true, X87_BIAS - 1, X87_INTEGER);  // -1/2
  } else {
    // 1, or beyond it, where the result is undefined.
    o->value = x;
    if (x87_exponent(x) > X87_BIAS || x.mantissa != X87_INTEGER) o->flags |= X87_PE;
  }
}

static void extract(struct outcome *o, struct x87_number x) {
  bool negative = x87_negative(x);
  if (x87_is_infinite(x)) {
    o->second = x;
    o->value = x87_infinite(false);
  } else if (x87_is_zero(x)) {
    o->flags |= X87_ZE;
    o->second = x;
    o->value = x87_infinite(true);
  } else {
    note_denormal(o, x);
    struct x87_finite f = x87_unpack(x);
    o->second = x87_make(negative, X87_BIAS, f.m);
    o->value = x87_zero(false);
    uint64_t distance = (uint64_t)(f.e < 0 ? -f.e : f.e);
    if (!distance) return;
    unsigned shift = (unsigned)__builtin_clzll(distance);
    o->value = x87_make(f.e < 0, X87_BIAS + 63 - shift, distance << shift);
  }
}

// ---- functions of two operands ------------------------------------------------------------------

// The angle of the point (x, y).
static void angle(struct outcome *o, struct x87_number y, struct x87_number x, uint16_t control) {
  note_denormal(o, y);
  note_denormal(o, x);
  uint64_t eighths = 0;
  if (x87_is_infinite(y)) eighths = !x87_is_infinite(x) ? 2 : x87_negative(x) ? 3 : 1;
  else if (x87_is_infinite(x) || x87_is_zero(y)) eighths = x87_negative(x) ? 4 : 0;
  else if (x87_is_zero(x)) eighths = 2;
  else {
    transcend(o, X87_ANGLE, y, x, control);
    return;
  }
  if (eighths) {
    struct x87_finite sign = {.negative = x87_negative(y)}, count = {.m = eighths};
    rounded(o, x87_transcend(X87_EIGHTHS, &sign, &count, control));
  } else {
    o->value = x87_zero(x87_negative(y));
  }
}

// y log2(x)
static void logarithm(struct outcome *o, struct x87_number x, struct x87_number y, uint16_t control) {
  bool one = x87_exponent(x) == X87_BIAS && x.mantissa == X87_INTEGER;
  bool below_one = x87_exponent(x) < X87_BIAS, infinite = x87_is_infinite(x) || x87_is_zero(x);
  bool negative = x87_negative(y) ^ below_one;
  if (x87_negative(x) && !x87_is_zero(x)) {
    invalid(o);
  } else if (x87_is_infinite(y)) {
    if (one) {
      invalid(o);
    } else {
      note_denormal(o, x);
      o->value = x87_infinite(negative);
    }
  } else if (infinite) {
    if (x87_is_zero(y)) {
      invalid(o);
      return;
    }
    if (x87_is_zero(x)) o->flags |= X87_ZE;
    else note_denormal(o, y);
    o->value = x87_infinite(negative);
  } else {
    note_denormal(o, x);
    note_denormal(o, y);
    if (one) o->value = x87_zero(x87_negative(y));
    else if (x87_is_zero(y)) o->value = x87_zero(negative);
    else transcend(o, X87_LOGARITHM, x, y, control);
  }
}

// y log2(x + 1). For x from -1 downwards the result is undefined.
static void logarithm_plus_one(struct outcome *o, struct x87_number x, struct x87_number y, uint16_t control) {
  bool negative = x87_negative(x) ^ x87_negative(y);
  bool beyond = x87_negative(x) && x87_exponent(x) >= X87_BIAS;
  if (x87_is_infinite(x) ? x87_is_zero(y) || x87_negative(x) : x87_is_infinite(y) && x87_is_zero(x)) {
    invalid(o);
    return;
  }
  note_denormal(o, x);
  note_denormal(o, y);
  if (x87_is_infinite(x) || x87_is_infinite(y)) {
    o->value = x87_infinite(negative);
  } else if (x87_is_zero(x) || x87_is_zero(y)) {
    o->value = x87_zero(negative);
  } else if (beyond) {
    o->value = x;
    o->flags |= X87_PE;
  } else {
    transcend(o, X87_LOGARITHM_PLUS_ONE, x, y, control);
  }
}

// A number of which every bit fits.
static void exact(struct outcome *o, bool negative, uint64_t mantissa, int32_t exponent, uint16_t control) {
  if (!mantissa) {
    o->value = x87_zero(negative);
    return;
  }
  struct wide_float f = {.m = {0, 0, mantissa}, .exponent = exponent};
  wide_normalize(3, &f);
  rounded(o, x87_round_exact(negative, &f, control));
}

// x - y q, where q is the integer next to x/y towards zero, or the nearest one. If that has more
// than 64 bits, its first bits alone are subtracted.
static void remainder_of(struct outcome *o, bool nearest, struct x87_number x, struct x87_number y, uint16_t control) {
  if (x87_is_infinite(x) || x87_is_zero(y)) {
    invalid(o);
    return;
  }
  note_denormal(o, x);
  note_denormal(o, y);
  o->defined |= STATUS_C0 | STATUS_C3;
  if (x87_is_zero(x)) {
    o->value = x;
    return;
  }
  struct x87_finite a = x87_unpack(x);
  if (x87_is_infinite(y)) {
    exact(o, a.negative, a.m, a.e + 1, control);
    return;
  }
  struct x87_finite b = x87_unpack(y);
  int32_t distance = a.e - b.e;
  if (distance < -1 || (distance < 0 && !nearest)) {
    exact(o, a.negative, a.m, a.e + 1, control);
    return;
  }
  unsigned shift = (unsigned)distance;
  int32_t e = b.e + 1;
  if (distance >= 64) {
    shift = 32 + (unsigned)distance % 32;
    e += distance - (int32_t)shift;
    o->conditions |= STATUS_C2;
  }
  unsigned __int128 quotient = 0, rest = a.m, divisor = b.m;
  if (distance < 0) {
    divisor <<= 1;
    e--;
  } else {
    quotient = ((unsigned __int128)a.m << shift) / b.m;
    rest = ((unsigned __int128)a.m << shift) % b.m;
  }
  bool negative = a.negative;
  if (nearest && distance < 64) {
    unsigned __int128 other = divisor - rest;
    if (rest > other || (rest == other && (quotient & 1))) {
      rest = other;
      negative = !negative;
      quotient++;
    }
  }
  exact(o, rest ? negative : a.negative, (uint64_t)rest, e, control);
  if (distance >= 64) return;
  if (quotient & 1) o->conditions |= STATUS_C1;
  if (quotient & 2) o->conditions |= STATUS_C3;
  if (quotient & 4) o->conditions |= STATUS_C0;
}

#define SCALE_MOST 0x20000  // takes every number out of the range of exponents

// x 2^y, y rounded towards zero
static void scale(struct outcome *o, struct x87_number x, struct x87_number y, uint16_t control) {
  if (x87_is_infinite(y)) {
    if (x87_negative(y) ? x87_is_infinite(x) : x87_is_zero(x)) {
      invalid(o);
      return;
    }
    note_denormal(o, x);
    o->value = x87_negative(y) ? x87_zero(x87_negative(x)) : x87_infinite(x87_negative(x));
    return;
  }
  note_denormal(o, x);
  note_denormal(o, y);
  if (x87_is_infinite(x) || x87_is_zero(x)) {
    o->value = x;
    return;
  }
  struct x87_finite a = x87_unpack(x);
  int32_t by = 0;
  if (x87_exponent(y) >= X87_BIAS) {
    struct x87_finite b = x87_unpack(y);
    by = b.e > 16 ? SCALE_MOST : (int32_t)(b.m >> (63 - b.e));
    if (b.negative) by = -by;
  }
  exact(o, a.negative, a.m, a.e + 1 + by, control);
}

// ---- execution ------------------------------------------------------------------------------------

static bool has_two_operands(uint8_t op) {
  return op == FYL2X || op == FPATAN || op == FPREM1 || op == FPREM || op == FYL2XP1 || op == FSCALE;
}

static bool pushes(uint8_t op) { return op == FPTAN || op == FXTRACT || op == FSINCOS; }

static bool defines_c2(uint8_t op) {
  return op == FPTAN || op == FSINCOS || op == FSIN || op == FCOS || op == FPREM || op == FPREM1;
}

static bool pops(uint8_t op) { return op == FYL2X || op == FPATAN || op == FYL2XP1; }

static struct outcome compute(const struct heddle_x87 *s, uint8_t op) {
  struct outcome o = {.defined = STATUS_C1 | (defines_c2(op) ? STATUS_C2 : 0)};
  struct x87_number a = get(s, 0), b = has_two_operands(op) ? get(s, 1) : x87_zero(false);
  if (!is_used(s, 0) || (has_two_operands(op) && !is_used(s, 1))) {
    o.flags = STATUS_SF;
    invalid(&o);
    return o;
  }
  if (pushes(op) && is_used(s, 7)) {
    o.flags = STATUS_SF;
    o.conditions = STATUS_C1;
    invalid(&o);
    return o;
  }
  if (take_operands(&o, a, b)) return o;
  switch (op) {
    case F2XM1:
      power(&o, a, s->fcw);
      break;
    case FYL2X:
      logarithm(&o, a, b, s->fcw);
      break;
    case FPATAN:
      angle(&o, b, a, s->fcw);
      break;
    case FXTRACT:
      extract(&o, a);
      break;
    case FPREM1:
    case FPREM:
      remainder_of(&o, op == FPREM1, a, b, s->fcw);
      break;
    case FYL2XP1:
      logarithm_plus_one(&o, a, b, s->fcw);
      break;
    case FSCALE:
      scale(&o, a, b, s->fcw);
      break;
    default:
      turn(&o, op, a, s->fcw);
  }
  return o;
}

bool heddle_x87_execute(struct heddle_x87 *s, uint8_t op) {
  if (s->fsw & ~s->fcw & X87_EXCEPTIONS) return false;
  struct outcome o = compute(s, op);
  unsigned unmasked = o.flags & ~(unsigned)s->fcw & X87_EXCEPTIONS;
  // Exceptions that are found before the computation leave the operands alone.
  bool stopped = unmasked & (X87_IE | X87_DE | X87_ZE);
  if (stopped) {
    o.flags &= X87_IE | X87_DE | X87_ZE | STATUS_SF;
    if (!(o.flags & STATUS_SF)) o.conditions = 0;
    o.defined &= STATUS_C1 | STATUS_C2;
  }
  s->fsw &= (uint16_t)~o.defined;
  s->fsw |= (uint16_t)(o.flags | o.conditions | (unmasked ? STATUS_ES | STATUS_B : 0));
  if (stopped || o.incomplete) return true;
  if (pops(op)) {
    put(s, 1, o.value);
    pop(s);
  } else {
    put(s, 0, o.value);
    if (pushes(op)) push(s, o.second);
  }
  return true;
}
