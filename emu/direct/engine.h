// The engine: its state, and the functions that its parts offer each other. doc.go explains the whole.
#ifndef HEDDLE_DIRECT_ENGINE_H
#define HEDDLE_DIRECT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffers.h"
#include "context.h"
#include "inside.h"
#include "insn.h"
#include "log.h"
#include "memory.h"
#include "operands.h"
#include "private.h"
#include "storelog.h"

// ---- the state of a thread ------------------------------------------------------

#define THREAD_FLOAT_BYTES 1024

// A guest thread that does not run.
struct direct_thread {
  uint64_t gpr[16];
  uint64_t rip, rflags, fs_base, gs_base;
  uint16_t segments[8];  // selectors, by their number in encodings: ES CS SS DS FS GS
  uint64_t unused[2];
  // x87, SSE and AVX state as XSAVE stores it, with zeros for the addresses of the last x87
  // instruction and its operand.
  uint8_t state[THREAD_FLOAT_BYTES] __attribute__((aligned(64)));
};

// The memory that translated code reaches through GS; context.h has the places.
struct direct_context {
  uint64_t gpr[16];
  uint32_t flags, flags_unused;
  uint64_t rip;
  int64_t budget;
  uint64_t host_stack;
  const uint8_t *target;
  uint64_t fs_base, gs_base;
  uint8_t *pointer;
  uint64_t exit;
  void (*leave)(void), (*leave_unit)(void), (*miss)(void);
  uint64_t *log;
  uint32_t saved_flags, saved_unused;
  uint64_t branch;
  uint64_t spare;
  uint64_t host_gpr[16];
  uint64_t stack_read[2], stack_write[2];
  uint32_t formula, formula_unused;
  uint64_t first, second;
  uint64_t branches;
  uint64_t shifted;
  uint64_t newest;
  uint64_t count;
  uint64_t unused3[4];
  struct direct_logged_store *stores;
  uint8_t bounce[192];
  uint64_t return_gpr[16], return_rip;
  uint32_t return_flags, return_unused;
  void (*settle)(void);
  uint64_t unused4[21];
  uint64_t calls[CONTEXT_CALLS_COUNT];
};

#define AT(field, offset) _Static_assert(offsetof(struct direct_context, field) == (offset), "context.h")
AT(gpr, CONTEXT_GPR);
AT(flags, CONTEXT_FLAGS);
AT(rip, CONTEXT_RIP);
AT(budget, CONTEXT_BUDGET);
AT(host_stack, CONTEXT_HOST_STACK);
AT(target, CONTEXT_TARGET);
AT(fs_base, CONTEXT_FS_BASE);
AT(gs_base, CONTEXT_GS_BASE);
AT(pointer, CONTEXT_POINTER);
AT(exit, CONTEXT_EXIT);
AT(leave, CONTEXT_LEAVE);
AT(leave_unit, CONTEXT_LEAVE_UNIT);
AT(miss, CONTEXT_MISS);
AT(log, CONTEXT_LOG);
AT(saved_flags, CONTEXT_SAVED_FLAGS);
AT(branch, CONTEXT_BRANCH);
AT(spare, CONTEXT_SPARE);
AT(host_gpr, CONTEXT_HOST_GPR);
AT(stack_read, CONTEXT_STACK_READ);
AT(stack_write, CONTEXT_STACK_WRITE);
AT(formula, CONTEXT_FORMULA);
AT(first, CONTEXT_FIRST);
AT(second, CONTEXT_SECOND);
AT(branches, CONTEXT_BRANCHES);
AT(shifted, CONTEXT_SHIFTED);
AT(newest, CONTEXT_NEWEST);
AT(count, CONTEXT_COUNT);
AT(stores, CONTEXT_STORES);
AT(bounce, CONTEXT_BOUNCE);
AT(return_gpr, CONTEXT_RETURN_GPR);
AT(return_rip, CONTEXT_RETURN_RIP);
AT(return_flags, CONTEXT_RETURN_FLAGS);
AT(settle, CONTEXT_SETTLE);
AT(calls, CONTEXT_CALLS);
_Static_assert(sizeof(struct direct_context) <= CONTEXT_BYTES, "context.h");
#undef AT

struct direct_block;
struct direct_blocks;
struct direct_point;

