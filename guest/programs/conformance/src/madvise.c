// madvise: DONTNEED of anonymous, file and shared memory, FREE, REMOVE, DONTFORK, WIPEONFORK, mere hints, refusals.
#include "conformance.h"

enum { PAGE = 4096 };

static char *map(int flags)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	for (int i = 0; i < 4; i++)
		p[i * PAGE] = 'a' + i;
	return p;
}

static void show(const char *what, const char *p)
{
	printf("%s: ", what);
	for (int i = 0; i < 4; i++)
		printf("%c", p[i * PAGE] ? p[i * PAGE] : '0');
	printf("\n");
}

int main(void)
{
	char *p = map(MAP_PRIVATE), *s = map(MAP_SHARED);
	SHOW(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED));
	show("private", p);
	p[PAGE] = 'x';
	show("written again", p);
	SHOW(madvise(s + PAGE, 2 * PAGE, MADV_DONTNEED));
	show("shared", s);
	SHOW(madvise(s + PAGE, PAGE, MADV_REMOVE));
	show("shared, removed", s);

	write_file("file", "file contents");
	int fd = open("file", O_RDWR);
	char *f = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(f != MAP_FAILED);
	memcpy(f, "own", 3);
	printf("changed: %s\n", f);
	SHOW(madvise(f, PAGE, MADV_DONTNEED));
	printf("the file's again: %s\n", f);

	// MADV_FREE may or may not drop the contents, until they are written.
	SHOW(madvise(p, 4 * PAGE, MADV_FREE));
	CHECK(p[0] == 'a' || p[0] == 0);
	p[0] = 'z';
	CHECK(p[0] == 'z');

	p = map(MAP_PRIVATE);
	SHOW(madvise(p, 4 * PAGE, MADV_WILLNEED));
	SHOW(madvise(p, 4 * PAGE, MADV_SEQUENTIAL));
	SHOW(madvise(p, 4 * PAGE, MADV_RANDOM));
	SHOW(madvise(p, 4 * PAGE, MADV_NORMAL));
	SHOW(posix_madvise(p, 4 * PAGE, POSIX_MADV_DONTNEED));
	SHOW(madvise(p + PAGE, PAGE, MADV_WIPEONFORK));
	SHOW(madvise(p + 2 * PAGE, PAGE, MADV_DONTFORK));
	show("before fork", p);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		unsigned char v;
		printf("child: %c, %d, %s, %c\n", p[0], p[PAGE],
		       mincore(p + 2 * PAGE, PAGE, &v) == -1 ? errname(errno) : "mapped", p[3 * PAGE]);
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	show("parent", p);
	SHOW(madvise(p + PAGE, PAGE, MADV_KEEPONFORK));
	SHOW(madvise(p + 2 * PAGE, PAGE, MADV_DOFORK));

	SHOW(madvise(p + 1, PAGE, MADV_DONTNEED));
	SHOW(madvise(p, PAGE, 77777));
	SHOW(madvise(p, 0, MADV_DONTNEED));
	CHECK(munmap(p + PAGE, PAGE) == 0);
	SHOW(madvise(p, 4 * PAGE, MADV_DONTNEED));
	printf("all round the hole: %d %d\n", p[0], p[3 * PAGE]);
	return 0;
}
