// Arithmetic on numbers of several words, least significant word first, and on fixed-point numbers.
// The number of words, n, is a parameter of each function.
#ifndef HEDDLE_FLOATS_WIDE_H
#define HEDDLE_FLOATS_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#define WIDE_MOST 8u

// A positive number: mantissa * 2^(exponent - 64n), where the top bit of the mantissa is set.
struct wide_float {
  uint64_t m[WIDE_MOST];
  int64_t exponent;
};

void wide_zero(unsigned n, uint64_t *to);
void wide_copy(unsigned n, uint64_t *to, const uint64_t *from);
bool wide_is_zero(unsigned n, const uint64_t *a);
int wide_compare(unsigned n, const uint64_t *a, const uint64_t *b);
bool wide_add(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b);
bool wide_subtract(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b);
void wide_shift_left(unsigned n, uint64_t *to, const uint64_t *a, unsigned bits);
bool wide_shift_right(unsigned n, uint64_t *to, const uint64_t *a, uint64_t bits);
void wide_multiply(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b);
void wide_divide_small(unsigned n, uint64_t *a, uint32_t by);
bool wide_divide(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b);
void wide_normalize(unsigned n, struct wide_float *f);

// Fixed-point numbers have 64n - 2 bits after the point.
void fixed_multiply(unsigned n, uint64_t *to, const uint64_t *a, const uint64_t *b);
void fixed_one(unsigned n, uint64_t *to);
void fixed_from(unsigned n, uint64_t *to, const struct wide_float *f);
void fixed_to(unsigned n, struct wide_float *to, const uint64_t *a);
void wide_float_multiply(unsigned n, struct wide_float *f, const struct wide_float *by);

#endif
