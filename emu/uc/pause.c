// PAUSE is translated as NOP: the engine ends a block at PAUSE and leaves its loop there, which
// takes thirty times as long as an instruction.
//
// A block that ends with PAUSE is translated once more, with the prefixes that make a NOP a PAUSE
// replaced in memory by others. They are restored before anything runs, so that neither the guest's
// loads nor the decoder here ever read the replacements. Where runs end does not change:
// straight-line code is one block then, and its parts were executed without examining budgets in
// between.
//
// Memory that several machines share is not changed. PAUSE takes longer there.
#include "pause.h"

#include "run.h"

#define PREFIX_PAUSE 0xf3u
#define PREFIX_NOP 0x66u

// Reports whether the engine takes the instruction for PAUSE, which is NOP with a prefix. The
// decoder also takes XCHG R8, RAX with that prefix for PAUSE.
bool heddle_is_pause(const ZydisDecodedInstruction *in) {
  if (in->opcode != 0x90 || in->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || in->raw.rex.B) return false;
  for (unsigned i = 0; i < in->raw.prefix_count; i++)
    if (in->raw.prefixes[i].value == PREFIX_PAUSE) return true;
  return false;
}

// Returns the flags of blocks with PAUSE that a run must examine: to stop after PAUSE, or to
// translate the block again.
uint32_t heddle_pause_watched(const struct heddle_cpu *cpu, uint32_t run_flags) {
  if (run_flags & HEDDLE_RUN_PAUSE) return HEDDLE_BLOCK_PAUSES;
  return cpu->ram->pages == cpu->ram->span ? HEDDLE_BLOCK_PAUSE : 0;
}

// Returns the flags that a run starts with. Blocks with PAUSE are examined only when the run comes
// near the first PAUSE that can end it.
uint32_t heddle_pause_run_flags(struct heddle_cpu *cpu, uint32_t run_flags) {
  if (!(run_flags & HEDDLE_RUN_PAUSE)) cpu->stops.pauses.stops_from = UINT64_MAX;
  return cpu->stops.pauses.stops_from > 1 ? run_flags & ~HEDDLE_RUN_PAUSE : run_flags;
}

// Reports whether the PAUSE that was just executed ends the run.
bool heddle_pause_ends_run(const struct heddle_cpu *cpu) {
  return cpu->stops.pauses.stops_from != UINT64_MAX && heddle_cpu_instructions_now(cpu) >= cpu->stops.pauses.stops_from;
}

// Reports whether blocks with PAUSE must be examined from this block on, which is about to run.
bool heddle_pause_is_near(const struct heddle_cpu *cpu, const struct heddle_block *b) {
  return !(cpu->run.flags & HEDDLE_RUN_PAUSE) && heddle_block_count(b) > until_pause_watch(cpu);
}

// Notes that a block with PAUSE is put into the table, for runs that stop after PAUSE.
void heddle_pause_note_slot(struct heddle_cpu *cpu, const struct heddle_block *b) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (p->nslots < HEDDLE_PAUSE_SLOTS) p->slots[p->nslots] = (uint32_t)(b - cpu->blocks.table);
  if (p->nslots <= HEDDLE_PAUSE_SLOTS) p->nslots++;
}

// Removes the blocks with PAUSE from the table.
void heddle_pause_evict(struct heddle_cpu *cpu) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (p->nslots > HEDDLE_PAUSE_SLOTS) heddle_blocks_forget(&cpu->blocks);
  else
    for (unsigned i = 0; i < p->nslots; i++) cpu->blocks.table[p->slots[i]].key = 0;
  p->nslots = 0;
}

// Returns the flags to ignore in the block at pc: PAUSE if translating the block again has not
// removed the cut, which then has another reason.
uint32_t heddle_pause_ignored(const struct heddle_cpu *cpu, uint64_t pc) {
  return cpu->stops.pauses.tried == pc && !(cpu->run.flags & HEDDLE_RUN_PAUSE) ? HEDDLE_BLOCK_PAUSE : 0;
}

// Requests that the block, which is about to run, be translated again first. Returns whether that
// is needed.
bool heddle_pause_request(struct heddle_cpu *cpu, const struct heddle_block *b) {
  if (!(heddle_block_flags(b) & HEDDLE_BLOCK_PAUSE) || (cpu->run.flags & HEDDLE_RUN_PAUSE)) return false;
  cpu->stops.pauses.wanted = heddle_block_pc(b);
  return true;
}

// Reports whether the run ends after a PAUSE, whatever the engine has stopped for: the code after
// it may be in a page that was missing when the engine tried to translate it.
bool heddle_pause_is_done(struct heddle_cpu *cpu) {
  return cpu->run.state == HEDDLE_STATE_PAUSING && cpu->run.last_block != &heddle_no_block &&
      get_rip(cpu) == heddle_block_end(cpu->run.last_block);
}

static bool ends_straight_code(const ZydisDecodedInstruction *in) {
  return in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || heddle_kind_of(in) != HEDDLE_KIND_NONE;
}

// Returns the address on the host of the byte of code at va, or NULL.
static uint8_t *byte_at(struct heddle_cpu *cpu, uint64_t va) {
  uint64_t pte;
  if (heddle_space_walk(cpu->space, va, HEDDLE_FETCH, true, &pte)) return NULL;
  return heddle_ram_bytes(cpu->ram, pte >> HEDDLE_PAGE_SHIFT) + (va & (HEDDLE_PAGE_SIZE - 1));
}

// Finds the prefixes of the PAUSEs in the straight-line code from pc on.
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

// Decides before a start of the engine at pc whether the block there is translated again.
void heddle_pause_prepare(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  bool again = p->wanted == pc && !is_stepping(cpu) && !cpu->ram->nstale;
  p->wanted = p->tried = 0;
  if (!again) return;
  find_prefixes(cpu, pc);
  if (p->nbytes) p->tried = pc;
}

// Turns the PAUSEs that were found into NOPs, and makes the engine translate the block at pc when
// it starts.
void heddle_pause_patch(struct heddle_cpu *cpu, uint64_t pc) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  if (!p->tried) return;
  uc_ctl_remove_cache(cpu->engine.uc, pc, pc + 1);
  heddle_block_slot(cpu->run.table, pc)->key = 0;  // so that the block hook takes its slow path
  for (unsigned i = 0; i < p->nbytes; i++) *p->bytes[i] = PREFIX_NOP;
}

// Turns them into PAUSEs again, once the block is translated.
void heddle_pause_restore(struct heddle_cpu *cpu) {
  struct heddle_pauses *p = &cpu->stops.pauses;
  for (unsigned i = 0; i < p->nbytes; i++) *p->bytes[i] = PREFIX_PAUSE;
  p->nbytes = 0;
}
