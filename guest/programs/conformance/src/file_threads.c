// Threads on one file: pwrite and pread of blocks, a shared offset, creation of the same name by all, by exactly one.
#include "conformance.h"

enum { THREADS = 6, BLOCKS = 20, SIZE = 512 };

static int fd, log_fd;
static atomic_int created, reads;
static char taken[THREADS * BLOCKS];

static void *worker(void *arg)
{
	int me = (intptr_t)arg;
	char block[SIZE], back[SIZE], name[20];
	for (int i = 0; i < BLOCKS; i++) {
		off_t at = (off_t)(i * THREADS + me) * SIZE;
		memset(block, me * 16 + i % 16, SIZE);
		CHECK(pwrite(fd, block, SIZE, at) == SIZE);
		CHECK(pread(fd, back, SIZE, at) == SIZE && memcmp(block, back, SIZE) == 0);
		snprintf(name, sizeof name, "once%d", i);
		int f = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (f >= 0) {
			created++;
			CHECK(close(f) == 0);
		} else {
			CHECK(errno == EEXIST);
		}
	}
	// One offset for all: every number is read by exactly one thread.
	unsigned char n;
	while (read(log_fd, &n, 1) == 1) {
		CHECK(!__atomic_exchange_n(&taken[n], 1, __ATOMIC_SEQ_CST));
		reads++;
	}
	return NULL;
}

int main(void)
{
	fd = open("file", O_RDWR | O_CREAT, 0600);
	log_fd = open("numbers", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && log_fd >= 0);
	for (int i = 0; i < THREADS * BLOCKS; i++)
		CHECK(write(log_fd, &(unsigned char){i}, 1) == 1);
	CHECK(lseek(log_fd, 0, SEEK_SET) == 0);
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	printf("size %ld, created %d, reads %d\n", (long)st.st_size, created, reads);
	unsigned sum = 0;
	for (int i = 0; i < THREADS * BLOCKS; i++) {
		unsigned char c;
		CHECK(pread(fd, &c, 1, (off_t)i * SIZE + SIZE - 1) == 1);
		sum = sum * 31 + c;
	}
	printf("sum %u\n", sum);
	return 0;
}