// ---- runs -------------------------------------------------------------------------

// Why a run stopped, as arch.StopReason has it.
enum direct_stop {
  STOP_NONE,
  STOP_BUDGET,
  STOP_SYSCALL,
  STOP_FAULT,
  STOP_NO_MEMORY,
  STOP_EXCEPTION,
  STOP_INTERRUPT,
  STOP_BREAKPOINT,
  STOP_PAUSE,
  STOP_SYNC,
  STOP_ENGINE,
  STOP_LOG,
};

// Further reasons to stop.
#define RUN_EXACT 1u  // at the first instruction at or after a budget
#define RUN_PAUSE 2u
#define RUN_SYNC 4u
#define RUN_PASS 8u   // not at a breakpoint at the first instruction

#define VECTOR_DIVIDE 0u
#define VECTOR_DEBUG 1u
#define VECTOR_BREAKPOINT 3u
#define VECTOR_INVALID_OPCODE 6u
#define VECTOR_STACK 12u
#define VECTOR_PROTECTION 13u
#define VECTOR_FLOAT 16u
#define VECTOR_ALIGNMENT 17u
#define VECTOR_SIMD 19u

// ---- address translation ------------------------------------------------------------

#define BANKS 8u

// The tables of an address space that was run lately.
struct direct_bank {
  struct direct_context *context;  // and the tables after it
  uint64_t version;                // of the space whose pages are in the tables, 0: none
  uint64_t code;                   // the number (direct_code_number) of the space that the units are of
  uint64_t used;                   // when it was last taken into use
  uint32_t *filled;                // entries in use: number << 1 | whether for writing
  uint32_t nfilled, room;
  uint64_t epoch;                  // of the units and blocks
  struct direct_unit **units;      // by cache_slot
  struct direct_block **blocks;    // by cache_slot
  struct direct_block **last_blocks;  // ... those of the kind BLOCK_LAST
  bool has_targets;                // the table of targets is in use
  uint32_t held;                   // the regions of which blocks are known to be in the space, a bit each
};

#define UNIT_CACHE 4096u

// Where the units and blocks of an address are kept: not by its offset in the page alone, which is the same in each.
static inline unsigned cache_slot(uint64_t pc) { return (unsigned)(pc ^ pc >> 12) & (UNIT_CACHE - 1); }

// ---- units --------------------------------------------------------------------------

// An instruction on its own: decoded, and translated if the host executes it.
struct direct_unit {
  struct direct_insn in;
  const uint8_t *code;    // NULL: C executes it
  uint32_t phys[2];       // the pages of its bytes; the second NO_PAGE unless it lies in two
  uint32_t next;          // of the same hash
  uint32_t next_in_page[2];
  uint64_t logged;        // the code number of the space in which its code was logged last
};

#define NO_PAGE UINT32_MAX

#define UNITS 32768u
#define UNIT_HASH 8192u

struct direct_units {
  struct direct_unit *all;  // from 1 on
  uint32_t n;
  uint32_t *hash;           // by address and page
  uint32_t *in_page;        // by page, the first of its units
  uint64_t epoch;           // another when units have gone
};

// ---- translated code ------------------------------------------------------------------

// Memory for code, mapped twice: written through one, executed through the other. After the latter is memory for data, which
// code can reach relative to the program counter.
struct direct_memory {
  uint8_t *writable, *executable, *data;
  size_t bytes, data_bytes;
};

#define CODE_BYTES ((size_t)184 << 20)
#define UNIT_CODE_BYTES ((size_t)4 << 20)  // of them for units, the first ones
#define UNIT_CODE_FIRST ((size_t)4096)     // after the code that all blocks share

// ---- the engine -------------------------------------------------------------------------

struct direct_engine {
  struct heddle_ram *ram;
  struct heddle_space *space;
  struct direct_thread *thread;
  struct direct_costs costs;
  enum direct_level level;

  struct direct_bank banks[BANKS], *bank;
  struct direct_context *context;  // of the bank in use
  uint64_t banks_used;

  struct direct_memory code;
  size_t unit_code;                // bytes in use
  struct direct_units units;
  struct direct_blocks *blocks;
  bool steps_only;                 // no blocks
  uint16_t heat;                   // of a short block when it is made: HEAT_START, or less in tests
  struct direct_point *crossed;    // where a check failed because of other accesses than its own
  bool code_changed;               // since the processor last fetched all anew

