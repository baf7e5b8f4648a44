// Cancellation of threads blocked in semaphores, conditions, joins, sleeps, signal waits and process waits.
#include "conformance.h"

#include <semaphore.h>
#include <sys/file.h>
#include <threads.h>

static sem_t sem;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static mtx_t cmu;
static cnd_t ccond;
static pthread_t sleeper;
static pid_t child;
static int locked;
static atomic_int entered;
static struct timespec far;

static void unlock(void *arg)
{
	pthread_mutex_unlock(arg);
}

static void unlock_c(void *arg)
{
	mtx_unlock(arg);
}

#define BLOCKER(name, call)             \
	static void *name(void *arg)    \
	{                               \
		entered = 1;            \
		long r = (long)(call);  \
		(void)r;                \
		return arg;             \
	}

#define WAITER(name, call)                          \
	static void *name(void *arg)                \
	{                                           \
		OK(pthread_mutex_lock(&mu));        \
		pthread_cleanup_push(unlock, &mu);  \
		entered = 1;                        \
		for (;;)                            \
			call;                       \
		pthread_cleanup_pop(1);             \
		return arg;                         \
	}

static const sigset_t *usr2(void)
{
	static sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return &set;
}

static sigset_t *none(void)
{
	static sigset_t set;
	sigemptyset(&set);
	return &set;
}

static struct flock *whole(void)
{
	static struct flock l;
	l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return &l;
}

BLOCKER(by_sem_wait, sem_wait(&sem))
BLOCKER(by_sem_timedwait, sem_timedwait(&sem, &far))
BLOCKER(by_sem_clockwait, sem_clockwait(&sem, CLOCK_REALTIME, &far))
WAITER(by_cond_wait, pthread_cond_wait(&cond, &mu))
WAITER(by_cond_timedwait, pthread_cond_timedwait(&cond, &mu, &far))
WAITER(by_cond_clockwait, pthread_cond_clockwait(&cond, &mu, CLOCK_REALTIME, &far))
BLOCKER(by_join, pthread_join(sleeper, NULL))
BLOCKER(by_timedjoin, pthread_timedjoin_np(sleeper, NULL, &far))
BLOCKER(by_nanosleep, nanosleep(&(struct timespec){1000, 0}, NULL))
BLOCKER(by_clock_nanosleep, clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &far, NULL))
BLOCKER(by_sleep, sleep(1000))
BLOCKER(by_usleep, usleep(900000000))
BLOCKER(by_pause, pause())
BLOCKER(by_sigsuspend, sigsuspend(none()))
BLOCKER(by_sigwait, sigwait(usr2(), &(int){0}))
BLOCKER(by_sigwaitinfo, sigwaitinfo(usr2(), NULL))
BLOCKER(by_sigtimedwait, sigtimedwait(usr2(), NULL, &(struct timespec){1000, 0}))
BLOCKER(by_waitpid, waitpid(child, NULL, 0))
BLOCKER(by_wait4, wait4(child, NULL, 0, NULL))
BLOCKER(by_waitid, waitid(P_PID, child, &(siginfo_t){0}, WEXITED))
BLOCKER(by_setlkw, fcntl(locked, F_SETLKW, whole()))
BLOCKER(by_thrd_sleep, thrd_sleep(&(struct timespec){1000, 0}, NULL))

static void *by_cnd_wait(void *arg)
{
	mtx_lock(&cmu);
	pthread_cleanup_push(unlock_c, &cmu);
	entered = 1;
	for (;;)
		cnd_wait(&ccond, &cmu);
	pthread_cleanup_pop(1);
	return arg;
}

static void *forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void try(const char *name, void *(*f)(void *), bool blocked)
{
	entered = 0;
	pthread_t t = start(f, NULL);
	while (blocked && !entered)
		nap();
	OK(pthread_cancel(t));
	printf("%s, %s: %d\n", name, blocked ? "blocked" : "pending", finish(t) == PTHREAD_CANCELED);
}

int main(void)
{
	far = after(CLOCK_REALTIME, 1000 * SEC);
	CHECK(sem_init(&sem, 0, 0) == 0);
	CHECK(mtx_init(&cmu, mtx_plain) == thrd_success);
	CHECK(cnd_init(&ccond) == thrd_success);
	CHECK(pthread_sigmask(SIG_BLOCK, usr2(), NULL) == 0);
	CHECK((locked = open("locked", O_RDWR | O_CREAT, 0600)) >= 0);
	int ready[2];
	CHECK(pipe(ready) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK(fcntl(locked, F_SETLK, whole()) == 0);
		CHECK(write(ready[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	char c;
	CHECK(read(ready[0], &c, 1) == 1);
	sleeper = start(forever, NULL);

	static const struct {
		const char *name;
		void *(*f)(void *);
	} all[] = {
		{"sem_wait", by_sem_wait},
		{"sem_timedwait", by_sem_timedwait},
		{"sem_clockwait", by_sem_clockwait},
		{"cond_wait", by_cond_wait},
		{"cond_timedwait", by_cond_timedwait},
		{"cond_clockwait", by_cond_clockwait},
		{"join", by_join},
		{"timedjoin", by_timedjoin},
		{"nanosleep", by_nanosleep},
		{"clock_nanosleep", by_clock_nanosleep},
		{"sleep", by_sleep},
		{"usleep", by_usleep},
		{"pause", by_pause},
		{"sigsuspend", by_sigsuspend},
		{"sigwait", by_sigwait},
		{"sigwaitinfo", by_sigwaitinfo},
		{"sigtimedwait", by_sigtimedwait},
		{"waitpid", by_waitpid},
		{"wait4", by_wait4},
		{"waitid", by_waitid},
		{"F_SETLKW", by_setlkw},
		{"thrd_sleep", by_thrd_sleep},
		{"cnd_wait", by_cnd_wait},
	};
	for (int i = 0; i < LEN(all); i++)
		try(all[i].name, all[i].f, true);
	for (int i = 0; i < LEN(all); i++)
		try(all[i].name, all[i].f, false);
	SHOWE(pthread_mutex_trylock(&mu));
	OK(pthread_cancel(sleeper));
	printf("sleeper: %d\n", finish(sleeper) == PTHREAD_CANCELED);
	CHECK(kill(child, SIGTERM) == 0);
	printf("child: %s\n", status_text(wait_for(child)));
	return 0;
}
