// Faults that the host raises in translated code, and the host's signals while the stack
// pointer is the guest's.
//
// A divide error or an unmasked floating-point exception in translated code is the guest's. The
// handler sends the thread to a way out of translated code; everything else goes to the handlers
// that were there before, which are those of the Go runtime.
//
// Signals of all kinds arrive while the stack pointer has any value. They run on the thread's
// alternate stack, which the Go runtime has set up. A guest's stack pointer may lie within it;
// with SS_AUTODISARM the kernel does not take that for a signal within a signal.
#define _GNU_SOURCE
#include "engine.h"

#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif
#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE (1 << 1)
#endif

static const int handled[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define HANDLED (sizeof handled / sizeof handled[0])

static struct sigaction before[HANDLED];
static bool has_fsgsbase;

// The engine whose run the thread is in, and the thread's GS base.
static __thread struct direct_engine *running;
static __thread const void *gs_base;
static __thread bool prepared;

static const struct sigaction *action_before(int sig) {
  for (size_t i = 0; i < HANDLED; i++)
    if (handled[i] == sig) return &before[i];
  abort();
}

static void forward(int sig, siginfo_t *info, void *context) {
  const struct sigaction *a = action_before(sig);
  if (a->sa_flags & SA_SIGINFO) a->sa_sigaction(sig, info, context);
  else if (a->sa_handler == SIG_DFL) sigaction(sig, a, NULL);  // the fault happens again
  else if (a->sa_handler != SIG_IGN) a->sa_handler(sig);
}

static bool in_translated_code(const struct direct_engine *e, uint64_t pc) {
  return e && pc - (uint64_t)(uintptr_t)e->code.executable < e->code.bytes;
}

// ---- returns to a stack pointer that is not canonical ---------------------------------------
//
// Hosts differ in whether their kernel can return to a program whose stack pointer is not
// canonical, from an interrupt, a page fault or a signal handler. One that cannot raises SIGSEGV
// where the program would have continued. A virtual machine's host may execute the next instruction
// in software instead, and raises SIGILL if it has not got that instruction. The handler then returns
// without the kernel.

#define MAGIC_XSTATE 0x46505853u  // FP_XSTATE_MAGIC1 of asm/sigcontext.h

// The kernel's note in a signal frame's floating-point state, after 464 bytes of it.
struct frame_note {
  uint32_t magic, size;
  uint64_t components;
};

static bool is_between(uint64_t pc, const void *begin, const void *end) {
  return pc >= (uint64_t)(uintptr_t)begin && pc < (uint64_t)(uintptr_t)end;
}

// Reports whether pc is in code of heddle's that has the guest's stack pointer, none of which can be refused.
static bool in_ways(uint64_t pc) {
  return is_between(pc, direct_ways_begin, direct_ways_end) ||
         is_between(pc, (const void *)(uintptr_t)direct_settle, direct_settle_end);
}

// The general registers of a signal frame, in the order of encoding.
static const int frame_order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// Reports whether the operand's address is not canonical: that of a page which an entry for the stack
// does not have.
static bool is_nowhere(const struct direct_insn *in, const greg_t *regs) {
  const struct direct_operand *m = &in->memory;
  bool plain = (in->what & INSN_MEMORY) && m->base != NO_REGISTER && m->index == NO_REGISTER && !m->segment;
  return plain && !is_canonical((uint64_t)regs[frame_order[m->base]] + (uint64_t)m->disp);
}

// Reports whether an instruction of translated code can raise the exception itself.
static bool can_be_refused(const struct direct_engine *e, const greg_t *regs) {
  struct direct_insn in;
  uint8_t bytes[15];
  uint64_t pc = (uint64_t)regs[REG_RIP];
  copy_bytes(bytes, (const void *)(uintptr_t)pc, sizeof bytes);
  if (direct_decode(DIRECT_V3, &e->costs, bytes, sizeof bytes, pc, &in) != DECODED) return false;
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
      return true;
    default:
      return (in.what & INSN_ALIGNED) || is_nowhere(&in, regs);
  }
}

// The number of times that returning to translated code fails after one entry into it, after which the
// instruction itself is taken for the cause.
#define FAILED_RETURNS 8u

