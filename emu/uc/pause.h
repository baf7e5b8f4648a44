// PAUSE at the cost of any other instruction: see pause.c.
#ifndef HEDDLE_PAUSE_H
#define HEDDLE_PAUSE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

struct heddle_block;
struct heddle_cpu;

#define HEDDLE_PAUSE_BYTES 64u   // of code that are changed during one translation
#define HEDDLE_PAUSE_SLOTS 256u

struct heddle_pauses {
  uint64_t wanted;  // the block to be translated again when the engine starts, 0: none
  uint64_t tried;   // the block that the engine was started to translate again, 0: none
  uint8_t *bytes[HEDDLE_PAUSE_BYTES];  // prefixes that are replaced in memory during a translation
  unsigned nbytes;
  // The run ends after the first PAUSE that brings its instructions to this number or more;
  // UINT64_MAX: it does not end after PAUSE.
  uint64_t stops_from;
  // Slots of the table that may have blocks with PAUSE. A larger nslots than the room means that
  // there are too many.
  uint32_t slots[HEDDLE_PAUSE_SLOTS];
  unsigned nslots;
};

bool heddle_is_pause(const ZydisDecodedInstruction *in);
uint32_t heddle_pause_watched(const struct heddle_cpu *cpu, uint32_t run_flags);
void heddle_pause_note_slot(struct heddle_cpu *cpu, const struct heddle_block *b);
void heddle_pause_evict(struct heddle_cpu *cpu);
uint32_t heddle_pause_ignored(const struct heddle_cpu *cpu, uint64_t pc);
bool heddle_pause_request(struct heddle_cpu *cpu, const struct heddle_block *b);
uint32_t heddle_pause_run_flags(struct heddle_cpu *cpu, uint32_t run_flags);
bool heddle_pause_ends_run(const struct heddle_cpu *cpu);
bool heddle_pause_is_near(const struct heddle_cpu *cpu, const struct heddle_block *b);
bool heddle_pause_is_done(struct heddle_cpu *cpu);
void heddle_pause_prepare(struct heddle_cpu *cpu, uint64_t pc);
void heddle_pause_patch(struct heddle_cpu *cpu, uint64_t pc);
void heddle_pause_restore(struct heddle_cpu *cpu);

#endif
