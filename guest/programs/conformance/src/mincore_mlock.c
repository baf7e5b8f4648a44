// mincore, mlock, mlock2, munlock, mlockall: residency of touched pages, ranges with holes, refused arguments.
#include "conformance.h"

enum { PAGE = 4096 };

int main(void)
{
	unsigned char v[8];
	char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK(madvise(p, 8 * PAGE, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
	p[0] = p[3 * PAGE] = 1;
	SHOW(mincore(p, 8 * PAGE, v));
	CHECK((v[0] & 1) && (v[3] & 1));
	SHOW(mlock(p, 2 * PAGE));
	SHOW(mincore(p, 8 * PAGE, v));
	CHECK((v[0] & 1) && (v[1] & 1));
	SHOW(munlock(p, 2 * PAGE));
	SHOW(mlock(p + 100, 100));
	SHOW(munlock(p + 100, 100));
	SHOW(mlock2(p, PAGE, MLOCK_ONFAULT));
	SHOW(mlock2(p, PAGE, 77));
	SHOW(munlock(p, 8 * PAGE));
	SHOW(mlockall(0));
	SHOW(mlockall(77));
	SHOW(munlockall());

	SHOW(mincore(p + 1, PAGE, v));
	SHOW(mincore(p, PAGE, (void *)16));
	SHOW(mincore(p, 0, v));
	CHECK(munmap(p + PAGE, PAGE) == 0);
	SHOW(mincore(p, 3 * PAGE, v));
	SHOW(mlock(p, 3 * PAGE));
	SHOW(munlock(p, 3 * PAGE));
	return 0;
}
