// mprotect: each protection, write barriers by SIGSEGV, si_code and si_addr, parts of mappings, refused arguments.
#include "conformance.h"

#include <setjmp.h>

enum { PAGE = 4096, PAGES = 16 };

static char *base;
static volatile int faults, last_code;
static char *volatile last_addr;
static sigjmp_buf env;

static void barrier(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	faults++;
	last_code = si->si_code;
	last_addr = si->si_addr;
	char *page = (char *)((uintptr_t)si->si_addr & ~4095ul);
	CHECK(page >= base && page < base + PAGES * PAGE);
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void escape(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	last_code = si->si_code;
	last_addr = si->si_addr;
	siglongjmp(env, sig);
}

static const char *access_page(char *p, int how)
{
	if (sigsetjmp(env, 1) != 0)
		return last_addr != p ? "wrong address" : last_code == SEGV_ACCERR ? "ACCERR" : last_code == SEGV_MAPERR ? "MAPERR" : "?";
	if (how == 'r')
		(void)*(volatile char *)p;
	else if (how == 'w')
		*(volatile char *)p = (char)0xc3; // ret
	else
		((void (*)(void))p)();
	return "ok";
}

int main(void)
{
	base = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	on_siginfo(SIGSEGV, barrier, 0);
	for (int round = 0; round < 3; round++) {
		faults = 0;
		for (int i = 0; i < PAGES * PAGE; i += 100)
			base[i]++;
		printf("faults %d, code %s, address right %d\n", faults, last_code == SEGV_ACCERR ? "ACCERR" : "?",
		       last_addr >= base + (PAGES - 1) * PAGE);
		CHECK(mprotect(base, PAGES * PAGE, round == 0 ? PROT_READ : PROT_NONE) == 0);
	}

	on_siginfo(SIGSEGV, escape, 0);
	static const struct {
		const char *name;
		int prot;
	} kind[] = {
		{"none", PROT_NONE},
		{"read", PROT_READ},
		{"read write", PROT_READ | PROT_WRITE},
		{"read exec", PROT_READ | PROT_EXEC},
		{"all", PROT_READ | PROT_WRITE | PROT_EXEC},
	};
	for (int k = 0; k < LEN(kind); k++) {
		char *p = base + 3 * PAGE;
		CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
		*p = (char)0xc3;
		CHECK(mprotect(p, PAGE, kind[k].prot) == 0);
		printf("%s: read %s,", kind[k].name, access_page(p, 'r'));
		printf(" write %s,", access_page(p, 'w'));
		printf(" execute %s\n", access_page(p, 'x'));
	}
	CHECK(munmap(base + 5 * PAGE, PAGE) == 0);
	printf("unmapped: read %s,", access_page(base + 5 * PAGE, 'r'));
	printf(" write %s,", access_page(base + 5 * PAGE, 'w'));
	printf(" execute %s\n", access_page(base + 5 * PAGE, 'x'));

	SHOW(mprotect(base + 1, PAGE, PROT_READ));
	SHOW(mprotect(base, 0, PROT_READ));
	SHOW(mprotect(base, PAGE, 0x1000));
	SHOW(mprotect(base + 5 * PAGE, PAGE, PROT_READ));
	// The part before the hole is changed nevertheless.
	CHECK(mprotect(base, 5 * PAGE, PROT_NONE) == 0);
	SHOW(mprotect(base + 4 * PAGE, 3 * PAGE, PROT_READ));
	printf("before the hole: read %s,", access_page(base + 4 * PAGE, 'r'));
	printf(" write %s\n", access_page(base + 4 * PAGE, 'w'));
	return 0;
}
