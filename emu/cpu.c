#include "cpu.h"

#include "sse.h"

#include <stdlib.h>
#include <string.h>

// Addresses from here on are the window on physical memory: address + page
// number * page size. It is open only while the engine is set up and while
// translations of a physical page are thrown away, never while a guest runs.
#define WINDOW 0xffff800000000000u

#define FLAG_TF 0x100u
#define VECTOR_DEBUG 1u
#define VECTOR_INVALID_OPCODE 6u
#define VECTOR_PROTECTION 13u

static struct heddle_block *block_slot(struct heddle_cpu *cpu, uint64_t pc) {
  return &cpu->blocks[(pc ^ pc >> 15) & (HEDDLE_BLOCKS - 1)];
}

static uint64_t make_key(uint64_t pc, uint32_t size, uint64_t tag) { return pc << 17 | (uint64_t)size << 4 | tag; }

static uint64_t key_pc(uint64_t key) { return key >> 17; }

static uint64_t key_end(uint64_t key) { return (key >> 17) + (key >> 4 & 0x1fff); }

static uint64_t instructions_done(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->instruction_limit - cpu->instructions_left);
}

static uint64_t cycles_done(const struct heddle_cpu *cpu) {
  return (uint64_t)(cpu->cycle_limit - cpu->cycles_left);
}

// The slot for a block by where its bytes are, or NULL if they lie in two pages.
static struct heddle_block *decoded_slot(struct heddle_cpu *cpu, uint64_t pc, uint32_t size, uint64_t *key) {
  uint64_t pte, offset = pc & (HEDDLE_PAGE_SIZE - 1);
  if (offset + size > HEDDLE_PAGE_SIZE) return NULL;
  if (heddle_space_walk(cpu->space, pc, HEDDLE_FETCH, true, &pte)) return NULL;
  uint64_t at = (pte & ~(HEDDLE_PAGE_SIZE - 1)) + offset;
  *key = make_key(at, size, 1);
  return &cpu->decoded[(at ^ at >> 16) & (HEDDLE_BLOCKS - 1)];
}

static void forget_blocks(struct heddle_cpu *cpu) {
  memset(cpu->decoded, 0, HEDDLE_BLOCKS * sizeof *cpu->decoded);
  memset(cpu->blocks, 0, HEDDLE_BLOCKS * sizeof *cpu->blocks);
  memset(cpu->tagged, 0, sizeof cpu->tagged);
  cpu->next_tag = 1;
}

// The number under which the current space's blocks are in the table. When the
// numbers are used up the table is emptied.
static uint64_t tag_of_space(struct heddle_cpu *cpu) {
  for (unsigned i = 1; i < cpu->next_tag; i++)
    if (cpu->tagged[i] == cpu->space->code) return i;
  if (cpu->next_tag == HEDDLE_TAG_FLAGGED) forget_blocks(cpu);
  cpu->tagged[cpu->next_tag] = cpu->space->code;
  return cpu->next_tag++;
}

static void stop_now(struct heddle_cpu *cpu, enum heddle_stop why) {
  cpu->stop = why;
  uc_emu_stop(cpu->uc);
}

// ---- decoding ---------------------------------------------------------------

// Copies the code at pc, as far as it is mapped executable.
size_t heddle_space_code(struct heddle_space *s, uint64_t pc, uint8_t *out, size_t max) {
  size_t done = 0;
  while (done < max) {
    uint64_t pte, at = pc + done;
    if (heddle_space_walk(s, at, HEDDLE_FETCH, true, &pte)) break;
    size_t n = HEDDLE_PAGE_SIZE - (at & (HEDDLE_PAGE_SIZE - 1));
    if (n > max - done) n = max - done;
    memcpy(out + done, s->ram->base + (pte & ~(HEDDLE_PAGE_SIZE - 1)) + (at & (HEDDLE_PAGE_SIZE - 1)), n);
    done += n;
  }
  return done;
}

