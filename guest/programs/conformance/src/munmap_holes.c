// munmap of the middle, the ends and across several mappings; the rest keeps its contents; holes fault.
#include "conformance.h"

#include <setjmp.h>

enum { PAGE = 4096, PAGES = 12 };

static char *base;
static sigjmp_buf env;
static volatile int code;

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	code = si->si_code;
	siglongjmp(env, sig);
}

static void show(const char *what)
{
	printf("%-22s", what);
	for (int i = 0; i < PAGES; i++) {
		if (sigsetjmp(env, 1) == 0)
			printf("%c", base[i * PAGE + 77]);
		else
			printf("%c", code == SEGV_MAPERR ? '.' : '#');
	}
	printf("\n");
}

int main(void)
{
	on_siginfo(SIGSEGV, handler, 0);
	base = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	for (int i = 0; i < PAGES; i++)
		base[i * PAGE + 77] = 'a' + i;
	show("whole");
	CHECK(munmap(base + 3 * PAGE, 2 * PAGE) == 0);
	show("middle");
	CHECK(munmap(base, PAGE) == 0);
	show("front");
	CHECK(munmap(base + 11 * PAGE, 100) == 0);
	show("end, odd length");
	CHECK(mprotect(base + 6 * PAGE, PAGE, PROT_NONE) == 0);
	show("no access");
	CHECK(munmap(base + 2 * PAGE, 6 * PAGE) == 0);
	show("across holes");
	CHECK(munmap(base, PAGES * PAGE) == 0);
	show("everything");

	// Mapped again, the memory is zero.
	void *p = mmap(base, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(p == base);
	for (int i = 0; i < PAGES * PAGE; i++)
		CHECK(base[i] == 0);
	printf("zero again\n");
	return 0;
}
