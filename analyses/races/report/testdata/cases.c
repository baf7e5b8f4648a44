// Pairs of threads, one pair for each name on the command line. A line that takes
// part in a race says of which case: "hb" by the program's synchronization,
// "schedule" by the order that operations had, or "both". Sleeps make that order: the first
// thread acts at 0 ms, the second at 10 ms, and both end after 30 ms.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t control = PTHREAD_ONCE_INIT;
static pthread_barrier_t two;
static sem_t sem;
static volatile int x, y;
static char bytes[32];
static volatile char *block;

static void later(void) { usleep(10000); }

static void unlocked_1(void) { x = 1; }		// unlocked both
static void unlocked_2(void) { later(); x = 2; } // unlocked both

static void read_1(void) { y = x; }	     // read both
static void read_2(void) { later(); x = 2; } // read both

static void locked_1(void) { pthread_mutex_lock(&one); x++; pthread_mutex_unlock(&one); }
static void locked_2(void) { later(); locked_1(); }

static void locks_1(void)
{
	pthread_mutex_lock(&one);
	x = 1; // locks hb
	pthread_mutex_unlock(&one);
}
static void locks_2(void)
{
	later();
	pthread_mutex_lock(&other);
	x = 2; // locks hb
	pthread_mutex_unlock(&other);
}

static void readers_1(void)
{
	pthread_rwlock_rdlock(&rwlock);
	x = 1; // readers hb
	pthread_rwlock_unlock(&rwlock);
}
static void readers_2(void)
{
	later();
	pthread_rwlock_rdlock(&rwlock);
	y = x; // readers hb
	pthread_rwlock_unlock(&rwlock);
}

static void writer_1(void) { pthread_rwlock_wrlock(&rwlock); x = 1; pthread_rwlock_unlock(&rwlock); }
static void writer_2(void) { later(); pthread_rwlock_rdlock(&rwlock); y = x; pthread_rwlock_unlock(&rwlock); }

static void semaphore_1(void) { x = 1; sem_post(&sem); }
static void semaphore_2(void) { sem_wait(&sem); x = 2; }

static void barrier_1(void)
{
	y = 1;
	pthread_barrier_wait(&two);
	x = 1; // barrier both
	usleep(20000);
	pthread_barrier_wait(&two);
}
static void barrier_2(void)
{
	pthread_barrier_wait(&two);
	later();
	x = 2; // barrier both
	pthread_barrier_wait(&two);
	y = x;
}

static void init(void) { x = 1; }
static void once_1(void) { pthread_once(&control, init); }
static void once_2(void) { later(); pthread_once(&control, init); x = 2; }

static void signal_1(void)
{
	later();
	x = 1; // signal hb
	pthread_cond_signal(&cond);
}
static void signal_2(void)
{
	pthread_mutex_lock(&one);
	pthread_cond_wait(&cond, &one);
	pthread_mutex_unlock(&one);
	y = x; // signal hb
}

static void bytes_1(void) { bytes[0] = 1; memset(bytes + 8, 1, 8); }
static void bytes_2(void) { later(); bytes[1] = 1; bytes[7] = 1; memset(bytes + 16, 1, 8); }

static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void copy_1(void) { copy(bytes, "0123456789", 10); }	   // copy both
static void copy_2(void) { later(); ((volatile char *)bytes)[9] = 1; } // copy both

static void atomic_1(void) { __atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST); }	      // atomic schedule
static void atomic_2(void) { later(); __atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST); } // atomic schedule

static void mixed_1(void) { __atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST); } // mixed both
static void mixed_2(void) { later(); x = 5; }				   // mixed both

static void reuse_1(void)
{
	block = malloc(2000); // reuse both
	memset((void *)block, 1, 2000);
	volatile char *was = block;
	free((void *)was);
}
static void reuse_2(void)
{
	later();
	char *again = malloc(2000);
	memset(again, 2, 2000);
	puts(again == block ? "the same block" : "another block"); // reuse both
}

static void freed_1(void) { later(); free((void *)block); } // freed hb
static void freed_2(void) { later(); later(); block[7]++; } // freed hb

static void kernel_1(void)
{
	int fd = open("/proc/self/stat", O_RDONLY);
	long n = read(fd, bytes, 16); // kernel both
	close(fd);
	(void)n;
}
static void kernel_2(void) { later(); y = ((volatile char *)bytes)[3]; } // kernel both

static void same_1(void) { x = 7; }	     // same both
static void same_2(void) { later(); x = 7; } // same both

static void *shared;
static void fork_1(void)
{
	x = 3;
	pid_t child = fork();
	if (child == 0) {
		x = 4;
		*(volatile int *)shared = 1; // fork both
		usleep(30000);
		_exit(0);
	}
	later();
	x = 5;
	*(volatile int *)shared = 2; // fork both
	waitpid(child, NULL, 0);
}
static void fork_2(void) {}

static void *deep(void *arg)
{
	volatile char local[20000];
	for (int i = 0; i < 20000; i += 64)
		local[i] = 1;
	return arg;
}
static void stack_1(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, NULL, deep, NULL);
		pthread_detach(t);
		usleep(5000);
	}
}
static void stack_2(void) {}

#define CASE(name) {#name, name##_1, name##_2}
static const struct { const char *name; void (*first)(void), (*second)(void); } cases[] = {
	CASE(unlocked), CASE(read), CASE(locked), CASE(locks), CASE(readers), CASE(writer), CASE(semaphore), CASE(barrier),
	CASE(once), CASE(signal), CASE(bytes), CASE(copy), CASE(atomic), CASE(mixed), CASE(reuse), CASE(freed), CASE(kernel),
	CASE(same), CASE(fork), CASE(stack),
};

static void *run(void *f)
{
	(*(void (**)(void))f)();
	usleep(30000);
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argc;
	mallopt(M_ARENA_MAX, 1);
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&two, NULL, 2);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	block = malloc(3000);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		pthread_t t[2];
		pthread_create(&t[0], NULL, run, (void *)&cases[i].first);
		pthread_create(&t[1], NULL, run, (void *)&cases[i].second);
		pthread_join(t[0], NULL);
		pthread_join(t[1], NULL);
		x++;
		y++;
		return 0;
	}
	return 1;
}
