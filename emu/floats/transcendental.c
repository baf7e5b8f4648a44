// The transcendental functions, to any precision up to WIDE_MOST words. Each function
// approximates with n words; transcend widens n until the rounding is decided. That it always is
// follows from the functions: at operands of the x87 format their values are irrational, but for the
// operands that are handled apart, and a value that agrees with a boundary of rounding in 400 further bits is
// not to be expected among 2^160 pairs of operands.
#include "transcendental.h"

#define CONSTANT_WORDS (WIDE_MOST + 2)

static const uint64_t two_over_pi[CONSTANT_WORDS] = {
    0x3991d639835339f4u, 0xe99c7026b45f7e41u, 0xe88235f52ebb4484u, 0xfe1deb1cb129a73eu,
    0x06492eea09d1921cu, 0xb7246e3a424dd2e0u, 0xfe5163abdebbc561u, 0xdb6295993c439041u,
    0xfc2757d1f534ddc0u, 0xa2f9836e4e441529u,
};
static const uint64_t quarter_pi[CONSTANT_WORDS] = {
    0xf44c42e9a637ed6bu, 0xe485b576625e7ec6u, 0x4fe1356d6d51c245u, 0x302b0a6df25f1437u,
    0xef9519b3cd3a431bu, 0x514a08798e3404ddu, 0x020bbea63b139b22u, 0x29024e088a67cc74u,
    0xc4c6628b80dc1cd1u, 0xc90fdaa22168c234u,
};
static const uint64_t ln2[CONSTANT_WORDS] = {
    0x1acbda11317c387eu, 0x3e96ca16224ae8c5u, 0x27573b291169b825u, 0xed2eae35c1382144u,
    0x559552fb4afa1b10u, 0xe7b876206debac98u, 0x8a0d175b8baafa2bu, 0x40f343267298b62du,
    0xc9e3b39803f2f6afu, 0xb17217f7d1cf79abu,
};
static const uint64_t half_log2e[CONSTANT_WORDS] = {
    0xb21b43d579d5a206u, 0x2fe294932617d9d5u, 0xc4bfaf0353df39b3u, 0xea90b9e60c4a909fu,
    0x24d92f75c16be0b3u, 0xde1c43f755176cd6u, 0x8b25166cd1a13247u, 0xeb577aa8dd695a58u,
    0xbe87fed0691d3e88u, 0xb8aa3b295c17f0bbu,
};

// The first n words of a constant.
#define FIRST(constant, n) (&(constant)[CONSTANT_WORDS - (n)])

// Bounds for errors, as powers of two in units of the last place of n words: a series of fewer than
// 200 terms with an error of at most three units each, and divisions and products after it, of
// numbers that are at least 2^-8.
#define ERROR 24u

static void float_of(unsigned n, struct wide_float *to, const struct x87_finite *x) {
  wide_zero(n, to->m);
  to->m[n - 1] = x->m;
  to->exponent = x->e + 1;
}

static void float_constant(unsigned n, struct wide_float *to, const uint64_t constant[CONSTANT_WORDS], int exponent) {
  wide_copy(n, to->m, FIRST(constant, n));
  to->exponent = exponent;
}

// ---- series ---------------------------------------------------------------------------------

// Sums terms in fixed point, from 1 on: each is the one before times x, divided by two numbers.
// The sign alternates if alternating is set.
enum series { SERIES_SINE, SERIES_COSINE, SERIES_TANGENT, SERIES_EXPONENTIAL };