  // The guest's floating-point state is in the host's registers. C that is compiled for
  // them must not be called then.
  bool float_loaded;
  uint32_t host_mxcsr;
  uint64_t flags;                  // RFLAGS but for the arithmetic flags, of the thread that runs

  // Of the current or last run.
  int64_t instruction_limit, cycle_limit, most;
  int64_t instructions_left, cycles_left;
  uint64_t instructions, cycles;   // retired, once the run is over
  uint32_t run_flags;
  uint64_t pause_from;             // the run ends after the first PAUSE at or after this number of instructions
  uint64_t halt_at;                // instructions of the run after which it stops like at a breakpoint
  uint64_t poll_interval, poll_at;
  bool boundary;                   // the PC is where budgets are looked at
  bool passed, pass_sync;          // the breakpoint at the PC, or the reason of RUN_SYNC to stop there, is passed
  uint64_t repeated;               // iterations of repeated instructions but the last of each

  enum direct_stop stop;
  uint32_t vector;
  enum heddle_access access;
  enum heddle_walk walk;
  uint64_t fault_address;
  int error;

  struct direct_log log;

  // The answers to RDTSC and CPUID.
  uint64_t clock;                  // cycles of the core's clock at the start of the run
  uint32_t core, cores;
  uint32_t tsc_multiplier;         // TSC ticks for 1024 cycles
  bool tsc_instructions;           // a run adds its instructions to the clock, not its cycles

  uint64_t *breakpoints;           // sorted
  size_t nbreakpoints;

  struct heddle_insides inside;    // where the run may end inside an instruction
  struct heddle_buffers *buffers;  // NULL: stores are visible at once
  struct direct_store_log stores;  // of blocks, for the buffers
  struct heddle_private_pages *private_pages;  // NULL: all cores see the same pages
  bool tables_outdated;            // the tables of all banks may have pages that the thread must not see
  bool alone;                      // an instruction is executed on its own
  const struct direct_insn *running;  // the instruction that is executed on its own
  bool has_run;                    // a guest's instruction
  bool stops_at_sync;              // a run with RUN_SYNC: no block has atomic instructions or fences from then on

  // A fault that the host raised in translated code, see signals.c.
  uint32_t host_vector;
  uint64_t host_fault, host_flags;
  uint32_t failed_returns;         // of the host's kernel, since translated code was entered
};

// ---- access.c: guest memory ---------------------------------------------------------------

uint8_t *direct_locate(struct direct_engine *e, uint64_t va, enum heddle_access access);
bool direct_has_page(const struct direct_engine *e, uint64_t va, bool write);
void direct_find_stack(struct direct_engine *e);
bool direct_read(struct direct_engine *e, uint64_t va, void *to, size_t n);
bool direct_write(struct direct_engine *e, uint64_t va, const void *from, size_t n);
bool direct_writable(struct direct_engine *e, uint64_t va, size_t n);
size_t direct_fetch(struct direct_engine *e, uint64_t pc, uint8_t *out, size_t n, uint32_t phys[2]);

// ---- bank.c: tables of pages ----------------------------------------------------------------

bool direct_banks_init(struct direct_engine *e);
void direct_banks_close(struct direct_engine *e);
void direct_bank_choose(struct direct_engine *e);
void direct_bank_refresh(struct direct_engine *e);
void direct_banks_flush(struct direct_engine *e);
void direct_bank_add(struct direct_bank *b, uint64_t va, uint8_t *bytes, bool write);
void direct_bank_remove(struct direct_bank *b, uint64_t va, bool write);
void direct_banks_remove(struct direct_engine *e, uint64_t va, uint64_t page);
void direct_bank_flush(struct direct_bank *b);
void direct_banks_protect(struct direct_engine *e, uint64_t page);

// ---- memory.c and unit.c ----------------------------------------------------------------------

int direct_memory_init(struct direct_memory *m, size_t bytes, size_t data_bytes);
void direct_memory_close(struct direct_memory *m);
bool direct_host_executes(void);
// Whether code is executed where it is written, from now on: for a test on a host that does not notice otherwise that code has
// changed.
void direct_map_once(bool once);

