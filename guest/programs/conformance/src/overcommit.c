// Overcommit: large mappings succeed, many of them, and use no memory until they are touched.
#include "conformance.h"

#define GB (1L << 30)

// use writes to a few pages far apart, and reads others.
static void use(char *p, long n)
{
	long sum = 0;
	for (long at = 0; at < n; at += n / 8) {
		p[at] = 1;
		sum += p[at] + p[at + n / 16];
	}
	printf("sum %ld\n", sum);
}

static void *map(long n, int flags) { return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0); }

int main(void)
{
	char *all[16];
	for (int i = 0; i < LEN(all); i++)
		CHECK((all[i] = malloc(4 * GB)) != NULL);
	use(all[0], 4 * GB);
	use(all[15], 4 * GB);
	for (int i = 0; i < LEN(all); i++)
		free(all[i]);
	char *p = map(4 * GB, MAP_SHARED);
	CHECK(p != MAP_FAILED);
	use(p, 4 * GB);
	SHOW(munmap(p, 4 * GB));
	p = map(200 * GB, MAP_PRIVATE | MAP_NORESERVE);
	CHECK(p != MAP_FAILED);
	use(p, 200 * GB);
	SHOW(munmap(p, 200 * GB));
	// A mapping without access does not count against the limit; making it writable does.
	p = mmap(NULL, 20000 * GB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	SHOW(mprotect(p + GB, 4 * GB, PROT_READ | PROT_WRITE));
	use(p + GB, 4 * GB);
	SHOW(mprotect(p, 20000 * GB, PROT_READ | PROT_WRITE));
	SHOW(munmap(p, 20000 * GB));
	// More than the memory of any machine.
	SHOW(map(20000 * GB, MAP_PRIVATE) == MAP_FAILED ? -1 : 0);
	SHOW(map(20000 * GB, MAP_SHARED) == MAP_FAILED ? -1 : 0);
	printf("malloc: %s\n", malloc(20000 * GB) == NULL ? errname(errno) : "ok");
	// A child's copy counts as well.
	p = map(4 * GB, MAP_PRIVATE);
	CHECK(p != MAP_FAILED);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		use(p, 4 * GB);
		_exit(0);
	}
	printf("child: %s\n", status_text(wait_for(child)));
	printf("the parent's: %d\n", p[0]);
	return 0;
}