static void sum_series(unsigned n, enum series kind, bool alternating, const uint64_t *x, uint64_t *to) {
  uint64_t power[WIDE_MOST], term[WIDE_MOST];
  fixed_one(n, to);
  fixed_one(n, power);
  for (uint32_t k = 1;; k++) {
    fixed_multiply(n, power, power, x);
    switch (kind) {
      case SERIES_SINE:  // sin(r)/r, x = r^2
        wide_divide_small(n, power, 2 * k * (2 * k + 1));
        break;
      case SERIES_COSINE:
        wide_divide_small(n, power, 2 * k * (2 * k - 1));
        break;
      case SERIES_EXPONENTIAL:  // (e^x - 1)/x
        wide_divide_small(n, power, k + 1);
        break;
      default:
        break;
    }
    wide_copy(n, term, power);
    if (kind == SERIES_TANGENT) wide_divide_small(n, term, 2 * k + 1);  // atan(r)/r or atanh(r)/r
    if (wide_is_zero(n, term)) return;
    if (alternating && (k & 1)) wide_subtract(n, to, to, term);
    else wide_add(n, to, to, term);
  }
}

// ---- sine, cosine, tangent ------------------------------------------------------------------

// A number within a quarter of a turn: the sine of the rest and its cosine.
struct turned {
  unsigned quadrant;
  bool negative;  // the rest
  unsigned error;  // of the sine; that of the cosine is ERROR
  struct wide_float sine, cosine;
};

// The sine and cosine of a number in [0, pi/4].
static void sine_cosine(unsigned n, const struct wide_float *r, struct wide_float *sine, struct wide_float *cosine) {
  uint64_t fixed[WIDE_MOST], square[WIDE_MOST], sum[WIDE_MOST];
  fixed_from(n, fixed, r);
  fixed_multiply(n, square, fixed, fixed);
  struct wide_float ratio;
  sum_series(n, SERIES_SINE, true, square, sum);
  fixed_to(n, &ratio, sum);
  *sine = *r;
  wide_float_multiply(n, sine, &ratio);
  sum_series(n, SERIES_COSINE, true, square, sum);
  fixed_to(n, cosine, sum);
}

// Subtracts a multiple of pi/2 from |x|. Reports whether the rest is known.
static bool reduce(unsigned n, const struct x87_finite *x, struct turned *t, struct wide_float *rest) {
  t->error = ERROR;
  if (x->e < -1) {
    float_of(n, rest, x);
    return true;
  }
  // |x| * 2/pi has its integer part in the top word of n + 2. The first word of the fraction's n + 1 takes up
  // the error of the constant.
  const uint64_t *c = FIRST(two_over_pi, n + 1);
  uint64_t product[WIDE_MOST + 2], carry = 0;
  for (unsigned i = 0; i < n + 1; i++) {
    unsigned __int128 sum = (unsigned __int128)c[i] * x->m + carry;
    product[i] = (uint64_t)sum;
    carry = (uint64_t)(sum >> 64);
  }
  product[n + 1] = carry;
  wide_shift_right(n + 2, product, product, (uint64_t)(63 - x->e));
  t->quadrant = product[n + 1] & 3;
  wide_copy(n, rest->m, product + 1);
  if (rest->m[n - 1] >> 63) {
    uint64_t zero[WIDE_MOST] = {0};
    wide_subtract(n, rest->m, zero, rest->m);
    t->quadrant = (t->quadrant + 1) & 3;
    t->negative = true;
  }
  rest->exponent = 0;
  if (wide_is_zero(n, rest->m)) return false;
  wide_normalize(n, rest);
  t->error += (unsigned)-rest->exponent;
  struct wide_float half_pi;
  float_constant(n, &half_pi, quarter_pi, 1);
  wide_float_multiply(n, rest, &half_pi);
  return t->error < 64 * (n - 1);
}

static bool turn(unsigned n, const struct x87_finite *x, struct turned *t) {
  struct wide_float rest;
  *t = (struct turned){0};
  if (!reduce(n, x, t, &rest)) return false;
  sine_cosine(n, &rest, &t->sine, &t->cosine);
  return true;
}

// The largest exponent of a number whose sine and tangent round as the number does less or more
// a little, and whose cosine as 1 less a little: x^2/2 is less than 2^-67.
#define TINY (-34)

