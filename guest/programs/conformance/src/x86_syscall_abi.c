// Effects of a system call on registers: RCX and R11 change, no others; 32-bit arguments; FS and GS bases.
#include "conformance.h"

#include <asm/prctl.h>

static long arch_prctl(int code, unsigned long addr)
{
	return syscall(SYS_arch_prctl, code, addr);
}

static _Thread_local int in_fs = 77;
static unsigned long gs_area[4] = {11, 22, 33, 44};

static void *thread(void *arg)
{
	unsigned long base, self, other[2] = {55, 66}, v;
	CHECK(arch_prctl(ARCH_GET_FS, (unsigned long)&base) == 0);
	__asm__("mov %%fs:0, %0" : "=r"(self));
	CHECK(base == self && base != (unsigned long)arg);
	CHECK(arch_prctl(ARCH_SET_GS, (unsigned long)other) == 0);
	for (int i = 0; i < 20; i++) {
		__asm__ volatile("mov %%gs:8, %0" : "=r"(v));
		CHECK(v == 66 && in_fs == 77);
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	uint64_t r[15], flags, rcx, r11, rip;
	__asm__ volatile("push %%rbp\n push %%rbx\n"
			 "mov %0, %%rbp\n"
			 "mov $0x1111, %%rbx\n mov $0x3333, %%rdx\n mov $0x4444, %%rsi\n mov $0x5555, %%rdi\n"
			 "mov $0x8888, %%r8\n mov $0x9999, %%r9\n mov $0xaaaa, %%r10\n mov $0xbbbb, %%r11\n mov $0xcccc, %%rcx\n"
			 "mov $0xdddd, %%r12\n mov $0xeeee, %%r13\n mov $0xf0f0, %%r14\n mov $0xf1f1, %%r15\n"
			 "mov %1, %%eax\n stc\n syscall\n 1:\n"
			 "mov %%rbx, (%%rbp)\n mov %%rdx, 8(%%rbp)\n mov %%rsi, 16(%%rbp)\n mov %%rdi, 24(%%rbp)\n"
			 "mov %%r8, 32(%%rbp)\n mov %%r9, 40(%%rbp)\n mov %%r10, 48(%%rbp)\n mov %%r12, 56(%%rbp)\n"
			 "mov %%r13, 64(%%rbp)\n mov %%r14, 72(%%rbp)\n mov %%r15, 80(%%rbp)\n mov %%rcx, 88(%%rbp)\n"
			 "mov %%r11, 96(%%rbp)\n pushf\n pop 104(%%rbp)\n lea 1b(%%rip), %%rcx\n mov %%rcx, 112(%%rbp)\n"
			 "pop %%rbx\n pop %%rbp\n"
			 :
			 : "r"(r), "i"(SYS_getppid)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	for (int i = 0; i < 11; i++)
		printf("%lx ", r[i]);
	rcx = r[11], r11 = r[12], flags = r[13], rip = r[14];
	printf("\nrcx is the next instruction %d, r11 is the flags %d, carry kept %d\n", rcx == rip, (r11 & 0xcd5) == (flags & 0xcd5),
	       (int)(flags & 1));
	// Descriptors and the like are 32 bits wide: upper halves are ignored.
	long n;
	__asm__ volatile("syscall" : "=a"(n) : "0"(SYS_dup), "D"(0xdeadbeef00000001ul) : "rcx", "r11", "memory");
	printf("dup of descriptor 1: %ld\n", n);
	// A value in an unused sixth argument has no effect.
	__asm__ volatile("mov $0x1234567890, %%r9\n syscall" : "=a"(n) : "0"(SYS_close), "D"(n) : "rcx", "r9", "r11", "memory");
	printf("close: %ld\n", n);

	unsigned long base, v, self;
	SHOW(arch_prctl(ARCH_GET_FS, (unsigned long)&base));
	__asm__("mov %%fs:0, %0" : "=r"(self));
	printf("fs base is the thread pointer %d\n", base == self);
	SHOW(arch_prctl(ARCH_SET_GS, (unsigned long)gs_area));
	SHOW(arch_prctl(ARCH_GET_GS, (unsigned long)&v));
	printf("gs base as set %d\n", v == (unsigned long)gs_area);
	__asm__("mov %%gs:16, %0" : "=r"(v));
	printf("gs:16 = %lu\n", v);
	pthread_t t[3];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(thread, (void *)base);
	for (int i = 0; i < LEN(t); i++)
		finish(t[i]);
	__asm__ volatile("mov %%gs:24, %0" : "=r"(v));
	printf("gs:24 = %lu, after the threads\n", v);
	SHOW(arch_prctl(ARCH_SET_GS, 0xffff800000000000ul));
	SHOW(arch_prctl(ARCH_SET_FS, 0xffff800000000000ul));
	SHOW(arch_prctl(0x7777, 0));
	SHOW(arch_prctl(ARCH_GET_GS, 16));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		__asm__ volatile("mov %%gs:8, %0" : "=r"(v));
		_exit(v);
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	return 0;
}
