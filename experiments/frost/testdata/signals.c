// Programs without a data race in which threads get signals wherever they are: in a loop,
// in a system call that fails or is made again, in waits, while they hold a mutex, from other
// threads and from timers; and threads that are cancelled there. The output does not
// depend on when the signals come, the contents of memory meanwhile do.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 6 };

static sem_t ready, got, go;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int pipes[2];
static long total, done; // under m
static __thread volatile sig_atomic_t ticks;
static __thread volatile unsigned long at; // the thread's progress at the last signal
static __thread volatile long work;

static void count(int n)
{
	ticks++;
	at = at * 31 + work + n;
}

static void acknowledge(int n)
{
	count(n);
	sem_post(&got);
}

static void catch(int n, void (*f)(int), int flags)
{
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	sigaction(n, &a, 0);
}

static void spend(long n)
{
	for (volatile long i = 0; i < n; i++)
		;
}

static void add(long n)
{
	pthread_mutex_lock(&m);
	total += n;
	pthread_mutex_unlock(&m);
}

// ticking computes until a timer has fired so often, beside threads that take a mutex.
static void *adder(void *u)
{
	sigset_t s;
	sigfillset(&s);
	pthread_sigmask(SIG_BLOCK, &s, 0);
	for (int i = 0; i < 200; i++) {
		add(1);
		spend(200);
	}
	return u;
}

static void ticking(void)
{
	pthread_t t[THREADS];
	timer_t timer;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct itimerspec every = {{0, 60000}, {0, 60000}}, never = {{0, 0}, {0, 0}};
	catch(SIGALRM, count, SA_RESTART);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, adder, 0);
	timer_create(CLOCK_MONOTONIC, &e, &timer);
	timer_settime(timer, 0, &every, 0);
	while (ticks < 12)
		work++;
	timer_settime(timer, 0, &never, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	printf("%d %ld\n", ticks >= 12 && work > 0 && at > 0, total);
}

// loop computes until it has had its signals, which others send and wait for.
static void *loop(void *u)
{
	sem_post(&ready);
	while (ticks < ROUNDS)
		work++;
	add(ticks);
	return u;
}

// locker does the same with a mutex that all take.
static void *locker(void *u)
{
	sem_post(&ready);
	while (ticks < ROUNDS) {
		pthread_mutex_lock(&m);
		work++;
		spend(100);
		pthread_mutex_unlock(&m);
	}
	add(ticks);
	return u;
}

static void *reader(void *u)
{
	char b;
	sem_post(&ready);
	while (read(pipes[0], &b, 1) < 0)
		work += errno == EINTR;
	add(ticks + b);
	return u;
}

static void *sleeper(void *u)
{
	struct timespec t = {0, 300000};
	sem_post(&ready);
	while (ticks < ROUNDS) {
		if (nanosleep(&t, &t) == 0)
			t.tv_nsec = 300000;
		work += t.tv_nsec;
	}
	add(ticks);
	return u;
}

static void *poster(void *u)
{
	sem_post(&ready);
	while (sem_wait(&go) != 0)
		work++;
	add(ticks);
	return u;
}

static void *waiter(void *u)
{
	pthread_mutex_lock(&m);
	sem_post(&ready);
	while (!done)
		pthread_cond_wait(&c, &m);
	total += ticks;
	pthread_mutex_unlock(&m);
	return u;
}

static void __attribute__((noinline)) wipe(void)
{
	volatile char stack[1024];
	for (int i = 0; i < (int)sizeof stack; i++)
		stack[i] = 0;
}

static void __attribute__((noinline)) take(sem_t *s, int n)
{
	for (int i = 0; i < n; i++)
		sem_wait(s);
}

// wait_for waits for a semaphore n times, and overwrites the rest that this leaves on the stack,
// which shows whether the thread had to wait.
static inline __attribute__((always_inline)) void wait_for(sem_t *s, int n)
{
	take(s, n);
	wipe();
}

static void killing(void *(*body)(void *), int n)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, body, 0);
	wait_for(&ready, THREADS);
	for (int k = 0; k < ROUNDS; k++) {
		spend(300 * k);
		for (int i = 0; i < THREADS; i++)
			pthread_kill(t[i], n);
		wait_for(&got, THREADS);
	}
	for (int i = 0; i < THREADS; i++)
		sem_post(&go);
	(void)!write(pipes[1], "aaa", THREADS);
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	printf("%ld\n", total);
}

