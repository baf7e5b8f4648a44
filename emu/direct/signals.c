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

static void on_signal(int sig, siginfo_t *info, void *context) {
  ucontext_t *u = context;
  greg_t *regs = u->uc_mcontext.gregs;
  struct direct_engine *e = running;
  // Those that the kernel makes of an instruction; anyone may send the others.
  if (!in_translated_code(e, (uint64_t)regs[REG_RIP]) || info->si_code <= 0) {
    forward(sig, info, context);
    return;
  }
  e->host_vector = (uint32_t)regs[REG_TRAPNO];
  e->host_fault = (uint64_t)regs[REG_RIP];
  e->host_flags = (uint64_t)regs[REG_EFL];
  regs[REG_RIP] = (greg_t)(uintptr_t)direct_fault_target(e, (uint64_t)regs[REG_RIP]);
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
