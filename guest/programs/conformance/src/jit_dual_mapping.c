// Code written through one mapping and run through another, of a memfd, also by a child process and from a file.
#include "conformance.h"

enum { PAGE = 4096 };

typedef int (*function)(void);

// emit makes a function that returns v: mov eax, v ; ret
static void emit(unsigned char *p, int32_t v)
{
	p[0] = 0xb8;
	memcpy(p + 1, &v, 4);
	p[5] = 0xc3;
}

static int call(void *p)
{
	function f;
	memcpy(&f, &p, sizeof f);
	return f();
}

int main(void)
{
	int fd = memfd_create("code", 0);
	CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
	unsigned char *w = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(w != MAP_FAILED && x != MAP_FAILED);
	for (int i = 0; i < 30; i++) {
		emit(w, i * 7);
		CHECK(call(x) == i * 7);
	}
	printf("by mapping: %d\n", call(x));
	unsigned char buf[6];
	emit(buf, 555);
	CHECK(pwrite(fd, buf, sizeof buf, 0) == sizeof buf);
	printf("by write: %d\n", call(x));

	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		emit(w, 99);
		_exit(call(x));
	}
	printf("child: %s\n", status_text(wait_for(pid)));
	printf("by the child: %d\n", call(x));

	int file = open("file", O_RDWR | O_CREAT, 0700);
	emit(buf, 1234);
	CHECK(file >= 0 && write(file, buf, sizeof buf) == sizeof buf);
	unsigned char *f = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	CHECK(f != MAP_FAILED);
	printf("from a file: %d\n", call(f));
	return 0;
}
