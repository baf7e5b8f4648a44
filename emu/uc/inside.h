// Runs that end inside an instruction, between two of its accesses to memory. See inside.go.
#ifndef HEDDLE_INSIDE_H
#define HEDDLE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "operands.h"

struct heddle_cpu;
struct heddle_space;


// A part of an instruction's accesses that becomes visible at once: a load or store, or the part of
// one that lies in one cache line.
struct heddle_piece {
  uint64_t addr;
  uint8_t bytes[16];  // that were loaded, or that wait to be stored
  uint32_t size;
  uint32_t stores;  // 0 or 1
};

#define HEDDLE_PIECES 8u
#define HEDDLE_INSIDE_REGS 20u

// A thread that is inside an instruction. Its accesses are in the order of the pieces, loads first.
// Before the first store is done, the registers are those before the instruction, and pieces have
// the bytes of the loads that are done; afterwards (executed) the registers are those after it, and
// pieces have the bytes of the stores that are not done. The instruction retires when all are done.
struct heddle_inside {
  uint64_t pc;
  uint32_t n, loads;  // numbers of pieces and of loads among them; n is 0 if the thread is inside no instruction
  uint32_t places;    // one more than the places inside the instruction
  uint32_t done;      // number of pieces that are done
  uint32_t executed;
  uint32_t unused;
  uint32_t cost, paid;  // cycles of the instruction, and the part that was charged to the run that ended inside it
  uint64_t branches;    // count of branches of all runs before its accesses
  uint64_t before[HEDDLE_INSIDE_REGS];  // the registers before the instruction if it is executed, as a struct heddle_regs
  struct heddle_piece pieces[HEDDLE_PIECES];
};

// The place inside the instruction at its end where a run ends, as heddle_cpu_run takes it: 0:
// never inside; EXACTLY | n: after n of its accesses; any other number chooses among all places
// inside the instruction and the one before it with equal probability. If the budget of cycles ends
// within the instruction, the number does not matter: the run ends after the accesses for which
// there is time.
#define HEDDLE_INSIDE_EXACTLY (1u << 31)

void heddle_inside_commit(struct heddle_cpu *cpu, struct heddle_space *space, struct heddle_inside *in, uint32_t upto);
bool heddle_cpu_pieces(struct heddle_cpu *cpu, uint64_t pc, struct heddle_inside *out);
int heddle_cpu_accesses(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in, struct heddle_insn_access *out,
                        int most);

#endif