static inline uint8_t *direct_executable(const struct direct_memory *m, const uint8_t *writable) {
  return m->executable + (writable - m->writable);
}

// The number of the loaded space by which translations are kept. While code is logged each space has its own,
// since each one's is to be logged.
static inline uint64_t direct_code_number(const struct direct_engine *e) {
  return e->log.what & LOG_BRANCHES ? e->space->code : e->space->lineage;
}

bool direct_units_init(struct direct_engine *e);
void direct_units_close(struct direct_engine *e);
struct direct_unit *direct_unit_find(struct direct_engine *e, uint64_t pc);

// The unit at pc, see direct_unit_find.
static inline struct direct_unit *direct_unit_at(struct direct_engine *e, uint64_t pc) {
  struct direct_unit *u = e->bank->units[cache_slot(pc)];
  return u && u->in.pc == pc ? u : direct_unit_find(e, pc);
}
void direct_units_drop_page(struct direct_engine *e, uint64_t page);
void direct_drop_stale(struct direct_engine *e);
void direct_check_units(struct direct_engine *e);

// ---- block.c and blocks.c: see block.h -----------------------------------------------------------

bool direct_blocks_init(struct direct_engine *e);
void direct_blocks_close(struct direct_engine *e);
void direct_blocks_drop_page(struct direct_engine *e, uint64_t page);
void direct_blocks_isolate_page(struct direct_engine *e, uint64_t page);
void direct_blocks_drop_all(struct direct_engine *e);
void direct_blocks_drop_address(struct direct_engine *e, uint64_t va, bool whole);
bool direct_run_blocks(struct direct_engine *e);
int64_t direct_free_instructions(const struct direct_engine *e);

// ---- step.c: one instruction --------------------------------------------------------------------

enum direct_stop direct_step(struct direct_engine *e, struct direct_unit *u);
enum direct_stop direct_raise(struct direct_engine *e, uint32_t vector);
uint64_t direct_address_of(struct direct_engine *e, const struct direct_insn *in);
bool direct_check_address(struct direct_engine *e, const struct direct_insn *in, uint64_t va, uint64_t n);
bool direct_push(struct direct_engine *e, uint64_t value, unsigned width);
bool direct_pop(struct direct_engine *e, uint64_t *value, unsigned width);
enum direct_stop direct_fault(struct direct_engine *e);

// ---- emulate.c, strings.c, float.c -----------------------------------------------------------------

