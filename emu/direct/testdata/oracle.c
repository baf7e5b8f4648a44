// Executes single instructions on the host's processor, for comparison with the engine: the
// oracle of oracle_test.go, which has the layout of the data in the pipes.
//
// It is a program of its own without a C library, so that its memory can be where the guest's is,
// and an instruction can do what it likes to the registers. A case is loaded by returning from a
// signal; an INT3 after the instruction, or the trap flag, or a fault, brings the state back. The
// trap flag costs ten times as much on some virtual machines.
#include <stddef.h>
#include <stdint.h>

#define DATA 0x10000000u   // two pages to read and write, one to read, one that is not there
#define CODE 0x20000000u   // two pages, then none
#define CODE_WRITABLE 0x6ed000000000u  // the same to write
#define PAGE 4096u
#define DATA_BYTES (3 * PAGE)
#define CODE_MOST 64
#define CHANGES 96

struct state {
  uint64_t gpr[16], rip, rflags, fs_base, gs_base;
  uint8_t fp[832];
};

struct input {
  struct state state;
  uint64_t code_at;
  uint32_t ncode;
  uint32_t steps;  // 0: up to a byte that no case has written, which is an INT3
  uint8_t code[CODE_MOST];
};

struct output {
  struct state state;
  uint64_t signal, trap, error, address, done;
  uint64_t nchanges;
  struct { uint64_t at, value; } changes[CHANGES];
};

// ---- system calls ---------------------------------------------------------------

static long call(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

enum { SYS_read = 0, SYS_write = 1, SYS_mmap = 9, SYS_mprotect = 10, SYS_sigaction = 13, SYS_sigreturn = 15, SYS_exit = 60, SYS_ftruncate = 77, SYS_sigaltstack = 131, SYS_arch_prctl = 158, SYS_memfd_create = 319 };

static void copy(void *to, const void *from, size_t n) { __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }

static void get(void *to, size_t n) {
  for (uint8_t *at = to; n;) {
    long done = call(SYS_read, 0, (long)at, (long)n, 0, 0, 0);
    if (done <= 0) call(SYS_exit, 0, 0, 0, 0, 0, 0);
    at += done;
    n -= (size_t)done;
  }
}

static void put(const void *from, size_t n) {
  for (const uint8_t *at = from; n;) {
    long done = call(SYS_write, 1, (long)at, (long)n, 0, 0, 0);
    if (done <= 0) call(SYS_exit, 1, 0, 0, 0, 0, 0);
    at += done;
    n -= (size_t)done;
  }
}

// ---- the frame of a signal ---------------------------------------------------------

struct siginfo { int32_t signo, errno_, code, pad; uint64_t address; uint8_t rest[104]; };

struct ucontext {
  uint64_t flags, link;
  uint64_t stack[3];
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, efl;
  uint16_t cs, gs, fs, ss;
  uint64_t err, trapno, oldmask, cr2;
  uint8_t *fp;
  uint64_t reserved[8];
};

static struct input in;
static struct output out;
static struct ucontext home;
static int loaded;

static uint64_t *registers(struct ucontext *u, int i) {
  uint64_t *all[] = {&u->rax, &u->rcx, &u->rdx, &u->rbx, &u->rsp, &u->rbp, &u->rsi, &u->rdi,
                     &u->r8,  &u->r9,  &u->r10, &u->r11, &u->r12, &u->r13, &u->r14, &u->r15};
  return all[i];
}

#define TF 0x100u
#define RF 0x10000u
#define STATE_COMPONENTS 512
#define STATE_AVX 576

static uint64_t *components(uint8_t *fp) { return (uint64_t *)(fp + STATE_COMPONENTS); }

static void load(struct ucontext *u) {
  for (int i = 0; i < 16; i++) *registers(u, i) = in.state.gpr[i];
  u->rip = in.state.rip;
  u->efl = in.state.rflags | (in.steps ? TF : 0);
  copy(u->fp, in.state.fp, 416);
  *components(u->fp) = 7;
  copy(u->fp + STATE_AVX, in.state.fp + STATE_AVX, 256);
}

static void zero(uint8_t *at, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile uint8_t *)at)[i] = 0;
}

static void save(struct ucontext *u) {
  for (int i = 0; i < 16; i++) out.state.gpr[i] = *registers(u, i);
  out.state.rip = u->rip;
  out.state.rflags = u->efl & ~(uint64_t)(TF | RF);
  copy(out.state.fp, u->fp, 512);
  copy(out.state.fp + STATE_AVX, u->fp + STATE_AVX, 256);
  uint64_t present = *components(u->fp);
  if (!(present & 2)) zero(out.state.fp + 160, 256);
  if (!(present & 4)) zero(out.state.fp + STATE_AVX, 256);
}