// Reports whether the signal says that the host could not return to this place. An instruction of a block
// that may be the cause is executed again as a unit.
static bool is_failed_return(struct direct_engine *e, int sig, const siginfo_t *info, const greg_t *regs) {
  uint64_t pc = (uint64_t)regs[REG_RIP];
  bool refused = sig == SIGSEGV && info->si_code == SI_KERNEL, unknown = sig == SIGILL && info->si_code > 0;
  if (!e || !(refused || unknown) || is_canonical((uint64_t)regs[REG_RSP])) return false;
  if (in_ways(pc)) return true;
  if (!in_translated_code(e, pc)) return false;
  if (refused && !can_be_refused(e, regs)) return true;
  bool in_block = pc - (uint64_t)(uintptr_t)e->code.executable >= UNIT_CODE_BYTES;
  if (refused && in_block) return false;
  return ++e->failed_returns < FAILED_RETURNS;
}

static _Noreturn void return_alone(struct direct_engine *e, const ucontext_t *u) {
  const greg_t *regs = u->uc_mcontext.gregs;
  struct direct_context *c = e->context;
  // Otherwise this has happened at the end of such a return, and all is still there.
  if ((uint64_t)regs[REG_RIP] != (uint64_t)(uintptr_t)direct_return_jump) {
    uint64_t flags = (uint64_t)regs[REG_EFL];
    for (unsigned i = 0; i < 16; i++) c->return_gpr[i] = (uint64_t)regs[frame_order[i]];
    c->return_rip = (uint64_t)regs[REG_RIP];
    c->return_flags = (uint32_t)((flags & 0xd5) << 8 | (flags >> 11 & 1));
  }
  const struct frame_note *note = (const void *)((const uint8_t *)u->uc_mcontext.fpregs + 464);
  sigaltstack(&u->uc_stack, NULL);
  direct_return_signal(u->uc_mcontext.fpregs, note->magic == MAGIC_XSTATE ? note->components : 0, &u->uc_sigmask);
}

static void on_signal(int sig, siginfo_t *info, void *context) {
  ucontext_t *u = context;
  greg_t *regs = u->uc_mcontext.gregs;
  struct direct_engine *e = running;
  if (is_failed_return(e, sig, info, regs)) return_alone(e, u);
  // Those that the kernel makes of an instruction; anyone may send the others.
  if (!in_translated_code(e, (uint64_t)regs[REG_RIP]) || info->si_code <= 0) {
    forward(sig, info, context);
    return;
  }
  e->host_vector = (uint32_t)regs[REG_TRAPNO];
  e->host_fault = (uint64_t)regs[REG_RIP];
  e->host_flags = (uint64_t)regs[REG_EFL];
  regs[REG_RIP] = (greg_t)(uintptr_t)direct_fault_target(e, (uint64_t)regs[REG_RIP]);
  // Hosts differ in whether a signal handler can return to a stack pointer that is not canonical.
  e->context->host_gpr[RSP] = (uint64_t)regs[REG_RSP];
  regs[REG_RSP] = (greg_t)e->context->host_stack;
}

static void install(void) {
  has_fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
  struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
  a.sa_sigaction = on_signal;
  sigfillset(&a.sa_mask);
  for (size_t i = 0; i < HANDLED; i++) sigaction(handled[i], &a, &before[i]);
}

// Takes over the signals of the process, once.
int direct_signals_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, install);
}

#define OWN_STACK 65536u

static void prepare_thread(void) {
  stack_t s;
  prepared = true;
  if (sigaltstack(NULL, &s)) return;
  if (s.ss_flags & SS_DISABLE) {
    s.ss_sp = malloc(OWN_STACK);  // for as long as the thread lives
    s.ss_size = OWN_STACK;
    if (!s.ss_sp) abort();
  }
  s.ss_flags = (int)SS_AUTODISARM;
  sigaltstack(&s, NULL);
}

// The thread is about to run translated code of the engine.
void direct_signals_enter(struct direct_engine *e) {
  if (!prepared) prepare_thread();
  running = e;
  direct_use_context(e->context);
}

void direct_signals_leave(void) { running = NULL; }

// Has GS of the thread point to the context. No other code of the process uses GS.
void direct_use_context(const struct direct_context *c) {
  if (gs_base == c) return;
  gs_base = c;
  if (has_fsgsbase) __asm__ volatile("wrgsbase %0" : : "r"(c));
  else syscall(SYS_arch_prctl, ARCH_SET_GS, c);
}
