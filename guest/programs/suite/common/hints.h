// Hints for PARROT's schedules (docs/dmt.md), in builds with -DHINTS alone: HINT(soba_wait(barrier)) calls
// heddle.h's function there, and is nothing elsewhere.
#ifndef HINTS_H
#define HINTS_H

#ifdef HINTS
#include "heddle.h"
#define HINT(call) call
#else
#define HINT(call) ((void)0)
#endif

// The number of the soft barrier at which threads start together.
enum { HINT_START = 1 };

#endif