static bool touches_memory(const ZydisDecodedInstruction *in) {
  if ((in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod != 3)
    return in->mnemonic != ZYDIS_MNEMONIC_LEA && in->mnemonic != ZYDIS_MNEMONIC_NOP;
  switch (in->meta.category) {
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_STRINGOP:
      return true;
    default:
      return false;
  }
}

static bool is_atomic(const ZydisDecodedInstruction *in) {
  if (in->attributes & ZYDIS_ATTRIB_HAS_LOCK) return true;
  return in->mnemonic == ZYDIS_MNEMONIC_XCHG && in->raw.modrm.mod != 3 &&
         (in->attributes & ZYDIS_ATTRIB_HAS_MODRM);
}

static uint32_t cost_of(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in, uint32_t *flags) {
  const struct heddle_costs *c = &cpu->costs;
  uint32_t cost = c->instruction;
  if (touches_memory(in)) cost += c->memory;
  if (heddle_sse_special(in)) *flags |= HEDDLE_BLOCK_SPECIAL;
  if (is_atomic(in)) {
    *flags |= HEDDLE_BLOCK_SYNC;
    return cost + c->atomic;
  }
  switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FIDIVR:
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVPD:
    case ZYDIS_MNEMONIC_DIVPS:
      return cost + c->divide;
    case ZYDIS_MNEMONIC_FSQRT:
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTPD:
    case ZYDIS_MNEMONIC_SQRTPS:
      return cost + c->sqrt;
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_LFENCE:
      *flags |= HEDDLE_BLOCK_SYNC;
      return cost + c->fence;
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FCOS:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FYL2XP1:
      cpu->transcendental = true;
      return cost + c->transcendental;
    case ZYDIS_MNEMONIC_PAUSE:
      *flags |= HEDDLE_BLOCK_PAUSE;
      return cost;
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
      *flags |= HEDDLE_BLOCK_SPECIAL;
      return cost;
    case ZYDIS_MNEMONIC_IN:
    case ZYDIS_MNEMONIC_INSB:
    case ZYDIS_MNEMONIC_INSW:
    case ZYDIS_MNEMONIC_INSD:
    case ZYDIS_MNEMONIC_OUT:
    case ZYDIS_MNEMONIC_OUTSB:
    case ZYDIS_MNEMONIC_OUTSW:
    case ZYDIS_MNEMONIC_OUTSD:
      *flags |= HEDDLE_BLOCK_SPECIAL;
      return cost;
    default:
      return cost;
  }
}

// Decodes one instruction; false when the bytes are none.
static bool decode(struct heddle_cpu *cpu, const uint8_t *code, size_t len, ZydisDecodedInstruction *in) {
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&cpu->decoder, NULL, code, len, in));
}

static bool has_breakpoint(const struct heddle_cpu *cpu, uint64_t from, uint64_t to) {
  size_t lo = 0, hi = cpu->nbreakpoints;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (cpu->breakpoints[mid] < from) lo = mid + 1;
    else hi = mid;
  }
  return lo < cpu->nbreakpoints && cpu->breakpoints[lo] < to;
}

#define MAX_BLOCK (512 * 15)

// Counts the instructions of [pc, end) and adds up what they cost.
static void measure(struct heddle_cpu *cpu, uint64_t pc, uint64_t end, uint32_t *count, uint32_t *cost,
                    uint32_t *flags) {
  uint8_t code[MAX_BLOCK + 15];
  size_t size = end - pc < MAX_BLOCK ? end - pc : MAX_BLOCK;
  size_t len = heddle_space_code(cpu->space, pc, code, size);
  *count = *cost = 0;
  for (size_t at = 0; at < size;) {
    ZydisDecodedInstruction in;
    if (!decode(cpu, code + at, len - at, &in)) {
      // The engine decodes more than the decoder does, or will fault here.
      ++*count;
      *cost += cpu->costs.instruction;
      return;
    }
    ++*count;
    *cost += cost_of(cpu, &in, flags);
    at += in.length;
  }
}

// What is known of the block at pc, found out if need be.
static struct heddle_block describe(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  uint32_t count, cost, flags = 0;
  uint64_t key;
  struct heddle_block *known = decoded_slot(cpu, pc, size, &key);
  if (known && known->key == key) {
    count = known->count;
    cost = known->cost;
    flags = known->flags;
  } else {
    measure(cpu, pc, pc + size, &count, &cost, &flags);
    if (known) *known = (struct heddle_block){key, cost, (uint16_t)count, (uint16_t)flags};
  }
  if (cpu->nbreakpoints && has_breakpoint(cpu, pc, pc + size)) flags |= HEDDLE_BLOCK_BREAK;
  struct heddle_block b = {make_key(pc, size, cpu->tag), cost, (uint16_t)count, (uint16_t)(flags & cpu->watched)};
  struct heddle_block *slot = block_slot(cpu, pc);
  *slot = b;
  if (b.flags) {
    slot->key = make_key(pc, size, HEDDLE_TAG_FLAGGED);
    slot->flags |= (uint16_t)(cpu->tag << HEDDLE_FLAG_BITS);
  }
  return b;
}

