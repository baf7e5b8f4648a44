// Numbers of the x87 format, and their rounding.
#ifndef HEDDLE_FLOATS_NUMBER_H
#define HEDDLE_FLOATS_NUMBER_H

#include "wide.h"

// The bits of exceptions in the x87 status and control words (SDM volume 1, section 8.1.3).
#define X87_IE 0x01u
#define X87_DE 0x02u
#define X87_ZE 0x04u
#define X87_OE 0x08u
#define X87_UE 0x10u
#define X87_PE 0x20u
#define X87_EXCEPTIONS 0x3fu

// The x87 format: the sign is bit 15 of head, the exponent the rest.
struct x87_number {
  uint64_t mantissa;
  uint16_t head;
};

#define X87_SIGN 0x8000u
#define X87_MOST 0x7fffu  // the exponent of infinities and NaNs
#define X87_BIAS 16383
#define X87_INTEGER ((uint64_t)1 << 63)  // the first bit of the mantissa
#define X87_QUIET ((uint64_t)1 << 62)

static inline unsigned x87_exponent(struct x87_number a) { return a.head & X87_MOST; }
static inline bool x87_negative(struct x87_number a) { return a.head & X87_SIGN; }
static inline bool x87_is_zero(struct x87_number a) { return !x87_exponent(a) && !a.mantissa; }
static inline bool x87_is_denormal(struct x87_number a) { return !x87_exponent(a) && a.mantissa; }
static inline bool x87_is_unsupported(struct x87_number a) { return x87_exponent(a) && !(a.mantissa >> 63); }
static inline bool x87_is_infinite(struct x87_number a) { return x87_exponent(a) == X87_MOST && a.mantissa == X87_INTEGER; }
static inline bool x87_is_nan(struct x87_number a) { return x87_exponent(a) == X87_MOST && a.mantissa > X87_INTEGER; }
static inline bool x87_is_signaling(struct x87_number a) { return x87_is_nan(a) && !(a.mantissa & X87_QUIET); }

static inline struct x87_number x87_make(bool negative, unsigned exponent, uint64_t mantissa) {
  return (struct x87_number){mantissa, (uint16_t)((negative ? X87_SIGN : 0) | exponent)};
}

static inline struct x87_number x87_zero(bool negative) { return x87_make(negative, 0, 0); }
static inline struct x87_number x87_infinite(bool negative) { return x87_make(negative, X87_MOST, X87_INTEGER); }
static inline struct x87_number x87_indefinite(void) { return x87_make(true, X87_MOST, X87_INTEGER | X87_QUIET); }
static inline struct x87_number x87_one(bool negative) { return x87_make(negative, X87_BIAS, X87_INTEGER); }

// A finite number other than zero: m * 2^(e - 63), where the top bit of m is set.
struct x87_finite {
  bool negative;
  int32_t e;
  uint64_t m;
};

struct x87_finite x87_unpack(struct x87_number a);

// An approximation of a real number that is not zero.
struct x87_real {
  bool negative;
  // The number rounds as f does, in every direction. Otherwise it differs from f by less than
  // 2^error units of its last place.
  bool rounds_like;
  unsigned error;
  struct wide_float f;
};

// A rounded result.
struct x87_rounded {
  struct x87_number value;
  unsigned flags;  // OE, UE, PE
  bool up;         // away from zero
};

// The bits of the control word that rounding depends on: the direction, and the masks of overflow
// and underflow.
#define X87_CONTROL_DIRECTION 0xc00u
#define X87_NEAREST 0x000u
#define X87_DOWN 0x400u
#define X87_UP 0x800u
#define X87_CHOP 0xc00u

bool x87_round(unsigned n, const struct x87_real *r, uint16_t control, struct x87_rounded *out);
struct x87_rounded x87_round_exact(bool negative, const struct wide_float *f, uint16_t control);

#endif
