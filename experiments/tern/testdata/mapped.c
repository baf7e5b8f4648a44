// Two threads take a lock as often as the first digit of a file says, which is mapped, and add the bytes that follow.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, total;

static void *work(void *unused) {
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		total++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv) {
	struct stat s;
	int shared = argc > 2 && !strcmp(argv[2], "shared"), fd = open(argv[1], shared ? O_RDWR : O_RDONLY);
	if (fd < 0 || fstat(fd, &s) != 0)
		return 1;
	unsigned char *p = mmap(NULL, s.st_size, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return 1;
	madvise(p, s.st_size, MADV_SEQUENTIAL);
	rounds = p[0] - '0';
	int sum = 0;
	for (int i = 1; i < s.st_size; i++)
		sum += p[i];
	pthread_t a, b;
	pthread_create(&a, NULL, work, NULL);
	pthread_create(&b, NULL, work, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d %d\n", total, sum);
	return 0;
}