// The same from the table, for a block that the hook may not pass quickly.
static struct heddle_block recall(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  struct heddle_block b = *block_slot(cpu, pc);
  uint64_t key = make_key(pc, size, cpu->tag);
  if (b.key == make_key(pc, size, HEDDLE_TAG_FLAGGED) && b.flags >> HEDDLE_FLAG_BITS == cpu->tag) {
    b.key = key;
    b.flags &= (1u << HEDDLE_FLAG_BITS) - 1;
  } else if (b.key != key) {
    b = describe(cpu, pc, size);
  }
  return b;
}

// ---- hooks ------------------------------------------------------------------

// Decides at a block that may not simply run. Returns whether it was stopped.
static bool consider(struct heddle_cpu *cpu, const struct heddle_block *b) {
  if (cpu->pause_pending) {
    stop_now(cpu, HEDDLE_STOP_PAUSE);
    return true;
  }
  if (cpu->ram->nstale) {
    cpu->block_key = 0;
    stop_now(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if (cpu->instructions_left <= 0 || cpu->cycles_left <= 0) {
    stop_now(cpu, HEDDLE_STOP_BUDGET);
    return true;
  }
  bool inside = b->flags & (HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL | HEDDLE_BLOCK_SYNC);
  inside |= (cpu->run_flags & HEDDLE_RUN_EXACT) &&
            (b->count > cpu->instructions_left || b->cost > cpu->cycles_left);
  if (inside) {
    // Something in the block needs attention: the run loop steps through it.
    cpu->block_key = b->key;
    stop_now(cpu, HEDDLE_STOP_NONE);
    return true;
  }
  if (b->flags & HEDDLE_BLOCK_PAUSE) {
    cpu->pause_pending = true;
    cpu->tag = 0;
  }
  return false;
}

static __attribute__((noinline)) void on_block_slow(struct heddle_cpu *cpu, uint64_t pc, uint32_t size) {
  if (cpu->stepping) return;
  cpu->tag = tag_of_space(cpu);
  struct heddle_block b = recall(cpu, pc, size);
  if (consider(cpu, &b)) return;
  cpu->instructions_left -= b.count;
  cpu->cycles_left -= b.cost;
  cpu->block_key = b.key;
}

// The hottest function of all: it counts, and leaves everything else to the
// slow path. Vectorised, its two counters would go through memory as one word
// of 16 bytes right after they were written as two, which stalls.
__attribute__((optimize("no-tree-vectorize"))) static void on_block(uc_engine *uc, uint64_t pc, uint32_t size, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  const struct heddle_block *b = block_slot(cpu, pc);
  uint64_t key = make_key(pc, size, cpu->tag);
  int64_t instructions = cpu->instructions_left - b->count, cycles = cpu->cycles_left - b->cost;
  if (__builtin_expect((b->key != key) | ((instructions | cycles) < 0), 0)) {
    on_block_slow(cpu, pc, size);
    return;
  }
  cpu->instructions_left = instructions;
  cpu->cycles_left = cycles;
  cpu->block_key = key;
}

// A block is translated anew: what was known of the one before it is outdated.
static void on_translate(uc_engine *uc, uc_tb *cur, uc_tb *prev, void *user) {
  (void)uc;
  (void)prev;
  struct heddle_cpu *cpu = user;
  block_slot(cpu, cur->pc)->key = 0;
  uint64_t key;
  struct heddle_block *known = cpu->space ? decoded_slot(cpu, cur->pc, cur->size, &key) : NULL;
  if (known) known->key = 0;
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type, uc_tlb_entry *out, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  if (cpu->window && va >= WINDOW) {
    out->paddr = va - WINDOW;
    out->perms = UC_PROT_ALL;
    return true;
  }
  enum heddle_access access = type == UC_MEM_WRITE   ? HEDDLE_WRITE
                              : type == UC_MEM_FETCH ? HEDDLE_FETCH
                                                     : HEDDLE_READ;
  cpu->fills++;
  struct heddle_space *s = cpu->space;
  bool synced = s && cpu->seen_version == s->version;
  uint64_t pte;
  cpu->walk = s ? heddle_space_walk(s, va, access, false, &pte) : HEDDLE_WALK_ABSENT;
  if (cpu->walk) {
    cpu->access = access;
    cpu->fault_page = va;
    return false;
  }
  // The entry that the engine is given now replaces what it had.
  if (synced) cpu->seen_version = s->version;
  uint64_t page = pte >> HEDDLE_PAGE_SHIFT;
  if ((pte & HEDDLE_PTE_SHARED) && (cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) {
    // Code is about to change, perhaps by another address than its own: its
    // translations go at the next block. Until then there is no right to write
    // in the engine's cache, so that this is noticed.
    if (access == HEDDLE_WRITE) {
      heddle_ram_written(cpu->ram, page);
      cpu->tag = 0;
    } else {
      pte &= ~(uint64_t)HEDDLE_PTE_WRITE;
    }
  }
  out->paddr = page << HEDDLE_PAGE_SHIFT;
  uint32_t perms = UC_PROT_NONE;
  if (pte & HEDDLE_PTE_READ) perms |= UC_PROT_READ;
  if (pte & HEDDLE_PTE_WRITE) perms |= UC_PROT_WRITE;
  // Without a fetch the page holds no translations; with the right to execute
  // in the engine's cache there would be no notice of the first.
  if ((pte & HEDDLE_PTE_EXEC) && (cpu->ram->flags[page] & HEDDLE_PAGE_CODE)) perms |= UC_PROT_EXEC;
  out->perms = (uc_prot)perms;
  return true;
}

static void on_interrupt(uc_engine *uc, uint32_t vector, void *user) {
  (void)uc;
  struct heddle_cpu *cpu = user;
  cpu->vector = vector;
  stop_now(cpu, HEDDLE_STOP_EXCEPTION);
}

static void on_syscall(uc_engine *uc, void *user) {
  (void)uc;
  stop_now(user, HEDDLE_STOP_SYSCALL);
}

static int on_cpuid(uc_engine *uc, void *user) {
  uint64_t rax = 0, rcx = 0;
  uc_reg_read(uc, UC_X86_REG_RAX, &rax);
  uc_reg_read(uc, UC_X86_REG_RCX, &rcx);
  uint32_t out[4];
  heddle_cpu_cpuid(user, (uint32_t)rax, (uint32_t)rcx, out);
  static const int regs[] = {UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX};
  for (int i = 0; i < 4; i++) {
    uint64_t value = out[i];
    uc_reg_write(uc, regs[i], &value);
  }
  return 1;
}

// ---- running ----------------------------------------------------------------

static uint64_t get_rip(struct heddle_cpu *cpu) {
  uint64_t rip = 0;
  uc_reg_read(cpu->uc, UC_X86_REG_RIP, &rip);
  return rip;
}

static uint64_t get_reg(struct heddle_cpu *cpu, int reg) {
  uint64_t value = 0;
  uc_reg_read(cpu->uc, reg, &value);
  return value;
}

static void set_reg(struct heddle_cpu *cpu, int reg, uint64_t value) { uc_reg_write(cpu->uc, reg, &value); }

// Throws away translations of pages that were changed behind the engine's
// back. The engine takes virtual addresses only, hence the window.
static void drop_stale(struct heddle_cpu *cpu) {
  struct heddle_ram *ram = cpu->ram;
  if (!ram->nstale) return;
  cpu->window = true;
  while (ram->nstale) {
    uint64_t page = ram->stale[--ram->nstale];
    ram->flags[page] &= (uint8_t)~(HEDDLE_PAGE_STALE | HEDDLE_PAGE_CODE);
    uint64_t va = WINDOW + (page << HEDDLE_PAGE_SHIFT);
    uc_ctl_remove_cache(cpu->uc, va, va + HEDDLE_PAGE_SIZE);
  }
  cpu->window = false;
  cpu->seen_space = NULL;
  forget_blocks(cpu);
}

static void sync_caches(struct heddle_cpu *cpu) {
  drop_stale(cpu);
  bool current = cpu->seen_space == cpu->space && cpu->seen_version == cpu->space->version;
  if (current && cpu->fills < cpu->fill_budget) return;
  // The engine's cache of translations starts with 256 entries and grows at
  // flushes only: one that is too small is made to grow, ever less often.
  if (current) cpu->fill_budget *= 2;
  cpu->fills = 0;
  uc_ctl_flush_tlb(cpu->uc);
  cpu->seen_space = cpu->space;
  cpu->seen_version = cpu->space->version;
}

static uc_err start(struct heddle_cpu *cpu) {
  sync_caches(cpu);
  cpu->tag = cpu->stepping ? 0 : tag_of_space(cpu);
  cpu->stop = HEDDLE_STOP_NONE;
  cpu->block_key = 0;
  return uc_emu_start(cpu->uc, get_rip(cpu), 0, 0, 0);
}

// The instruction at the PC did not complete: takes back what was counted for
// it and for the rest of its block.
static void uncount(struct heddle_cpu *cpu) {
  uint64_t pc = get_rip(cpu), start = key_pc(cpu->block_key), end = key_end(cpu->block_key);
  if (cpu->stepping || pc < start || pc >= end) return;
  uint32_t count, cost, flags = 0;
  measure(cpu, pc, end, &count, &cost, &flags);
  cpu->instructions_left += count;
  cpu->cycles_left += cost;
  if (pc > start) {
    cpu->resume_end = end;
    cpu->resume_checked = false;
  }
}

// What a failed start means. NONE: nothing, go on.
static enum heddle_stop failed(struct heddle_cpu *cpu, uc_err err) {
  switch (err) {
    case UC_ERR_EXCEPTION:
      if (cpu->access != HEDDLE_FETCH) uncount(cpu);
      if (cpu->walk == HEDDLE_WALK_CODE) {
        uint64_t pte;
        cpu->walk = heddle_space_walk(cpu->space, cpu->fault_page, cpu->access, true, &pte);
        if (cpu->walk == HEDDLE_WALK_OK) {
          cpu->block_key = 0;
          return HEDDLE_STOP_NONE;
        }
      }
      return cpu->walk == HEDDLE_WALK_NO_MEMORY ? HEDDLE_STOP_NO_MEMORY : HEDDLE_STOP_FAULT;
    case UC_ERR_INSN_INVALID:
      uncount(cpu);
      cpu->vector = VECTOR_INVALID_OPCODE;
      return HEDDLE_STOP_EXCEPTION;
    default:
      cpu->error = err;
      return HEDDLE_STOP_ENGINE;
  }
}

// The engine believes that an exception it reported is still being delivered,
// and would make the next one a double fault. Only a context from before knows
// better.
static void forget_exception(struct heddle_cpu *cpu) {
  struct heddle_regs r;
  uint8_t fp[512] __attribute__((aligned(16)));
  heddle_cpu_get_regs(cpu, &r);
  heddle_cpu_get_fp(cpu, fp);
  uc_context_restore(cpu->uc, cpu->clean);
  heddle_cpu_set_regs(cpu, &r);
  heddle_cpu_set_fp(cpu, fp);
}

static enum heddle_stop excepted(struct heddle_cpu *cpu, bool software) {
  if (software) return HEDDLE_STOP_INTERRUPT;
  uncount(cpu);
  if (cpu->vector == 0 || (cpu->vector >= 10 && cpu->vector <= 13)) forget_exception(cpu);
  return HEDDLE_STOP_EXCEPTION;
}

// Whether the exception comes from INT n: then the PC is behind it.
static bool is_software(struct heddle_cpu *cpu) {
  if (!cpu->block_key || cpu->vector == VECTOR_INVALID_OPCODE) return false;
  uint8_t code[2];
  uint64_t pc = get_rip(cpu);
  if (pc != key_end(cpu->block_key)) return false;
  if (heddle_space_code(cpu->space, pc - 2, code, 2) != 2) return false;
  return code[1] == 0xcc || (code[0] == 0xcd && code[1] == cpu->vector) || code[1] == 0xf1;
}

static enum heddle_stop outcome(struct heddle_cpu *cpu, uc_err err) {
  if (err) return failed(cpu, err);
  if (cpu->stop == HEDDLE_STOP_EXCEPTION) return excepted(cpu, is_software(cpu));
  return cpu->stop;
}

// RDTSC and RDTSCP, in virtual time.
static void emulate_tsc(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t tsc = (uint64_t)((unsigned __int128)(cpu->clock + cycles_done(cpu)) * cpu->tsc_multiplier >> 10);
  set_reg(cpu, UC_X86_REG_RAX, (uint32_t)tsc);
  set_reg(cpu, UC_X86_REG_RDX, tsc >> 32);
  if (in->mnemonic == ZYDIS_MNEMONIC_RDTSCP) set_reg(cpu, UC_X86_REG_RCX, cpu->core);
  set_reg(cpu, UC_X86_REG_RIP, get_rip(cpu) + in->length);
}

// Runs one instruction by the trap flag, which the guest must not see. SYSCALL
// stops by itself, and its hook must have the last word.
static enum heddle_stop trap_step(struct heddle_cpu *cpu, const ZydisDecodedInstruction *in) {
  uint64_t flags = get_reg(cpu, UC_X86_REG_RFLAGS);
  bool own = !(flags & FLAG_TF) && in->mnemonic != ZYDIS_MNEMONIC_SYSCALL;
  if (own) set_reg(cpu, UC_X86_REG_RFLAGS, flags | FLAG_TF);
  cpu->stepping = true;
  uc_err err = start(cpu);
  enum heddle_stop why;
  bool debug = !err && cpu->stop == HEDDLE_STOP_EXCEPTION && cpu->vector == VECTOR_DEBUG;
  if (err) why = failed(cpu, err);
  else if (debug) why = HEDDLE_STOP_NONE;
  else if (cpu->stop == HEDDLE_STOP_EXCEPTION) why = excepted(cpu, in->meta.category == ZYDIS_CATEGORY_INTERRUPT);
  else why = cpu->stop;
  cpu->stepping = false;
  bool popf = in->mnemonic == ZYDIS_MNEMONIC_POPFQ || in->mnemonic == ZYDIS_MNEMONIC_POPF;
  if (own && !(popf && debug)) set_reg(cpu, UC_X86_REG_RFLAGS, get_reg(cpu, UC_X86_REG_RFLAGS) & ~(uint64_t)FLAG_TF);
  if (debug && own && (in->mnemonic == ZYDIS_MNEMONIC_PUSHFQ || in->mnemonic == ZYDIS_MNEMONIC_PUSHF)) {
    uint16_t word;
    size_t done;
    uint64_t sp = get_reg(cpu, UC_X86_REG_RSP);
    heddle_space_read(cpu->space, sp, &word, sizeof word, &done);
    word &= (uint16_t)~FLAG_TF;
    heddle_space_write(cpu->space, sp, &word, sizeof word, &done);
  }
  bool retired = debug || why == HEDDLE_STOP_SYSCALL || why == HEDDLE_STOP_INTERRUPT;
  if (retired) {
    uint32_t unused = 0;
    cpu->instructions_left--;
    cpu->cycles_left -= cost_of(cpu, in, &unused);
  }
  return why;
}

// Runs the instruction at pc alone.
static enum heddle_stop step(struct heddle_cpu *cpu, uint64_t pc) {
  uint8_t code[15];
  ZydisDecodedInstruction in = {0};
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  if (!decode(cpu, code, len, &in)) in.mnemonic = ZYDIS_MNEMONIC_INVALID;
  if (in.mnemonic == ZYDIS_MNEMONIC_RDTSC || in.mnemonic == ZYDIS_MNEMONIC_RDTSCP) {
    emulate_tsc(cpu, &in);
    cpu->instructions_left--;
    cpu->cycles_left -= cpu->costs.instruction;
    return HEDDLE_STOP_NONE;
  }
  if (in.meta.category == ZYDIS_CATEGORY_IO || in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP) {
    // Linux gives no process ports; the engine would.
    cpu->vector = VECTOR_PROTECTION;
    return HEDDLE_STOP_EXCEPTION;
  }
  enum heddle_stop why = trap_step(cpu, &in);
  if (why == HEDDLE_STOP_NONE && heddle_sse_special(&in)) heddle_sse_after(cpu, pc, &in);
  if (why == HEDDLE_STOP_NONE && in.mnemonic == ZYDIS_MNEMONIC_PAUSE && (cpu->run_flags & HEDDLE_RUN_PAUSE))
    return HEDDLE_STOP_PAUSE;
  return why;
}

// Whether the instruction at pc is one that RUN_SYNC stops before.
static bool sync_at(struct heddle_cpu *cpu, uint64_t pc) {
  uint8_t code[15];
  ZydisDecodedInstruction in;
  uint32_t flags = 0;
  size_t len = heddle_space_code(cpu->space, pc, code, sizeof code);
  if (!decode(cpu, code, len, &in)) return false;
  cost_of(cpu, &in, &flags);
  return flags & HEDDLE_BLOCK_SYNC;
}

// Steps from the PC to the end of the block that starts there, with a look
// before each instruction.
static enum heddle_stop step_block(struct heddle_cpu *cpu, uint64_t from, uint64_t end) {
  uint64_t pc = from;
  do {
    if (cpu->instructions_left <= 0 || cpu->cycles_left <= 0) return HEDDLE_STOP_BUDGET;
    if (!cpu->passed) {
      if (has_breakpoint(cpu, pc, pc + 1)) return HEDDLE_STOP_BREAKPOINT;
      if ((cpu->run_flags & HEDDLE_RUN_SYNC) && sync_at(cpu, pc)) return HEDDLE_STOP_SYNC;
    }
    int64_t before = cpu->instructions_left;
    enum heddle_stop why = step(cpu, pc);
    if (cpu->instructions_left != before) cpu->passed = false;
    if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY) {
      cpu->resume_end = end;
      cpu->resume_checked = true;
    }
    if (why) return why;
    pc = get_rip(cpu);
  } while (pc > from && pc < end);
  return HEDDLE_STOP_NONE;
}

// Runs the rest of a block that a fault interrupted, as if nothing had
// happened: where blocks end, and so where budgets are looked at, must not
// depend on which pages were there.
static enum heddle_stop finish_block(struct heddle_cpu *cpu) {
  uint64_t end = cpu->resume_end, pc = get_rip(cpu), last;
  cpu->resume_end = 0;
  if (cpu->resume_checked) return step_block(cpu, pc, end);
  do {
    last = pc;
    enum heddle_stop why = step(cpu, pc);
    pc = get_rip(cpu);
    if (why == HEDDLE_STOP_FAULT || why == HEDDLE_STOP_NO_MEMORY) {
      cpu->resume_end = end;
      cpu->resume_checked = false;
    }
    if (why) return why;
  } while (pc > last && pc < end);
  return HEDDLE_STOP_NONE;
}

static enum heddle_stop run_on(struct heddle_cpu *cpu) {
  enum heddle_stop why;
  do {
    cpu->pause_pending = false;
    if (cpu->resume_end && (why = finish_block(cpu))) break;
    why = outcome(cpu, start(cpu));
    if (!why && cpu->block_key) why = step_block(cpu, key_pc(cpu->block_key), key_end(cpu->block_key));
  } while (!why);
  cpu->instructions = instructions_done(cpu);
  cpu->cycles = cycles_done(cpu);
  return cpu->stop = why;
}

// Sets the flags of blocks that a run has to look at.
static void watch(struct heddle_cpu *cpu, uint32_t run_flags) {
  uint32_t watched = HEDDLE_BLOCK_BREAK | HEDDLE_BLOCK_SPECIAL;
  if (run_flags & HEDDLE_RUN_PAUSE) watched |= HEDDLE_BLOCK_PAUSE;
  if (run_flags & HEDDLE_RUN_SYNC) watched |= HEDDLE_BLOCK_SYNC;
  if (watched == cpu->watched) return;
  cpu->watched = watched;
  forget_blocks(cpu);
}

// Runs the loaded thread until something stops it. The counts of the run are in
// instructions and cycles.
enum heddle_stop heddle_cpu_run(struct heddle_cpu *cpu, uint64_t instructions, uint64_t cycles, uint32_t flags) {
  cpu->instruction_limit = cpu->instructions_left = instructions < INT64_MAX ? (int64_t)instructions : INT64_MAX;
  cpu->cycle_limit = cpu->cycles_left = cycles < INT64_MAX ? (int64_t)cycles : INT64_MAX;
  watch(cpu, flags);
  cpu->run_flags = flags;
  cpu->passed = flags & HEDDLE_RUN_PASS;
  cpu->resume_end = 0;
  return run_on(cpu);
}

// Goes on with a run that a fault stopped, once its cause is gone. The counts
// and budgets are those of the whole run.
enum heddle_stop heddle_cpu_resume(struct heddle_cpu *cpu) { return run_on(cpu); }

int heddle_cpu_breakpoints(struct heddle_cpu *cpu, const uint64_t *sorted, size_t n) {
  uint64_t *copy = malloc((n ? n : 1) * sizeof *copy);
  if (!copy) return -1;
  memcpy(copy, sorted, n * sizeof *copy);
  free(cpu->breakpoints);
  cpu->breakpoints = copy;
  cpu->nbreakpoints = n;
  forget_blocks(cpu);
  return 0;
}

// ---- setting up -------------------------------------------------------------

static int add_hook(struct heddle_cpu *cpu, int type, void *callback, int insn) {
  return uc_hook_add(cpu->uc, &cpu->hooks[cpu->nhooks++], type, callback, cpu, (uint64_t)1, (uint64_t)0, insn);
}

// Leaves privilege level 0: writing CS does not, so an IRETQ is executed once,
// with descriptors for user data and code where Linux has them.
static int enter_user_mode(struct heddle_cpu *cpu) {
  uint64_t page = heddle_ram_alloc(cpu->ram, true);
  if (page == HEDDLE_NO_PAGE) return UC_ERR_NOMEM;
  uint64_t base = WINDOW + (page << HEDDLE_PAGE_SHIFT);
  uint8_t *bytes = cpu->ram->base + (page << HEDDLE_PAGE_SHIFT);
  uint64_t *gdt = (uint64_t *)bytes, *frame = (uint64_t *)(bytes + 0x200);
  gdt[5] = 0x00cff3000000ffff;  // user data, selector 0x2b
  gdt[6] = 0x00affb000000ffff;  // user code, selector 0x33
  memcpy(bytes + 0x100, (uint8_t[]){0x48, 0xcf}, 2);
  frame[0] = 0x1000;  // RIP, where nothing is mapped
  frame[1] = 0x33;
  frame[2] = 2;
  frame[3] = 0;
  frame[4] = 0x2b;
  uc_x86_mmr gdtr = {.base = base, .limit = 0x3f};
  uc_reg_write(cpu->uc, UC_X86_REG_GDTR, &gdtr);
  set_reg(cpu, UC_X86_REG_RSP, base + 0x200);
  cpu->window = true;
  cpu->stepping = true;
  uc_err err = uc_emu_start(cpu->uc, base + 0x100, 0, 0, 0);
  cpu->window = cpu->stepping = false;
  uint64_t rip = get_rip(cpu);
  gdtr = (uc_x86_mmr){0};
  uc_reg_write(cpu->uc, UC_X86_REG_GDTR, &gdtr);
  heddle_ram_written(cpu->ram, page);
  heddle_ram_unref(cpu->ram, page);
  return err == UC_ERR_EXCEPTION && rip == 0x1000 ? 0 : (err ? err : UC_ERR_EXCEPTION);
}

#define CR0_MP 0x2u
#define CR0_NE 0x20u
#define CR4_TSD 0x4u
#define CR4_OSFXSR 0x200u
#define CR4_OSXMMEXCPT 0x400u

int heddle_cpu_init(struct heddle_cpu *cpu, uc_engine *uc, struct heddle_ram *ram, uint32_t cores) {
  int err;
  cpu->uc = uc;
  cpu->ram = ram;
  cpu->cores = cores;
  cpu->tsc_multiplier = 1024;
  cpu->fill_budget = 512;
  ZydisDecoderInit(&cpu->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  // One large page of the host: the table is read at every block.
  cpu->blocks = aligned_alloc(1u << 20, HEDDLE_BLOCKS * sizeof *cpu->blocks);
  cpu->decoded = malloc(HEDDLE_BLOCKS * sizeof *cpu->decoded);
  if (!cpu->blocks || !cpu->decoded) return UC_ERR_NOMEM;
  forget_blocks(cpu);
  if ((err = uc_ctl_tlb_mode(uc, UC_TLB_VIRTUAL))) return err;
  if ((err = add_hook(cpu, UC_HOOK_TLB_FILL, (void *)on_fill, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_BLOCK, (void *)on_block, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_EDGE_GENERATED, (void *)on_translate, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INTR, (void *)on_interrupt, 0))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_syscall, UC_X86_INS_SYSCALL))) return err;
  if ((err = add_hook(cpu, UC_HOOK_INSN, (void *)on_cpuid, UC_X86_INS_CPUID))) return err;
  set_reg(cpu, UC_X86_REG_CR0, get_reg(cpu, UC_X86_REG_CR0) | CR0_MP | CR0_NE);
  set_reg(cpu, UC_X86_REG_CR4, get_reg(cpu, UC_X86_REG_CR4) | CR4_TSD | CR4_OSFXSR | CR4_OSXMMEXCPT);
  if ((err = enter_user_mode(cpu))) return err;
  static const struct heddle_regs zero = {.rflags = 0x202};
  heddle_cpu_set_regs(cpu, &zero);
  uint8_t fp[512] __attribute__((aligned(16))) = {0x7f, 0x03};
  fp[24] = 0x80;  // MXCSR 0x1f80
  fp[25] = 0x1f;
  heddle_cpu_set_fp(cpu, fp);
  if ((err = uc_context_alloc(uc, &cpu->clean))) return err;
  if ((err = uc_context_save(uc, cpu->clean))) return err;
  return heddle_sse_init(cpu);
}

void heddle_cpu_close(struct heddle_cpu *cpu) {
  for (unsigned i = 0; i < cpu->nhooks; i++) uc_hook_del(cpu->uc, cpu->hooks[i]);
  if (cpu->clean) uc_context_free(cpu->clean);
  if (cpu->spare) uc_context_free(cpu->spare);
  free(cpu->breakpoints);
  free(cpu->blocks);
  free(cpu->decoded);
}