void on_signal(int sig, struct siginfo *info, struct ucontext *u) {
  if (!loaded) {
    copy(&home, u, sizeof home);
    loaded = 1;
    load(u);
    return;
  }
  out.done++;
  if (sig == 5 && u->trapno == 1 && out.done < in.steps) {
    u->efl |= TF;
    return;
  }
  if (!in.steps && sig == 5 && u->trapno == 3) {
    u->trapno = 1;
    u->rip--;
  }
  out.signal = (uint64_t)sig;
  out.trap = u->trapno;
  out.error = u->err;
  out.address = u->trapno == 14 ? u->cr2 : info->address;
  save(u);
  uint8_t *fp = u->fp;
  copy(u, &home, sizeof home);
  u->fp = fp;
  loaded = 0;
}

__asm__(".globl restorer\nrestorer: mov $15, %eax\n syscall\n"
        ".globl handler\nhandler: cld\n jmp on_signal\n"
        ".globl _start\n_start: and $-16, %rsp\n call start\n");
void restorer(void), handler(void);

// ---- cases --------------------------------------------------------------------------

static uint8_t original[DATA_BYTES];
static uint8_t stack[65536] __attribute__((aligned(4096)));

static void find_changes(void) {
  uint64_t *now = (uint64_t *)(uintptr_t)DATA, *was = (uint64_t *)original;
  out.nchanges = 0;
  for (unsigned i = 0; i < DATA_BYTES / 8; i++) {
    if (now[i] == was[i]) continue;
    if (out.nchanges < CHANGES) {
      out.changes[out.nchanges].at = DATA + 8 * i;
      out.changes[out.nchanges].value = now[i];
    }
    out.nchanges++;
    now[i] = was[i];
  }
}

static void fill(volatile uint8_t *at, size_t n, uint8_t value) {
  for (size_t i = 0; i < n; i++) at[i] = value;
}

static void run(void) {
  copy((void *)(CODE_WRITABLE + (in.code_at - CODE)), in.code, in.ncode);
  out.done = 0;
  __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es\n\tmov %0, %%fs\n\tmov %0, %%gs" : : "r"(0));
  call(SYS_arch_prctl, 0x1002, (long)in.state.fs_base, 0, 0, 0, 0);
  call(SYS_arch_prctl, 0x1001, (long)in.state.gs_base, 0, 0, 0, 0);
  __asm__ volatile("int3" : : : "memory");
  find_changes();
  fill((uint8_t *)(CODE_WRITABLE + (in.code_at - CODE)), in.ncode, 0xcc);
}

static void map(uint64_t at, uint64_t n, int rights) { call(SYS_mmap, (long)at, (long)n, rights, 0x32, -1, 0); }

// The pipes carry the data pages first, then batches: their number of cases, and the cases.
__attribute__((used)) void start(void) {
  struct { void (*handler)(void); uint64_t flags; void (*restorer)(void); uint64_t mask; } action = {
      handler, 0x4 | 0x08000000 | 0x04000000, restorer, ~(uint64_t)0};
  struct { void *at; uint64_t flags, size; } alternate = {stack, (uint64_t)1 << 31, sizeof stack};
  map(DATA, DATA_BYTES, 3);
  long fd = call(SYS_memfd_create, (long)"code", 0, 0, 0, 0, 0);
  call(SYS_ftruncate, fd, 2 * PAGE, 0, 0, 0, 0);
  call(SYS_mmap, CODE, 2 * PAGE, 5, 0x11, fd, 0);
  call(SYS_mmap, (long)CODE_WRITABLE, 2 * PAGE, 3, 0x11, fd, 0);
  fill((uint8_t *)CODE_WRITABLE, 2 * PAGE, 0xcc);
  call(SYS_sigaltstack, (long)&alternate, 0, 0, 0, 0, 0);
  static const int signals[] = {4, 5, 7, 8, 11};
  for (int i = 0; i < 5; i++) call(SYS_sigaction, signals[i], (long)&action, 0, 8, 0, 0);
  get(original, sizeof original);
  copy((void *)(uintptr_t)DATA, original, sizeof original);
  call(SYS_mprotect, DATA + 2 * PAGE, PAGE, 1, 0, 0, 0);
  for (;;) {
    uint32_t n;
    get(&n, sizeof n);
    for (uint32_t i = 0; i < n; i++) {
      get(&in, sizeof in);
      run();
      put(&out, sizeof out);
    }
  }
}
