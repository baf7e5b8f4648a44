// Ways in which threads wait for ever, chosen by the first argument.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold;
static sem_t empty;
static int flag;

static __attribute__((noinline)) void lock_first_then(pthread_mutex_t *first, pthread_mutex_t *second) {
	pthread_mutex_lock(first);
	pthread_barrier_wait(&both_hold);
	pthread_mutex_lock(second);
	puts("not reached");
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *forward(void *arg) {
	lock_first_then(&a, &b);
	puts("not reached");
	return arg;
}

static void *backward(void *arg) {
	lock_first_then(&b, &a);
	puts("not reached");
	return arg;
}

static __attribute__((noinline)) void opposite_order(void) {
	pthread_t t[2];
	pthread_barrier_init(&both_hold, 0, 2);
	pthread_create(&t[0], 0, forward, 0);
	pthread_create(&t[1], 0, backward, 0);
	pthread_setname_np(t[0], "there");
	pthread_setname_np(t[1], "back");
	pthread_join(t[0], 0);
	puts("not reached");
}

static __attribute__((noinline)) void lock_twice(void) {
	pthread_mutex_lock(&a);
	pthread_mutex_lock(&a);
	puts("not reached");
}

static void *signal_too_early(void *arg) {
	pthread_cond_signal(&condition);
	return arg;
}

static __attribute__((noinline)) void wait_for_signal(void) {
	pthread_t t;
	pthread_create(&t, 0, signal_too_early, 0);
	pthread_join(t, 0);
	pthread_mutex_lock(&a);
	while (!flag) pthread_cond_wait(&condition, &a);
	puts("not reached");
}

static __attribute__((noinline)) void read_from_nobody(void) {
	int p[2];
	char c;
	if (pipe(p)) exit(1);
	if (read(p[0], &c, 1) == 1) puts("not reached");
	puts("not reached");
}

static __attribute__((noinline)) void wait_for_child(void) {
	pid_t pid = fork();
	if (pid == 0) {
		sem_init(&empty, 0, 0);
		sem_wait(&empty);
		puts("not reached");
	}
	waitpid(pid, 0, 0);
	puts("not reached");
}

static void on_alarm(int sig) { (void)sig; }

// A timer that goes off for ever, whose signal is ignored, cannot end a wait;
// it does not hide one that ends, either.
static __attribute__((noinline)) void wait_beside_timer(void) {
	struct itimerval often = {{0, 100}, {0, 100}};
	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &often, 0);
	usleep(50000);
	signal(SIGALRM, on_alarm);
	pause();
	signal(SIGALRM, SIG_IGN);
	pause();
	puts("not reached");
}

static __attribute__((noinline)) void spin(void) {
	for (volatile unsigned long n = 0;; n++) {}
}

static void *spin_in_thread(void *arg) {
	spin();
	return arg;
}

static __attribute__((noinline)) void sleep_and_spin(void) {
	pthread_t t;
	pthread_create(&t, 0, spin_in_thread, 0);
	for (;;) usleep(1000);
}

int main(int argc, char **argv) {
	const char *way = argc > 1 ? argv[1] : "";
	puts("begun");
	fflush(stdout);
	if (!strcmp(way, "order")) opposite_order();
	if (!strcmp(way, "twice")) lock_twice();
	if (!strcmp(way, "lost")) wait_for_signal();
	if (!strcmp(way, "pipe")) read_from_nobody();
	if (!strcmp(way, "child")) wait_for_child();
	if (!strcmp(way, "timer")) wait_beside_timer();
	if (!strcmp(way, "spin")) spin();
	if (!strcmp(way, "threads")) sleep_and_spin();
	return 1;
}
