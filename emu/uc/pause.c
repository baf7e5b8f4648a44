// PAUSE is translated as NOP: the engine ends a block at PAUSE and leaves its loop there,
// which takes thirty times as long as an instruction does.
//
// A block that ends with PAUSE is translated once more, while the prefixes that make NOP a
// PAUSE are other ones in memory. They are put back before anything runs, so that nothing
// but the translation ever sees them, neither the guest's loads nor the decoder here.
// Where runs end does not change. A straight run of instructions is one block then, and was
// one without a look at budgets before.
//
// Memory that several machines share is not changed. PAUSE takes longer there.
#include "pause.h"

#include "run.h"

#define PREFIX_PAUSE 0xf3u
#define PREFIX_NOP 0x66u

// Whether the engine takes the instruction for PAUSE, which is NOP with a prefix. The
// decoder takes XCHG R8, RAX with that prefix for one, too.
bool heddle_is_pause(const ZydisDecodedInstruction *in) {
  if (in->opcode != 0x90 || in->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || in->raw.rex.B) return false;
  for (unsigned i = 0; i < in->raw.prefix_count; i++)
    if (in->raw.prefixes[i].value == PREFIX_PAUSE) return true;
  return false;
}

// Blocks with PAUSE that a run has to look at: to stop after it, or to translate the block
// again.
uint32_t heddle_pause_watched(const struct heddle_cpu *cpu, uint32_t run_flags) {
  if (run_flags & HEDDLE_RUN_PAUSE) return HEDDLE_BLOCK_PAUSES;
  return cpu->ram->pages == cpu->ram->span ? HEDDLE_BLOCK_PAUSE : 0;
}

// The flags that a run begins with: PAUSE is looked for when the run comes near the first
// one that may end it.
uint32_t heddle_pause_run_flags(struct heddle_cpu *cpu, uint32_t run_flags) {
  if (!(run_flags & HEDDLE_RUN_PAUSE)) cpu->stops.pauses.stops_from = UINT64_MAX;
  return cpu->stops.pauses.stops_from > 1 ? run_flags & ~HEDDLE_RUN_PAUSE : run_flags;
}

// Whether a PAUSE that was executed just now ends the run.
bool heddle_pause_ends_run(const struct heddle_cpu *cpu) {
  return cpu->stops.pauses.stops_from != UINT64_MAX && heddle_cpu_instructions_now(cpu) >= cpu->stops.pauses.stops_from;
}

// Whether PAUSE is to be looked for from the block on, which is about to run.
bool heddle_pause_is_near(const struct heddle_cpu *cpu, const struct heddle_block *b) {
  return !(cpu->run.flags & HEDDLE_RUN_PAUSE) && heddle_block_count(b) > until_pause_watch(cpu);
}

// Notes that a block with PAUSE is put into the table, for runs that stop after PAUSE.
void heddle_pause_note_slot(struct heddle_cpu *cpu, const struct heddle_block *b) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (p->nslots < HEDDLE_PAUSE_SLOTS) p->slots[p->nslots] = (uint32_t)(b - cpu->blocks.table);
  if (p->nslots <= HEDDLE_PAUSE_SLOTS) p->nslots++;
}

// Takes the blocks with PAUSE out of the table.
void heddle_pause_evict(struct heddle_cpu *cpu) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (p->nslots > HEDDLE_PAUSE_SLOTS) heddle_blocks_forget(&cpu->blocks);
  else
    for (unsigned i = 0; i < p->nslots; i++) cpu->blocks.table[p->slots[i]].key = 0;
  p->nslots = 0;
}

// What need not be looked at in the block at pc: it could not be translated otherwise. The
// engine has cut it for another reason there.
uint32_t heddle_pause_ignored(const struct heddle_cpu *cpu, uint64_t pc) {
  return cpu->stops.pauses.tried == pc && !(cpu->run.flags & HEDDLE_RUN_PAUSE) ? HEDDLE_BLOCK_PAUSE : 0;
}

// Whether the block, which is about to run, is to be translated again first.
bool heddle_pause_request(struct heddle_cpu *cpu, const struct heddle_block *b) {
  if (!(heddle_block_flags(b) & HEDDLE_BLOCK_PAUSE) || (cpu->run.flags & HEDDLE_RUN_PAUSE)) return false;
  cpu->stops.pauses.wanted = heddle_block_pc(b);
  return true;
}

// Whether the run, which the engine has stopped, stops after a PAUSE whatever the engine
// stopped for: the code that follows may be in a page that was not there to translate.
bool heddle_pause_is_done(struct heddle_cpu *cpu) {
  return cpu->run.state == HEDDLE_STATE_PAUSING && cpu->run.last_block != &heddle_no_block && get_rip(cpu) == heddle_block_end(cpu->run.last_block);
}

static bool ends_straight_code(const ZydisDecodedInstruction *in) {
  return in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || heddle_kind_of(in) != HEDDLE_KIND_NONE;
}

// Where the byte of code at va is. It is the RAM's own.
static uint8_t *byte_at(struct heddle_cpu *cpu, uint64_t va) {
  uint64_t pte;
  if (heddle_space_walk(cpu->space, va, HEDDLE_FETCH, true, &pte)) return NULL;
  return heddle_ram_bytes(cpu->ram, pte >> HEDDLE_PAGE_SHIFT) + (va & (HEDDLE_PAGE_SIZE - 1));
}

// Finds the prefixes of the PAUSEs in the straight code that begins at pc.
static void find_prefixes(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  ZydisDecodedInstruction in;
  for (unsigned n = 0; n < HEDDLE_BLOCK_MOST && heddle_decode(cpu, pc, &in) && !ends_straight_code(&in); n++) {
    for (unsigned i = 0; heddle_is_pause(&in) && i < in.raw.prefix_count; i++) {
      if (in.raw.prefixes[i].value != PREFIX_PAUSE) continue;
      uint8_t *at = byte_at(cpu, pc + i);
      if (!at || p->nbytes == HEDDLE_PAUSE_BYTES) return;
      p->bytes[p->nbytes++] = at;
    }
    pc += in.length;
  }
}

// Prepares a start of the engine at pc: whether it is to translate the block there again.
void heddle_pause_prepare(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  bool again = p->wanted == pc && !is_stepping(cpu) && !cpu->ram->nstale;
  p->wanted = p->tried = 0;
  if (!again) return;
  find_prefixes(cpu, pc);
  if (p->nbytes) p->tried = pc;
}

// Makes the PAUSEs that were found NOPs, and the engine translate the block at pc when it
// starts.
void heddle_pause_patch(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (!p->tried) return;
  uc_ctl_remove_cache(cpu->engine.uc, pc, pc + 1);
  heddle_block_slot(cpu->run.table, pc)->key = 0;  // so that the block hook takes its slow path
  for (unsigned i = 0; i < p->nbytes; i++) *p->bytes[i] = PREFIX_NOP;
}

// Makes them PAUSEs again, once the block is translated.
void heddle_pause_restore(struct heddle_cpu *cpu) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  for (unsigned i = 0; i < p->nbytes; i++) *p->bytes[i] = PREFIX_PAUSE;
  p->nbytes = 0;
}
