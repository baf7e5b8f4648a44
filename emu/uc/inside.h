// Runs that end inside an instruction: between two of its accesses to memory. See
// inside.go.
#ifndef HEDDLE_INSIDE_H
#define HEDDLE_INSIDE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heddle_cpu;
struct heddle_space;


// A part of an instruction's accesses that is seen at once: a load or store, or the part
// of one that lies in one cache line.
struct heddle_piece {
  uint64_t addr;
  uint8_t bytes[16];  // that were loaded, or that wait to be stored
  uint32_t size;
  uint32_t stores;  // 0 or 1
};

#define HEDDLE_PIECES 8u
#define HEDDLE_INSIDE_REGS 20u

// A thread that is inside an instruction. Its accesses come in the order of the pieces,
// loads first. Up to the first store the registers are those before the instruction, and
// the loads that are done have their bytes; from then on (executed) they are those after
// it, and the stores that are not done have theirs. The instruction counts as retired when
// all are done.
struct heddle_inside {
  uint64_t pc;
  uint32_t n, loads;  // pieces, and how many of them are loads; n is 0: the thread is inside none
  uint32_t places;    // one more than the places inside the instruction
  uint32_t done;      // pieces
  uint32_t executed;
  uint32_t unused;
  uint32_t cost, paid;  // cycles of the instruction, and how many of them the run had before it ended
  uint64_t branches;    // of all runs when its accesses that are being done were reached
  uint64_t before[HEDDLE_INSIDE_REGS];  // the registers before it, if it is executed: a struct heddle_regs
  struct heddle_piece pieces[HEDDLE_PIECES];
};

// Where inside the instruction at its end a run ends, as heddle_cpu_run takes it:
// 0: never inside; EXACTLY | n: behind n of its accesses; any other number: behind so many
// of them as the number chooses, all places inside the instruction and that before it
// being equally likely. If it is the budget of cycles that ends within the instruction,
// the number does not matter: the run ends behind as many accesses as there is time for.
#define HEDDLE_INSIDE_EXACTLY (1u << 31)

void heddle_inside_commit(struct heddle_cpu *cpu, struct heddle_space *space, struct heddle_inside *in, uint32_t upto);
bool heddle_cpu_pieces(struct heddle_cpu *cpu, uint64_t pc, struct heddle_inside *out);
int heddle_cpu_accesses(struct heddle_cpu *cpu, uint64_t pc, ZydisDecodedInstruction *in, struct heddle_piece *out,
                        int most);

#endif
