// Marks for heddle's analyses (docs/symbolic.md). Natively, and in every run, they are
// instructions that do nothing.
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stddef.h>

// A NOP whose operand's address marks it as a mark of this kind.
#define HEDDLE_MARK(kind, a, b, c)                                                       \
  __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #kind ", 0x6c, 0x64, 0x68" : : "D"(a), "S"(b), "d"(c) : "memory")

// The n bytes at addr are an input from here on.
static inline void heddle_input(const void *addr, size_t n) { HEDDLE_MARK(1, addr, n, 0L); }

// A task, such as a request of a server, begins and ends.
static inline void heddle_task_begin(void) { HEDDLE_MARK(2, 0L, 0L, 0L); }
static inline void heddle_task_end(void) { HEDDLE_MARK(3, 0L, 0L, 0L); }

// A number is never less than least nor greater than most.
static inline void heddle_range(long number, long least, long most) { HEDDLE_MARK(4, number, least, most); }

// The region of interest begins and ends (heddle run --region marks, docs/experiments.md).
static inline void heddle_region_begin(void) { HEDDLE_MARK(5, 0L, 0L, 0L); }
static inline void heddle_region_end(void) { HEDDLE_MARK(6, 0L, 0L, 0L); }

// Hints for --sched parrot (docs/dmt.md), which do nothing else: a soft barrier with a number is
// made for so many threads and, at most, so many turns (0: a default), and waited for; a
// performance-critical section begins and ends.
#define HEDDLE_HINT __attribute__((weak, noinline)) void
HEDDLE_HINT soba_init(long barrier, unsigned count, unsigned turns) { (void)barrier, (void)count, (void)turns; __asm__ volatile(""); }
HEDDLE_HINT soba_wait(long barrier) { (void)barrier; __asm__ volatile(""); }
HEDDLE_HINT pcs_enter(void) { __asm__ volatile(""); }
HEDDLE_HINT pcs_exit(void) { __asm__ volatile(""); }

// The n bytes at addr are state that survives the tasks of a server and may decide what later ones do; the name is for reports
// (docs/windows.md).
static inline void heddle_state(const void *addr, size_t n, const char *name) { HEDDLE_MARK(7, addr, n, name); }

#endif
