// Numbers of system calls: numbers unknown to Linux, numbers of the x32 ABI, and the upper half of RAX, which is ignored.
#include "conformance.h"

static long raw(unsigned long number)
{
	long result;
	__asm__ volatile("xorl %%r10d, %%r10d\n\txorl %%r8d, %%r8d\n\txorl %%r9d, %%r9d\n\tsyscall"
			 : "=a"(result)
			 : "a"(number), "D"(-1), "S"(-1), "d"(-1)
			 : "rcx", "r8", "r9", "r10", "r11", "memory");
	return result;
}

int main(void)
{
	// Removed, never made, or reserved for other systems.
	static const unsigned long unknown[] = {
		-1UL, -2UL, 134, 156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 205, 211, 214, 215, 236, 400, 423,
		1008, 0x7fffffff, 0x80000000, 0x80000027, 0xffffffff, 0x40000000, 0x40000000 | SYS_getpid, 0x40000000 | 520,
	};
	for (int i = 0; i < LEN(unknown); i++)
		printf("%#lx: %s\n", unknown[i], errname(-raw(unknown[i])));
	printf("%d\n", raw(0x100000000UL | SYS_getpid) == getpid());
	printf("%d\n", raw(0xffffffff00000000UL | SYS_getpid) == getpid());
	errno = 0;
	SHOW(syscall(-1));
	SHOW(syscall(156));
	return 0;
}
