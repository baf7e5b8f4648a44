// Threads without a C library, whose bookkeeping would have events of its own: a program defines
// thread(number) and main(threads), which ends its thread and not the process.
typedef unsigned long word;

static long call(long number, word a, word b, word c, word d, word e) {
  long result;
  register word r10 __asm__("r10") = d, r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
}

static void thread(long number);

__attribute__((noreturn)) static void end_thread(void) {
  call(60, 0, 0, 0, 0, 0);
  __builtin_unreachable();
}

static char stacks[32][4096] __attribute__((aligned(4096)));

__attribute__((noreturn, used)) static void begin(long number) {
  thread(number);
  end_thread();
}

static void create(long number) {
  // CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
  register word r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
  long result;
  char *top = stacks[number] + sizeof stacks[number];
  __asm__ volatile(
      "mov %[number], %%r12\n\t"
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r12, %%rdi\n\t"
      "call begin\n"
      "1:"
      : "=a"(result)
      : "a"(56L), "D"(0x50f00L), "S"(top), "d"(0L), "r"(r10), "r"(r8), [number] "r"(number)
      : "rcx", "r11", "r12", "memory");
}

static void fail(void) { call(231, 1, 0, 0, 0, 0); }

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

static void run(void);

__attribute__((noreturn)) void _start(void) {
  run();
  end_thread();
}
