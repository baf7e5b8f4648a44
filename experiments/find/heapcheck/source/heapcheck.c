// An allocator whose blocks end at pages without access, and whose freed blocks stay without access: a
// program that writes past a block, or uses a freed one, gets SIGSEGV at that instruction. It is preloaded
// (LD_PRELOAD), and needs system calls alone.
//
// The address space of a lane belongs to one thread, so that threads share no memory of the allocator. A block
// has pages of its own; it ends at a page without access, at most 15 bytes before it, since blocks are aligned
// to 16 bytes. The bytes around it on its pages have a pattern that is compared when it is freed. No address is
// used twice: a lane has 16 GB, and its thread gets another one when it is full.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, LANES = 512, PATTERN = 0xa5 };
#define LANE_SIZE ((size_t)16 << 30)
#define FIRST_LANE ((uintptr_t)0x100000000000)

// A lane begins with a table that describes the block that begins on each of its pages.
struct block {
	size_t size;
	char *start;
	uint32_t pages, state; // pages of the block, without the one after it
};

enum { UNUSED, ALLOCATED, FREED };

#define TABLE_SIZE (LANE_SIZE / PAGE * sizeof(struct block))

static __thread char *next_free, *lane_end;
static unsigned lanes;

static void fail(const char *text)
{
	// As assert(3) writes it.
	char line[128] = "heapcheck.c:0: free: Assertion `";
	strcat(strcat(line, text), "' failed.\n");
	if (write(2, line, strlen(line)) < 0)
		_exit(134);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 6);
	_exit(134);
}

// Takes a number of bytes, whole pages without access, of the thread's lane.
static char *take(size_t bytes)
{
	if ((size_t)(lane_end - next_free) < bytes) {
		if (bytes > LANE_SIZE - TABLE_SIZE)
			return NULL;
		unsigned n = __atomic_fetch_add(&lanes, 1, __ATOMIC_RELAXED);
		if (n >= LANES)
			return NULL;
		char *lane = mmap((void *)(FIRST_LANE + n * LANE_SIZE), LANE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (lane == MAP_FAILED)
			return NULL;
		if (mprotect(lane, TABLE_SIZE, PROT_READ | PROT_WRITE))
			return NULL;
		next_free = lane + TABLE_SIZE;
		lane_end = lane + LANE_SIZE;
	}
	char *p = next_free;
	next_free += bytes;
	return p;
}

// The description of the block that begins on the page of an address.
static struct block *block_of(const void *p)
{
	uintptr_t lane = (uintptr_t)p & -LANE_SIZE;
	return (struct block *)lane + ((uintptr_t)p - lane) / PAGE;
}

static char *area_of(const struct block *b)
{
	return (char *)((uintptr_t)b->start & -(uintptr_t)PAGE);
}

static void *allocate(size_t size, size_t align)
{
	if (size > LANE_SIZE / 2 || align > (size_t)1 << 30) {
		errno = ENOMEM;
		return NULL;
	}
	size_t pages = (size + PAGE - 1 + (size == 0)) / PAGE, slack = align > PAGE ? align : 0;
	char *area = take((pages + 1) * PAGE + slack);
	if (area && slack)
		area = (char *)(((uintptr_t)area + align - 1) & -align);
	if (!area || mprotect(area, pages * PAGE, PROT_READ | PROT_WRITE)) {
		errno = ENOMEM;
		return NULL;
	}
	char *start = slack ? area : area + ((pages * PAGE - (size ? size : 1)) & -align);
	*block_of(area) = (struct block){size, start, pages, ALLOCATED};
	memset(area, PATTERN, start - area);
	memset(start + size, PATTERN, area + pages * PAGE - (start + size));
	return start;
}

static struct block *check(void *p)
{
	if ((uintptr_t)p < FIRST_LANE || (uintptr_t)p >= FIRST_LANE + LANES * LANE_SIZE)
		fail("the pointer is from malloc");
	struct block *b = block_of(p);
	if (b->state == FREED)
		fail("the block is freed once");
	if (b->state != ALLOCATED || b->start != p)
		fail("the pointer is from malloc");
	return b;
}

static void check_pattern(const struct block *b)
{
	const char *area = area_of(b), *end = area + b->pages * PAGE;
	for (const char *c = area; c < b->start; c++)
		if (*c != (char)PATTERN)
			fail("nothing is written before the block");
	for (const char *c = b->start + b->size; c < end; c++)
		if (*c != (char)PATTERN)
			fail("nothing is written after the block");
}

void *malloc(size_t size)
{
	return allocate(size, 16);
}

void free(void *p)
{
	if (!p)
		return;
	struct block *b = check(p);
	int kept = errno;
	check_pattern(b);
	b->state = FREED;
	madvise(area_of(b), b->pages * PAGE, MADV_DONTNEED);
	mprotect(area_of(b), b->pages * PAGE, PROT_NONE);
	errno = kept;
}

void *calloc(size_t n, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return allocate(all, 16); // new pages are zero
}

void *realloc(void *p, size_t size)
{
	if (!p)
		return malloc(size);
	if (!size) {
		free(p);
		return NULL;
	}
	struct block *b = check(p);
	void *q = malloc(size);
	if (!q)
		return NULL;
	memcpy(q, p, b->size < size ? b->size : size);
	free(p);
	return q;
}

int posix_memalign(void **p, size_t align, size_t size)
{
	if (align < sizeof(void *) || (align & (align - 1)))
		return EINVAL;
	int kept = errno;
	void *q = allocate(size, align < 16 ? 16 : align);
	errno = kept;
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

void *aligned_alloc(size_t align, size_t size)
{
	if (align & (align - 1)) {
		errno = EINVAL;
		return NULL;
	}
	return allocate(size, align < 16 ? 16 : align);
}

void *memalign(size_t align, size_t size)
{
	return aligned_alloc(align, size);
}

void *valloc(size_t size)
{
	return allocate(size, PAGE);
}

void *pvalloc(size_t size)
{
	return allocate((size + PAGE - 1) & -(size_t)PAGE, PAGE);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, all);
}

size_t malloc_usable_size(void *p)
{
	return p ? check(p)->size : 0;
}