static void just_below(unsigned n, struct x87_real *r) {
  uint64_t unit[WIDE_MOST] = {1};
  wide_subtract(n, r->f.m, r->f.m, unit);
  wide_normalize(n, &r->f);
  r->rounds_like = true;
}

static void just_above(unsigned n, struct x87_real *r) {
  (void)n;
  r->f.m[0] |= 1;
  r->rounds_like = true;
}

static bool sine(unsigned n, const struct x87_finite *x, const struct x87_finite *unused, struct x87_real *out) {
  (void)unused;
  out->negative = x->negative;
  if (x->e <= TINY) {
    float_of(n, &out->f, x);
    just_below(n, out);
    return true;
  }
  struct turned t;
  if (!turn(n, x, &t)) return false;
  bool odd = t.quadrant & 1;
  out->f = odd ? t.cosine : t.sine;
  out->negative ^= (t.quadrant >= 2) ^ (!odd && t.negative);
  out->error = odd ? ERROR : t.error;
  return true;
}

static bool cosine(unsigned n, const struct x87_finite *x, const struct x87_finite *unused, struct x87_real *out) {
  (void)unused;
  out->negative = false;
  if (x->e <= TINY) {
    wide_zero(n, out->f.m);
    out->f.m[n - 1] = X87_INTEGER;
    out->f.exponent = 1;
    just_below(n, out);
    return true;
  }
  struct turned t;
  if (!turn(n, x, &t)) return false;
  bool odd = t.quadrant & 1;
  out->f = odd ? t.sine : t.cosine;
  // cos(x + pi/2) = -sin(x)
  out->negative = odd ? (t.quadrant == 1) ^ t.negative : t.quadrant == 2;
  out->error = odd ? t.error : ERROR;
  return true;
}

// The quotient of mantissas, whose first bits are set. Returns whether there is a remainder.
static bool float_divide(unsigned n, struct wide_float *to, const struct wide_float *a, const struct wide_float *b) {
  uint64_t dividend[WIDE_MOST];
  int64_t exponent = a->exponent - b->exponent;
  bool lost = false, less = wide_compare(n, a->m, b->m) < 0;
  wide_copy(n, dividend, a->m);
  if (!less) {
    lost = wide_shift_right(n, dividend, dividend, 1);
    exponent++;
  }
  bool rest = wide_divide(n, to->m, dividend, b->m);
  to->exponent = exponent;
  wide_normalize(n, to);
  return rest || lost;
}

static bool tangent(unsigned n, const struct x87_finite *x, const struct x87_finite *unused, struct x87_real *out) {
  (void)unused;
  out->negative = x->negative;
  if (x->e <= TINY) {
    float_of(n, &out->f, x);
    just_above(n, out);
    return true;
  }
  struct turned t;
  if (!turn(n, x, &t)) return false;
  bool odd = t.quadrant & 1;
  if (odd) float_divide(n, &out->f, &t.cosine, &t.sine);
  else float_divide(n, &out->f, &t.sine, &t.cosine);
  // tan(x + pi/2) = -1/tan(x)
  out->negative ^= odd ^ t.negative;
  out->error = t.error + 2;
  return true;
}

// ---- arc tangent ------------------------------------------------------------------------------

// Quotients below 2^NEGLIGIBLE: the arc tangent rounds as the quotient does, less a little where the
// quotient is exact. A quotient of two mantissas of 64 bits that is no boundary of rounding differs from all by
// 2^-130, and the arc tangent from the quotient by less than 2^-140.
#define NEGLIGIBLE (-70)

// An angle near atan(t) for t in [2^-6, 1], a multiple of 2^-20: by a formula with an error of
// less than 2^-7.
static uint32_t near_angle(unsigned n, const struct wide_float *t) {
  uint64_t x = t->m[n - 1] >> (44 - t->exponent);  // 20 bits after the point
  const uint64_t one = 1u << 20;
  return (uint32_t)((x * (823550 + 286261 * (one - x) / one)) >> 20);  // t (pi/4 + 0.273 (1 - t))
}