enum direct_stop direct_emulate(struct direct_engine *e, const struct direct_insn *in);
enum direct_stop direct_string(struct direct_engine *e, const struct direct_insn *in);
uint64_t direct_string_iterations(struct direct_engine *e, const struct direct_insn *in, uint64_t most);
enum direct_stop direct_emulate_float(struct direct_engine *e, const struct direct_insn *in);
void direct_cpuid(const struct direct_engine *e, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
enum direct_stop direct_approximate(struct direct_engine *e, const struct direct_insn *in);
void direct_float_load(struct direct_engine *e);
void direct_float_park(struct direct_engine *e);
void direct_float_init(struct direct_thread *t);
void direct_float_set(struct direct_thread *t, const void *image);

// ---- signals.c -----------------------------------------------------------------------------------------

int direct_signals_init(void);
void direct_signals_enter(struct direct_engine *e);
void direct_signals_leave(void);
void direct_use_context(const struct direct_context *c);
const void *direct_fault_target(struct direct_engine *e, uint64_t pc);

uint64_t direct_enter(void);
uint64_t direct_enter_unit(void);
uint64_t direct_return_miss(void);
uint64_t direct_enter_logged(void);
void direct_leave(void);
void direct_leave_logged(void);
void direct_leave_unit(void);
void direct_trap(void);
void direct_serialize(void);
void direct_leave_fault(void);
void direct_miss(void);
void direct_settle(void);
extern const char direct_ways_begin[], direct_ways_end[], direct_return_jump[], direct_settle_end[];
_Noreturn void direct_return_signal(const void *state, uint64_t components, const void *mask);

// ---- run.c ----------------------------------------------------------------------------------------------

struct direct_limit {
  uint64_t instructions, most, cycles;
  uint32_t flags;
  uint64_t pause_from;
};

int direct_open(struct direct_engine **out, struct heddle_ram *ram, uint32_t cores, enum direct_level level,
                const struct direct_costs *costs);
void direct_close(struct direct_engine *e);
enum direct_stop direct_run(struct direct_engine *e, const struct direct_limit *limit);
enum direct_stop direct_resume(struct direct_engine *e);
bool direct_has_breakpoint(const struct direct_engine *e, uint64_t pc);
int direct_set_breakpoints(struct direct_engine *e, const uint64_t *sorted, size_t n);
struct direct_thread *direct_new_thread(const struct direct_thread *from);

// ---- inspectnext.c: the next instruction, between runs ---------------------------------------------------

bool direct_decode_next(struct direct_engine *e, uint64_t pc, struct heddle_regs *regs, struct heddle_insn *out);
size_t direct_operands(struct direct_engine *e, struct heddle_operand *out);
bool direct_repetition_over(struct direct_engine *e);
uint32_t direct_order_at(struct direct_engine *e, uint64_t pc);

// The instruction at pc alone, with its pages and counts.
enum direct_stop direct_step_at(struct direct_engine *e, uint64_t pc);

// ---- inside.c: runs that end inside instructions -----------------------------------------------------

void direct_inside_init(struct direct_engine *e);
enum direct_stop direct_inside_begin(struct direct_engine *e);
enum direct_stop direct_inside_end(struct direct_engine *e, uint64_t pc);
int64_t direct_highest_cost(const struct direct_engine *e);

// ---- buffers.c ----------------------------------------------------------------------------------------

bool direct_buffers_open(struct direct_engine *e, uint32_t capacity);
void direct_buffer_logged(struct direct_engine *e, const struct direct_logged_store *end);
void direct_buffer_address(struct direct_engine *e, uint64_t va, uint64_t page);
void direct_buffer_store(struct direct_engine *e, const struct direct_insn *in, uint64_t va, const uint8_t *old, size_t n);

// ---- privatepages.c -----------------------------------------------------------------------------------

bool direct_private_open(struct direct_engine *e);
void direct_private_close(struct direct_engine *e);
bool direct_find_store(struct direct_engine *e, const struct direct_insn *in, uint64_t *at, uint32_t *size);
bool direct_needs_page(struct direct_engine *e, const struct direct_insn *in);
enum heddle_walk direct_private_fill(struct direct_engine *e, uint64_t va, enum heddle_access access, uint64_t *pte);

// ---- host.c ---------------------------------------------------------------------------------------------

bool direct_host_has(enum direct_level level);

// ---- small things --------------------------------------------------------------------------------------------

static inline uint64_t direct_instructions_now(const struct direct_engine *e) {
  return (uint64_t)(e->instruction_limit - e->instructions_left);
}

static inline uint64_t direct_cycles_now(const struct direct_engine *e) { return (uint64_t)(e->cycle_limit - e->cycles_left); }

// Reports whether a budget of the run is used up.
static inline bool direct_is_exhausted(const struct direct_engine *e) { return e->instructions_left <= 0 || e->cycles_left <= 0; }

static inline uint64_t flags_of(const struct direct_context *c) {
  return (c->flags >> 8 & 0xd5) | (uint64_t)(c->flags & 1) << 11;
}

static inline void set_flags_of(struct direct_context *c, uint64_t rflags) {
  c->flags = (uint32_t)((rflags & 0xd5) << 8 | (rflags >> 11 & 1));
}

static inline void direct_registers(const struct direct_engine *e, struct heddle_regs *out) {
  const struct direct_context *c = e->context;
  for (unsigned r = 0; r < 16; r++) out->gpr[r] = c->gpr[r];
  out->rip = c->rip;
  out->rflags = e->flags | flags_of(c);
  out->fs_base = c->fs_base;
  out->gs_base = c->gs_base;
}

static inline bool is_canonical(uint64_t va) { return (uint64_t)((int64_t)(va << 16) >> 16) == va; }

static inline uint64_t page_of(uint64_t va) { return va & ~(HEDDLE_PAGE_SIZE - 1); }
static inline uint64_t offset_of(uint64_t va) { return va & (HEDDLE_PAGE_SIZE - 1); }

// Not memcpy, which uses vector registers.
static inline void copy_bytes(void *to, const void *from, size_t n) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

#endif
