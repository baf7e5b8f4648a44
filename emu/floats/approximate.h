// The instructions whose results the manuals bound but do not define: RCPPS, RSQRTPS and their kin.
// They are the quotients, rounded to nearest.
#ifndef HEDDLE_FLOATS_APPROXIMATE_H
#define HEDDLE_FLOATS_APPROXIMATE_H

#include <stdint.h>

uint32_t heddle_reciprocal(uint32_t x);
uint32_t heddle_reciprocal_root(uint32_t x);

#endif