static void clean(void *u)
{
	pthread_mutex_unlock(&m);
	add((long)u);
}

static void *cancelled(void *kind)
{
	char b;
	struct timespec t = {5, 0};
	int old;
	sem_post(&ready);
	switch ((long)kind) {
	case 0:
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
		for (;;)
			work++;
	case 1:
		pthread_mutex_lock(&m);
		pthread_cleanup_push(clean, (void *)1);
		for (;;)
			pthread_cond_wait(&c, &m);
		pthread_cleanup_pop(0);
	case 2:
		for (;;)
			sem_wait(&go);
	case 3:
		for (;;)
			nanosleep(&t, 0);
	default:
		for (;;)
			read(pipes[0], &b, 1);
	}
}

static void cancelling(void)
{
	pthread_t t[5];
	for (int k = 0; k < 2; k++) {
		for (long i = 0; i < 5; i++)
			pthread_create(&t[i], 0, cancelled, (void *)i);
		wait_for(&ready, 5);
		spend(3000 * k);
		for (int i = 0; i < 5; i++)
			pthread_cancel(t[i]);
		for (int i = 0; i < 5; i++) {
			void *result;
			pthread_join(t[i], &result);
			add(10 * (result == PTHREAD_CANCELED));
		}
	}
	printf("%ld\n", total);
}

static void note(void *u)
{
	add(work % 50 == 0 ? 1 : 1000);
	add(*(long *)u - 1);
}

// disabled works in rounds in which it may not be cancelled, and is cancelled after one,
// having done all that belongs to it: it computes, sleeps, takes a mutex, or waits for a
// semaphore that the canceller posts later, and finds out in one way or another.
static void *disabled(void *argument)
{
	long way = (long)argument, whole = 0;
	struct timespec t = {0, 20000};
	int old, posted = 0;
	sem_post(&ready);
	pthread_cleanup_push(note, &whole);
	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
		whole = 0;
		for (int i = 0; i < 50; i++) {
			work++;
			spend(20 + 30 * way);
			if (way == 1 && i % 10 == 0)
				nanosleep(&t, 0);
			if (way == 2)
				add(0);
			if (way == 3 && !posted && i == 25)
				posted = sem_wait(&go) == 0;
		}
		whole = 1;
		if (way == 4)
			pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
		if (way == 5)
			nanosleep(&t, 0);
		else
			pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return 0;
}

static void disabling(void)
{
	pthread_t t[6];
	for (int k = 0; k < 2; k++) {
		for (long i = 0; i < 6; i++)
			pthread_create(&t[i], 0, disabled, (void *)i);
		wait_for(&ready, 6);
		spend(4000 * k);
		for (int i = 0; i < 6; i++) {
			pthread_cancel(t[i]);
			spend(500);
		}
		sem_post(&go);
		for (int i = 0; i < 6; i++)
			pthread_join(t[i], 0);
	}
	printf("%ld\n", total);
}

// terminating ends by a signal while threads wait and compute.
static void terminating(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, i == 0 ? waiter : adder, 0);
	wait_for(&ready, 1);
	for (int i = 1; i < THREADS; i++)
		pthread_join(t[i], 0);
	puts("ends");
	fflush(stdout);
	kill(getpid(), SIGTERM);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void *(*body)(void *);
	} list[] = {{"loop", loop}, {"lock", locker}, {"read", reader}, {"sleep", sleeper}, {"sem", poster}, {"cond", waiter}};
	(void)!pipe(pipes);
	sem_init(&ready, 0, 0);
	sem_init(&got, 0, 0);
	sem_init(&go, 0, 0);
	catch(SIGUSR1, acknowledge, 0);
	catch(SIGUSR2, acknowledge, SA_RESTART);
	for (int i = 0; i < (int)(sizeof list / sizeof *list); i++)
		if (argc > 2 && !strcmp(argv[1], list[i].name))
			killing(list[i].body, atoi(argv[2]));
	if (!strcmp(argv[1], "timer"))
		ticking();
	if (!strcmp(argv[1], "cancel"))
		cancelling();
	if (!strcmp(argv[1], "disable"))
		disabling();
	if (!strcmp(argv[1], "end"))
		terminating();
	return 0;
}
