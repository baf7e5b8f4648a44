#include "approximate.h"

#include <stdbool.h>

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define QUIET 0x400000u
#define MINIMUM_NORMAL 0x00800000u

static bool is_nan(uint32_t x) { return (x & ~SIGN) > INFINITE; }

// The first 24 bits of the mantissa of a normal number.
static uint64_t mantissa_of(uint32_t x) { return (x & (MINIMUM_NORMAL - 1)) | MINIMUM_NORMAL; }

// Rounds a quotient of 26 bits, the last of which stands for all that follow, to nearest. Exponent is that
// of the result in its encoding.
static uint32_t round_quotient(uint64_t quotient, int exponent) {
  uint64_t kept = quotient >> 2, rest = quotient & 3;
  if (rest > 2 || (rest == 2 && (kept & 1))) kept++;
  return (uint32_t)(((uint64_t)exponent << 23) + kept - MINIMUM_NORMAL);
}

// Denormal operands count as zeros, denormal results are zeros.
uint32_t heddle_reciprocal(uint32_t x) {
  if (is_nan(x)) return x | QUIET;
  if ((x & ~SIGN) < MINIMUM_NORMAL) return (x & SIGN) | INFINITE;
  if ((x & ~SIGN) == INFINITE) return x & SIGN;
  // m * 2^(e - 150) has the reciprocal 2^(150 - e) / m, where m = 2^23 alone gives a power of two.
  uint64_t m = mantissa_of(x);
  int e = (int)(x >> 23 & 0xff), exponent = 253 - e;
  unsigned shift = 49;
  if (m == MINIMUM_NORMAL) {
    exponent++;
    shift = 48;
  }
  if (exponent <= 0) return x & SIGN;
  uint64_t dividend = (uint64_t)1 << shift, quotient = dividend / m;
  return (x & SIGN) | round_quotient(quotient | (dividend % m != 0), exponent);
}

uint32_t heddle_reciprocal_root(uint32_t x) {
  if (is_nan(x)) return x | QUIET;
  if ((x & ~SIGN) < MINIMUM_NORMAL) return (x & SIGN) | INFINITE;
  if (x & SIGN) return SIGN | INFINITE | QUIET;
  if (x == INFINITE) return 0;
  // x = m * 2^(2k), m in [2^23, 2^25)
  uint64_t m = mantissa_of(x);
  int e = (int)(x >> 23) - 150;
  if (e & 1) {
    m <<= 1;
    e--;
  }
  // The largest q with q^2 m <= 2^76: 2^38 / sqrt(m) is in (2^25, 2^27).
  const unsigned __int128 all = (unsigned __int128)1 << 76;
  uint64_t q = 0;
  for (uint64_t bit = (uint64_t)1 << 26; bit; bit >>= 1)
    if ((unsigned __int128)(q | bit) * (q | bit) * m <= all) q |= bit;
  bool inexact = (unsigned __int128)q * q * m != all;
  int exponent = 150 - 38 - e / 2 + 2;
  if (q >> 26) {
    inexact |= q & 1;
    q >>= 1;
    exponent++;
  }
  return round_quotient(q | inexact, exponent);
}
