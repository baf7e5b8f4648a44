#include "wide.h"

void wide_zero(unsigned n, uint64_t *to) {
  for (unsigned i = 0; i < n; i++) to[i] = 0;
}

void wide_copy(unsigned n, uint64_t *to, const uint64_t *from) {
  for (unsigned i = 0; i < n; i++) to[i] = from[i];
}

bool wide_is_zero(unsigned n, const uint64_t *a) {
  for (unsigned i = 0; i < n; i++)
    if (a[i]) return false;
  return true;
}

int wide_compare(unsigned n, const uint64_t *a, const uint64_t *b) {
  for (unsigned i = n; i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

// Returns the carry.
bool wide_add(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  unsigned __int128 sum = 0;
  for (unsigned i = 0; i < n; i++) {
    sum = (sum >> 64) + a[i] + b[i];
    to[i] = (uint64_t)sum;
  }
  return sum >> 64;
}

// Returns the borrow.
bool wide_subtract(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  bool borrow = false;
  for (unsigned i = 0; i < n; i++) {
    unsigned __int128 difference = (unsigned __int128)a[i] - b[i] - borrow;
    to[i] = (uint64_t)difference;
    borrow = difference >> 64;
  }
  return borrow;
}

// Shifts by less than 64n bits.
void wide_shift_left(unsigned n, uint64_t *to, const uint64_t *a, unsigned bits) {
  unsigned words = bits / 64;
  bits %= 64;
  for (unsigned i = n; i-- > 0;) {
    uint64_t high = i >= words ? a[i - words] : 0, low = i > words ? a[i - words - 1] : 0;
    to[i] = bits ? high << bits | low >> (64 - bits) : high;
  }
}

// Returns whether a bit that is set was shifted out.
bool wide_shift_right(unsigned n, uint64_t *to, const uint64_t *a, uint64_t bits) {
  if (bits >= 64 * (uint64_t)n) {
    bool lost = !wide_is_zero(n, a);
    wide_zero(n, to);
    return lost;
  }
  unsigned words = (unsigned)(bits / 64), rest = (unsigned)(bits % 64);
  bool lost = !wide_is_zero(words, a) || (rest && a[words] << (64 - rest));
  for (unsigned i = 0; i < n; i++) {
    uint64_t low = i + words < n ? a[i + words] : 0, high = i + words + 1 < n ? a[i + words + 1] : 0;
    to[i] = rest ? low >> rest | high << (64 - rest) : low;
  }
  return lost;
}

static void multiply_all(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  wide_zero(2 * n, to);
  for (unsigned i = 0; i < n; i++) {
    uint64_t carry = 0;
    for (unsigned k = 0; k < n; k++) {
      unsigned __int128 sum = (unsigned __int128)a[i] * b[k] + to[i + k] + carry;
      to[i + k] = (uint64_t)sum;
      carry = (uint64_t)(sum >> 64);
    }
    to[i + n] = carry;
  }
}

// The upper half of the product.
void wide_multiply(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  uint64_t product[2 * WIDE_MOST];
  multiply_all(n, product, a, b);
  wide_copy(n, to, product + n);
}

void wide_divide_small(unsigned n, uint64_t *a, uint32_t by) {
  uint64_t rest = 0;
  for (unsigned i = n; i-- > 0;) {
    uint64_t high = rest << 32 | a[i] >> 32, low = (high % by) << 32 | (uint32_t)a[i];
    a[i] = (high / by) << 32 | low / by;
    rest = low % by;
  }
}

// The quotient a / b < 1 as a fraction of n words. Returns whether there is a remainder.
bool wide_divide(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  uint64_t rest[WIDE_MOST], quotient[WIDE_MOST] = {0};
  wide_copy(n, rest, a);
  for (unsigned i = 64 * n; i-- > 0;) {
    bool carry = rest[n - 1] >> 63;
    wide_shift_left(n, rest, rest, 1);
    if (!carry && wide_compare(n, rest, b) < 0) continue;
    wide_subtract(n, rest, rest, b);
    quotient[i / 64] |= (uint64_t)1 << i % 64;
  }
  wide_copy(n, to, quotient);
  return !wide_is_zero(n, rest);
}

// Shifts the mantissa, which is not zero, until its top bit is set.
void wide_normalize(unsigned n, struct wide_float *f) {
  unsigned words = 0;
  while (!f->m[n - 1 - words]) words++;
  unsigned bits = 64 * words + (unsigned)__builtin_clzll(f->m[n - 1 - words]);
  wide_shift_left(n, f->m, f->m, bits);
  f->exponent -= bits;
}

void fixed_multiply(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b) {
  uint64_t product[2 * WIDE_MOST];
  multiply_all(n, product, a, b);
  for (unsigned i = 0; i < n; i++) to[i] = product[n + i] << 2 | product[n + i - 1] >> 62;
}

void fixed_one(unsigned n, uint64_t *to) {
  wide_zero(n, to);
  to[n - 1] = (uint64_t)1 << 62;
}

// Truncates a number below 4.
void fixed_from(unsigned n, uint64_t *to, const struct wide_float *f) { wide_shift_right(n, to, f->m, (uint64_t)(2 - f->exponent)); }

void fixed_to(unsigned n, struct wide_float *to, const uint64_t *a) {
  wide_copy(n, to->m, a);
  to->exponent = 2;
  wide_normalize(n, to);
}

void wide_float_multiply(unsigned n, struct wide_float *f, const struct wide_float *by) {
  wide_multiply(n, f->m, f->m, by->m);
  f->exponent += by->exponent;
  wide_normalize(n, f);
}
