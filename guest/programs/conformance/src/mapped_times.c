// Times of mapped files: mmap is an access, the first write to each page since it was mapped or written back changes the file.
#include "conformance.h"

static struct stat old;
static int fd;

// show prints which times have changed since the last call, and lets some time pass.
static void show(const char *what)
{
	struct stat s;
	CHECK(fstat(fd, &s) == 0);
	printf("%s: modified %d, accessed %d, changed %d\n", what, to_ns(s.st_mtim) > to_ns(old.st_mtim),
	       to_ns(s.st_atim) > to_ns(old.st_atim), to_ns(s.st_ctim) > to_ns(old.st_ctim));
	old = s;
	struct timespec t = {0, 20 * MSEC};
	nanosleep(&t, NULL);
}

static char *map(int prot, int flags)
{
	char *p = mmap(NULL, 3 * 4096, prot, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static void pages(void)
{
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	show("mapped");
	CHECK(p[0] == 'x');
	show("read");
	p[0] = 1;
	show("written");
	p[1] = 1;
	show("written again");
	p[4096] = 1;
	show("another page");
	CHECK(pread(fd, (char *)p + 8192, 1, 0) == 1);
	show("by the kernel");
	// Linux may write back neighbours of a page too, so the program uses all pages.
	CHECK(msync((char *)p, 3 * 4096, MS_SYNC) == 0);
	show("msync");
	p[4096] = 2;
	show("after msync");
	CHECK(fsync(fd) == 0);
	p[4096] = 3;
	show("after fsync");
	CHECK(mprotect((char *)p, 4096, PROT_READ) == 0 && mprotect((char *)p, 4096, PROT_READ | PROT_WRITE) == 0);
	p[0] = 4;
	show("after mprotect");
	CHECK(munmap((char *)p, 3 * 4096) == 0);
	show("unmapped");
	p = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	p[0] = 5;
	show("mapped again");
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		p[0] = 6;
		_exit(0);
	}
	CHECK(wait_for(child) == 0);
	show("by a child");
	p[0] = 7;
	show("by the parent");
	CHECK(munmap((char *)p, 3 * 4096) == 0);
}

static void others(void)
{
	char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	show("private");
	p[0] = 1;
	show("private, written");
	CHECK(munmap(p, 3 * 4096) == 0);
	p = map(PROT_READ, MAP_SHARED);
	CHECK(p[0] != 1);
	show("only read");
	CHECK(munmap(p, 3 * 4096) == 0);
	CHECK(write(fd, "w", 1) == 1);
	show("write");
	char c;
	CHECK(pread(fd, &c, 1, 0) == 1);
	show("pread");
	CHECK(pread(fd, &c, 1, 0) == 1);
	show("pread again");
	CHECK(write(fd, "w", 1) == 1);
	int other = open("file", O_RDONLY | O_NOATIME);
	CHECK(other >= 0 && read(other, &c, 1) == 1);
	show("read without O_NOATIME's access");
	CHECK(close(other) == 0);
}

static void in_memory(void)
{
	fd = memfd_create("m", 0);
	CHECK(fd >= 0 && ftruncate(fd, 3 * 4096) == 0 && fstat(fd, &old) == 0);
	struct timespec t = {0, 20 * MSEC};
	nanosleep(&t, NULL);
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	p[0] = 1;
	CHECK(fstat(fd, &old) == 0);
	nanosleep(&t, NULL);
	p[1] = 1;
	show("memory, written again");
	p[4096] = 1;
	show("memory, another page");
	CHECK(msync((char *)p, 3 * 4096, MS_SYNC) == 0);
	p[4096] = 2;
	show("memory, after msync");
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	static char text[3 * 4096];
	memset(text, 'x', sizeof text);
	CHECK(write(fd, text, sizeof text) == sizeof text && fsync(fd) == 0 && fstat(fd, &old) == 0);
	struct timespec t = {0, 20 * MSEC};
	nanosleep(&t, NULL);
	pages();
	others();
	in_memory();
	return 0;
}
