// SIGBUS beyond the end of a mapped file: BUS_ADRERR with the address, cured by growing the file, caused by cutting it.
#include "conformance.h"

#include <setjmp.h>

enum { PAGE = 4096 };

static sigjmp_buf env;
static volatile int code;
static void *volatile addr;
static int fd;
static volatile int cures;

static void escape(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	code = si->si_code;
	addr = si->si_addr;
	siglongjmp(env, sig);
}

static void cure(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	(void)si;
	cures++;
	CHECK(ftruncate(fd, 8 * PAGE) == 0);
}

static void touch(const char *what, char *p, bool write)
{
	int sig = sigsetjmp(env, 1);
	if (sig == 0) {
		if (write)
			*(volatile char *)p = 1;
		else
			(void)*(volatile char *)p;
		printf("%s: ok\n", what);
	} else {
		printf("%s: SIG%s, %s, address right %d\n", what, sigabbrev_np(sig), code == BUS_ADRERR ? "BUS_ADRERR" : "other",
		       addr == p);
	}
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, PAGE + 100) == 0);
	char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *v = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && v != MAP_FAILED);
	on_siginfo(SIGBUS, escape, 0);
	on_siginfo(SIGSEGV, escape, 0);
	touch("last page", p + PAGE + 4000, true);
	touch("read beyond", p + 2 * PAGE, false);
	touch("write beyond", p + 5 * PAGE + 33, true);
	touch("private beyond", v + 2 * PAGE, true);
	CHECK(ftruncate(fd, 6 * PAGE) == 0);
	touch("grown, write", p + 5 * PAGE + 33, true);
	touch("grown, private", v + 2 * PAGE, true);
	CHECK(ftruncate(fd, PAGE) == 0);
	touch("cut, read", p + 5 * PAGE, false);
	touch("cut, private copy", v + 2 * PAGE, false);
	touch("still there", p, false);

	// A system call gets EFAULT, no signal.
	int ends[2];
	CHECK(pipe(ends) == 0);
	SHOW(write(ends[1], p + 3 * PAGE, 10));
	on_siginfo(SIGBUS, cure, 0);
	p[7 * PAGE] = 'x';
	printf("cured %d: %c\n", cures, p[7 * PAGE]);
	return 0;
}
