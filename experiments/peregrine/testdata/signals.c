// Signals that come wherever a thread is: in a loop, in a system call that is made
// again or fails, in waits, from other threads and from timers; and threads that are
// cancelled there. The output depends on when each came.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long count, seen, sum, stop;
static int pipes[2];
static sem_t s, ready;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void handler(int n)
{
	seen++;
	sum = sum * 31 + count + n;
}

static void catch(int n, int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
	sigaction(n, &a, 0);
}

static void *loop(void *arg)
{
	sem_post(&ready);
	while (!stop)
		count++;
	return arg;
}

static void *readers(void *arg)
{
	char b;
	long interrupted = 0;
	sem_post(&ready);
	for (int i = 0; i < 3;) {
		if (read(pipes[0], &b, 1) == 1)
			i++;
		else if (errno == EINTR)
			interrupted++;
		count++;
	}
	return (void *)interrupted;
}

static void *waiter(void *arg)
{
	long interrupted = 0;
	sem_post(&ready);
	while (sem_wait(&s) != 0)
		interrupted++;
	pthread_mutex_lock(&m);
	count++;
	sem_post(&ready);
	while (!stop)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return (void *)interrupted;
}

static void unlock(void *arg) { pthread_mutex_unlock(arg); }

static void *cancelled(void *arg)
{
	char b;
	sem_post(&ready);
	if (arg == 0) {
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
		for (;;)
			count++;
	}
	if (arg == (void *)1) {
		pthread_mutex_lock(&m);
		pthread_cleanup_push(unlock, &m);
		for (;;)
			pthread_cond_wait(&c, &m);
		pthread_cleanup_pop(1);
	}
	for (;;) {
		read(pipes[0], &b, 1);
		count += b;
	}
}

static void spend(long n)
{
	for (volatile long i = 0; i < n; i++)
		;
}

// in_turn sends a thread signals while it runs a function, and returns the function's result.
static long in_turn(void *(*body)(void *), int n, int bytes)
{
	pthread_t t;
	void *result;
	pthread_create(&t, 0, body, 0);
	sem_wait(&ready);
	for (int i = 0; i < 4; i++) {
		spend(500 * i);
		pthread_kill(t, n);
		if (bytes)
			write(pipes[1], "x", 1);
	}
	if (body == waiter) {
		sem_post(&s);
		sem_wait(&ready);
		pthread_kill(t, n);
	}
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	pthread_join(t, &result);
	stop = 0;
	return (long)result;
}

static void cancel(long how)
{
	pthread_t t;
	void *result;
	pthread_create(&t, 0, cancelled, (void *)how);
	sem_wait(&ready);
	for (int i = 0; i < 3; i++) {
		write(pipes[1], "a", 1);
		spend(300);
	}
	pthread_cancel(t);
	pthread_join(t, &result);
	printf("cancelled %d %ld\n", result == PTHREAD_CANCELED, count);
}

static void timers(void)
{
	struct itimerval every = {{0, 50}, {0, 50}};
	long n = 0;
	setitimer(ITIMER_REAL, &every, 0);
	while (seen < 12)
		n += count++ % 3;
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_REAL, &every, 0);
	printf("timers %ld %ld\n", n, sum);
}

int main(int argc, char **argv)
{
	pipe(pipes);
	sem_init(&s, 0, 0);
	sem_init(&ready, 0, 0);
	catch(SIGUSR1, 0);
	catch(SIGUSR2, SA_RESTART);
	catch(SIGALRM, SA_RESTART);
	long a = in_turn(loop, SIGUSR1, 0);
	printf("loop %ld %ld %ld\n", a, seen, sum);
	a = in_turn(readers, SIGUSR1, 1);
	printf("read %ld %ld %ld\n", a, seen, sum);
	a = in_turn(readers, SIGUSR2, 1);
	printf("read again %ld %ld %ld\n", a, seen, sum);
	a = in_turn(waiter, SIGUSR1, 0);
	printf("wait %ld %ld %ld\n", a, seen, sum);
	for (long i = 0; i < 3; i++)
		cancel(i);
	if (argc > 1)
		timers();
	printf("%ld %ld\n", seen, sum);
	return 0;
}
