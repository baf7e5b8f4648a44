// Runs that end inside an instruction, between two of its accesses to memory. See arch.Inside.
#ifndef HEDDLE_INSIDE_H
#define HEDDLE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "operands.h"
#include "stop.h"

struct heddle_buffers;

// A part of an instruction's accesses that becomes visible at once: a load or store, or the part of
// one that lies in one cache line.
struct heddle_piece {
  uint64_t addr;
  uint8_t bytes[HEDDLE_ACCESS_BYTES];  // that were loaded, or that wait to be stored
  uint32_t size;
  uint32_t stores;  // 0 or 1
};

#define HEDDLE_PIECES 8u

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
  struct heddle_regs before;  // the registers before the instruction if it is executed
  struct heddle_piece pieces[HEDDLE_PIECES];
};

// The place inside the instruction at its end where a run ends: 0: never inside; EXACTLY | n: after
// n of its accesses; any other number chooses among all places inside the instruction and the one
// before it with equal probability. If the budget of cycles ends within the instruction, the number
// does not matter: the run ends after the accesses for which there is time.
#define HEDDLE_INSIDE_EXACTLY (1u << 31)

// The accesses of an instruction, loads first, as its operands name them.
struct heddle_insn_facts {
  struct heddle_insn_access accesses[4];
  uint32_t n;
  uint32_t cost;  // in cycles
  bool atomic;
  bool calls;     // it is a call
};

// What an engine offers. Each function has the engine as its first argument.
struct heddle_inside_functions {
  // Describes the instruction at pc for the registers that the running thread has. Returns false if
  // no instruction is there, or its operands do not name its accesses.
  bool (*describe)(void *engine, uint64_t pc, struct heddle_insn_facts *out);
  uint64_t (*pc)(void *engine);
  void (*registers)(void *engine, struct heddle_regs *out);
  // Executes the instruction at pc alone and counts it.
  enum heddle_stop (*execute)(void *engine, uint64_t pc);
  // The run has completed the instruction at pc, its first: it stops before the next one.
  void (*pass)(void *engine, uint64_t pc);
  // Sets the description of a fault.
  void (*set_fault)(void *engine, uint64_t address, enum heddle_access access, enum heddle_walk kind);
  uint32_t (*highest_cost)(void *engine);
  // Reports whether the run has reached its exact limit of instructions.
  bool (*at_limit)(void *engine);
  // Reports whether other cores see the stores of an instruction together at the earliest.
  bool (*waits)(void *engine);
  // The log of memory. branches: of all runs. log_pages: the content of the pages of all accesses;
  // log_pieces: the accesses [from, upto); unlog: those of the instruction that was executed last.
  uint64_t (*branches)(void *engine);
  void (*log_pages)(void *engine, struct heddle_space *space, const struct heddle_inside *in);
  void (*log_pieces)(void *engine, struct heddle_space *space, const struct heddle_inside *in, uint32_t from,
                     uint32_t upto);
  void (*unlog)(void *engine);
};

// The part of an engine that ends runs inside instructions.
struct heddle_insides {
  const struct heddle_inside_functions *functions;
  void *engine;
  struct heddle_ram *ram;
  struct heddle_space **space;       // of the loaded thread
  struct heddle_buffers **buffers;   // NULL: stores are visible at once
  int64_t *instructions, *cycles;    // that the run has left

  uint32_t choice;                   // of the run, see above
  struct heddle_inside interrupted;  // the instruction that the loaded thread is inside, at the start or end of the run
};

enum heddle_stop heddle_inside_end(struct heddle_insides *x, uint64_t pc);
bool heddle_inside_stay(struct heddle_insides *x);
enum heddle_stop heddle_inside_finish(struct heddle_insides *x);
void heddle_inside_commit(struct heddle_insides *x, struct heddle_space *space, struct heddle_inside *in, uint32_t upto);

#endif
