// A small JIT: code written, made executable, called, rewritten in place, many functions, called by many threads.
#include "conformance.h"

enum { PAGE = 4096 };

typedef int (*function)(int);

// emit makes a function that computes x*a + b:
//   imul eax, edi, a ; add eax, b ; ret
static size_t emit(unsigned char *p, int32_t a, int32_t b)
{
	size_t n = 0;
	p[n++] = 0x69;
	p[n++] = 0xc7;
	memcpy(p + n, &a, 4);
	n += 4;
	p[n++] = 0x05;
	memcpy(p + n, &b, 4);
	n += 4;
	p[n++] = 0xc3;
	return n;
}

static function code(void *p)
{
	function f;
	memcpy(&f, &p, sizeof f);
	return f;
}

static unsigned char *page;

static void *caller(void *arg)
{
	int x = (intptr_t)arg;
	long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += code(page + 64 * (i % 50))(x + i);
	return (void *)sum;
}

int main(void)
{
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	// Rewritten twenty times: the processor must never run old code.
	for (int i = 0; i < 20; i++) {
		CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
		emit(page, i + 2, i * i);
		CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
		int r = code(page)(100);
		CHECK(r == 100 * (i + 2) + i * i);
	}
	printf("rewritten\n");
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
	for (int i = 0; i < 50; i++)
		emit(page + 64 * i, i, -i);
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
	pthread_t t[4];
	for (int i = 0; i < LEN(t); i++)
		t[i] = start(caller, (void *)(intptr_t)i);
	for (int i = 0; i < LEN(t); i++)
		printf("thread %d: %ld\n", i, (long)finish(t[i]));

	// New code at an address that was unmapped and mapped again.
	for (int i = 0; i < 5; i++) {
		CHECK(munmap(page, PAGE) == 0);
		void *again = mmap(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK(again == page);
		emit(page, 1, 1000 * i);
		printf("mapped again: %d\n", code(page)(i));
	}
	return 0;
}