// atan(t) of t in (0, 1].
static void arc_tangent(unsigned n, const struct wide_float *t, struct wide_float *out) {
  uint64_t sum[WIDE_MOST], square[WIDE_MOST], fixed[WIDE_MOST];
  struct wide_float rest = *t, ratio;
  uint64_t angle[WIDE_MOST] = {0};
  bool below = false;
  if (t->exponent > -6) {
    // atan(t) = a + atan((t cos a - sin a) / (cos a + t sin a))
    uint64_t a[WIDE_MOST], b[WIDE_MOST], s[WIDE_MOST], c[WIDE_MOST];
    struct wide_float near, sine, cosine;
    angle[n - 1] = (uint64_t)near_angle(n, t) << 42;
    fixed_to(n, &near, angle);
    sine_cosine(n, &near, &sine, &cosine);
    fixed_from(n, fixed, t);
    fixed_from(n, s, &sine);
    fixed_from(n, c, &cosine);
    fixed_multiply(n, a, fixed, c);
    fixed_multiply(n, b, fixed, s);
    wide_add(n, b, b, c);
    below = wide_compare(n, a, s) < 0;
    if (below) wide_subtract(n, a, s, a);
    else wide_subtract(n, a, a, s);
    wide_divide(n, rest.m, a, b);
    rest.exponent = 0;
    if (wide_is_zero(n, rest.m)) rest.m[0] = 1;
    wide_normalize(n, &rest);
  }
  fixed_from(n, fixed, &rest);
  fixed_multiply(n, square, fixed, fixed);
  sum_series(n, SERIES_TANGENT, true, square, sum);
  fixed_to(n, &ratio, sum);
  wide_float_multiply(n, &rest, &ratio);
  if (t->exponent <= -6) {
    *out = rest;
    return;
  }
  fixed_from(n, fixed, &rest);
  if (below) wide_subtract(n, angle, angle, fixed);
  else wide_add(n, angle, angle, fixed);
  fixed_to(n, out, angle);
}

// The angle of the point (x, y).
static bool angle_of(unsigned n, const struct x87_finite *y, const struct x87_finite *x, struct x87_real *out) {
  struct wide_float a, b, t, z;
  bool swapped = y->e > x->e || (y->e == x->e && y->m > x->m);
  float_of(n, &a, swapped ? x : y);
  float_of(n, &b, swapped ? y : x);
  bool inexact = float_divide(n, &t, &a, &b), alone = !swapped && !x->negative;
  out->negative = y->negative;
  out->error = ERROR;
  if (alone && t.exponent < NEGLIGIBLE) {
    out->f = t;
    out->rounds_like = true;
    if (!inexact) just_below(n, out);
    return true;
  }
  if (t.exponent < NEGLIGIBLE) z = t;
  else arc_tangent(n, &t, &z);
  if (alone) {
    out->f = z;
    return true;
  }
  uint64_t sum[WIDE_MOST], fixed[WIDE_MOST];
  struct wide_float base;
  float_constant(n, &base, quarter_pi, swapped ? 1 : 2);
  fixed_from(n, sum, &base);
  fixed_from(n, fixed, &z);
  if (swapped && x->negative) wide_add(n, sum, sum, fixed);
  else wide_subtract(n, sum, sum, fixed);
  fixed_to(n, &out->f, sum);
  return true;
}

// A multiple of pi/4 with the sign of y.
static bool eighths_of_turn(unsigned n, const struct x87_finite *y, const struct x87_finite *eighths, struct x87_real *out) {
  uint64_t quarter[WIDE_MOST], sum[WIDE_MOST];
  struct wide_float f;
  float_constant(n, &f, quarter_pi, 0);
  fixed_from(n, quarter, &f);
  wide_zero(n, sum);
  for (uint64_t i = 0; i < eighths->m; i++) wide_add(n, sum, sum, quarter);
  fixed_to(n, &out->f, sum);
  out->negative = y->negative;
  out->error = ERROR;
  return true;
}

