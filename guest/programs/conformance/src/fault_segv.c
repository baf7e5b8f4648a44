// SIGSEGV: code and address for unmapped and protected memory, read, write, jump, wild and non-canonical pointers.
#include "conformance.h"

#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf env;
static siginfo_t info;
static greg_t error_code;

static void handler(int sig, siginfo_t *si, void *uc)
{
	info = *si;
	error_code = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_ERR];
	siglongjmp(env, sig);
}

static const char *code(int c)
{
	return c == SEGV_MAPERR ? "MAPERR" : c == SEGV_ACCERR ? "ACCERR" : c == SI_KERNEL ? "KERNEL" : "other";
}

static void show(const char *what, void *p)
{
	printf("%s: %s, address %s, write %d, fetch %d\n", what, code(info.si_code),
	       info.si_addr == p ? "right" : info.si_addr == NULL ? "zero" : "wrong", (int)(error_code >> 1 & 1),
	       (int)(error_code >> 4 & 1));
}

static void try(const char *what, char *p)
{
	char name[64];
	if (sigsetjmp(env, 1) == 0) {
		(void)*(volatile char *)p;
		printf("%s, read: ok\n", what);
	} else {
		snprintf(name, sizeof name, "%s, read", what);
		show(name, p);
	}
	if (sigsetjmp(env, 1) == 0) {
		*(volatile char *)p = 1;
		printf("%s, write: ok\n", what);
	} else {
		snprintf(name, sizeof name, "%s, write", what);
		show(name, p);
	}
	void (*f)(void);
	memcpy(&f, &p, sizeof f);
	if (sigsetjmp(env, 1) == 0)
		f();
	snprintf(name, sizeof name, "%s, jump", what);
	show(name, p);
}

int main(void)
{
	on_siginfo(SIGSEGV, handler, 0);
	char *hole = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED && ro != MAP_FAILED);
	try("no access", hole + 1234);
	try("read only", ro + 5);
	CHECK(munmap(hole + 4096, 4096) == 0);
	try("unmapped", hole + 4096 + 77);
	try("null", (char *)16);
	try("kernel", (char *)0xffffffff80000000ul);

	// A non-canonical address is a general protection fault: no address, no code.
	char *wild = (char *)0x1234567890abcdeful;
	if (sigsetjmp(env, 1) == 0)
		*(volatile char *)wild = 1;
	printf("non-canonical, write: %s, address %s\n", code(info.si_code), info.si_addr == NULL ? "zero" : "not zero");

	// An access that crosses into a forbidden page names its first byte there.
	char *edge = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(edge != MAP_FAILED && mprotect(edge + 4096, 4096, PROT_NONE) == 0);
	if (sigsetjmp(env, 1) == 0)
		*(volatile uint64_t *)(edge + 4096 - 3) = -1ul;
	show("crossing write", edge + 4096);
	printf("nothing was written: %d\n", edge[4095] == 0 && edge[4094] == 0 && edge[4093] == 0);
	if (sigsetjmp(env, 1) == 0)
		(void)*(volatile uint32_t *)(edge + 4096 - 1);
	show("crossing read", edge + 4096);
	return 0;
}
