#ifndef HEDDLE_FLOATS_TRANSCENDENTAL_H
#define HEDDLE_FLOATS_TRANSCENDENTAL_H

#include "number.h"

enum x87_function {
  X87_SINE,
  X87_COSINE,
  X87_TANGENT,
  X87_ANGLE,               // of the point (second operand, first operand): the operands of FPATAN
  X87_EIGHTHS,             // pi/4 times the mantissa of the second operand, with the sign of the first
  X87_POWER,               // 2^x - 1
  X87_LOGARITHM,           // y log2(x)
  X87_LOGARITHM_PLUS_ONE,  // y log2(1 + x)
};

bool x87_transcend_with(unsigned n, enum x87_function function, const struct x87_finite *x, const struct x87_finite *y,
                        uint16_t control, struct x87_rounded *out);

// Returns the correctly rounded value of a function.
struct x87_rounded x87_transcend(enum x87_function function, const struct x87_finite *x, const struct x87_finite *y,
                                 uint16_t control);

#endif