// ---- exponential and logarithms -----------------------------------------------------------------

// 2^x - 1 of x in (-1, 1).
static bool power_less_one(unsigned n, const struct x87_finite *x, const struct x87_finite *unused, struct x87_real *out) {
  (void)unused;
  uint64_t fixed[WIDE_MOST], sum[WIDE_MOST];
  struct wide_float ratio, factor;
  float_of(n, &out->f, x);
  float_constant(n, &factor, ln2, 0);
  wide_float_multiply(n, &out->f, &factor);
  fixed_from(n, fixed, &out->f);
  sum_series(n, SERIES_EXPONENTIAL, x->negative, fixed, sum);
  fixed_to(n, &ratio, sum);
  wide_float_multiply(n, &out->f, &ratio);
  out->negative = x->negative;
  out->error = ERROR;
  return true;
}

// 2 log2(e) atanh(u), of u in (0, 0.2).
static void logarithm_of_ratio(unsigned n, const struct wide_float *u, struct wide_float *out) {
  uint64_t fixed[WIDE_MOST], sum[WIDE_MOST];
  struct wide_float ratio, factor;
  fixed_from(n, fixed, u);
  fixed_multiply(n, fixed, fixed, fixed);
  sum_series(n, SERIES_TANGENT, false, fixed, sum);
  fixed_to(n, &ratio, sum);
  float_constant(n, &factor, half_log2e, 2);
  *out = *u;
  wide_float_multiply(n, out, &ratio);
  wide_float_multiply(n, out, &factor);
}

#define ROOT_OF_TWO 0xb504f333f9de6484u

// y times log2 of v * 2^k, where v, of n words, is in [1, 2), and its last bit is 0.
static bool multiple_of_logarithm(unsigned n, const uint64_t *v, int32_t k, const struct x87_finite *y,
                                  struct x87_real *out) {
  uint64_t half[WIDE_MOST] = {0}, one[WIDE_MOST] = {0}, zero[WIDE_MOST] = {0};
  struct wide_float a = {.exponent = 0}, b = {.exponent = 0}, u, log;
  bool below = v[n - 1] > ROOT_OF_TWO;
  one[n - 1] = X87_INTEGER;
  half[n - 1] = X87_INTEGER >> 1;
  struct wide_float factor;
  float_of(n, &factor, y);
  // u = (v - 1)/(v + 1), or, with v/2 in the place of v, (2 - v)/(2 + v) and a negative logarithm.
  if (below) {
    k++;
    wide_subtract(n, a.m, zero, v);
    wide_shift_right(n, b.m, v, 1);
    wide_add(n, b.m, b.m, one);
    wide_shift_right(n, a.m, a.m, 1);
  } else {
    wide_subtract(n, a.m, v, one);
    wide_shift_right(n, a.m, a.m, 1);
    wide_shift_right(n, b.m, v, 1);
    wide_add(n, b.m, b.m, half);
  }
  out->negative = y->negative;
  out->error = ERROR;
  bool power = wide_is_zero(n, a.m);
  if (power) {
    // A power of two: the product is exact.
    out->negative ^= k < 0;
    out->rounds_like = true;
    wide_zero(n, log.m);
    log.m[n - 1] = (uint64_t)(k < 0 ? -k : k);
    log.exponent = 64;
    wide_normalize(n, &log);
  } else {
    wide_normalize(n, &a);
    wide_normalize(n, &b);
    float_divide(n, &u, &a, &b);
    logarithm_of_ratio(n, &u, &log);
  }
  if (!power && !k) out->negative ^= below;
  if (!power && k) {
    // Fixed point with 16 bits before the point.
    uint64_t sum[WIDE_MOST] = {0}, part[WIDE_MOST];
    out->error += 20;
    sum[n - 1] = (uint64_t)(k < 0 ? -k : k) << 48;
    wide_shift_right(n, part, log.m, (uint64_t)(16 - log.exponent));
    if (below ^ (k < 0)) wide_subtract(n, sum, sum, part);
    else wide_add(n, sum, sum, part);
    wide_copy(n, log.m, sum);
    log.exponent = 16;
    wide_normalize(n, &log);
    out->negative ^= k < 0;
  }
  out->f = log;
  wide_float_multiply(n, &out->f, &factor);
  return true;
}

// y log2(x) of a positive x other than 1.
static bool logarithm(unsigned n, const struct x87_finite *x, const struct x87_finite *y, struct x87_real *out) {
  uint64_t v[WIDE_MOST] = {0};
  v[n - 1] = x->m;
  return multiple_of_logarithm(n, v, x->e, y, out);
}

// y log2(1 + x) of x > -1.
static bool logarithm_plus_one(unsigned n, const struct x87_finite *x, const struct x87_finite *y, struct x87_real *out) {
  if (x->e < -2) {
    // u = x / (2 + x)
    struct wide_float a, b, u;
    uint64_t sum[WIDE_MOST] = {0}, fixed[WIDE_MOST];
    float_of(n, &a, x);
    fixed_from(n, fixed, &a);
    sum[n - 1] = X87_INTEGER;
    if (x->negative) wide_subtract(n, sum, sum, fixed);
    else wide_add(n, sum, sum, fixed);
    fixed_to(n, &b, sum);
    float_divide(n, &u, &a, &b);
    logarithm_of_ratio(n, &u, &out->f);
    struct wide_float factor;
    float_of(n, &factor, y);
    wide_float_multiply(n, &out->f, &factor);
    out->negative = x->negative ^ y->negative;
    out->error = ERROR;
    return true;
  }
  if (x->e > 64) return logarithm(n, x, y, out);
  // 1 + x has at most 66 bits before the point, and 65 after it.
  struct wide_float f = {.exponent = 67};
  uint64_t one[WIDE_MOST] = {0};
  f.m[n - 1] = x->m;
  wide_shift_right(n, f.m, f.m, (uint64_t)(66 - x->e));
  one[n - 2] = (uint64_t)1 << 61;
  if (x->negative) wide_subtract(n, f.m, one, f.m);
  else wide_add(n, f.m, one, f.m);
  wide_normalize(n, &f);
  return multiple_of_logarithm(n, f.m, (int32_t)f.exponent - 1, y, out);
}

// ---- rounding -------------------------------------------------------------------------------------

// Computes a function with n words. Returns false if that does not decide the result.
bool x87_transcend_with(unsigned n, enum x87_function function, const struct x87_finite *x, const struct x87_finite *y,
                        uint16_t control, struct x87_rounded *out) {
  static bool (*const functions[])(unsigned, const struct x87_finite *, const struct x87_finite *, struct x87_real *) = {
      [X87_SINE] = sine,
      [X87_COSINE] = cosine,
      [X87_TANGENT] = tangent,
      [X87_ANGLE] = angle_of,
      [X87_EIGHTHS] = eighths_of_turn,
      [X87_POWER] = power_less_one,
      [X87_LOGARITHM] = logarithm,
      [X87_LOGARITHM_PLUS_ONE] = logarithm_plus_one,
  };
  struct x87_real r = {0};
  *out = (struct x87_rounded){0};
  return functions[function](n, x, y, &r) && x87_round(n, &r, control, out);
}

struct x87_rounded x87_transcend(enum x87_function function, const struct x87_finite *x, const struct x87_finite *y,
                                 uint16_t control) {
  static const unsigned widths[] = {3, 5, WIDE_MOST};
  struct x87_rounded out;
  for (unsigned i = 0; i < sizeof widths / sizeof widths[0]; i++)
    if (x87_transcend_with(widths[i], function, x, y, control, &out)) break;
  return out;
}
