// Operations that do not simply return: interrupted by signals, left by
// siglongjmp and cancellation, called in handlers and in once routines, in
// libraries that come and go, by old versions of symbols, and in other processes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selflog.h"

static sem_t semaphore;
static sigjmp_buf back;
static volatile int how;
enum { POST, JUMP };

static void in_handler(int number)
{
	if (how == POST)
		CALL("sem_post", sem_post(&semaphore));
	else
		siglongjmp(back, 1);
}

static void soon(void)
{
	struct itimerval t = {{0, 0}, {0, 5000}};
	setitimer(ITIMER_REAL, &t, NULL);
}

static void handlers(int flags)
{
	struct sigaction a = {.sa_handler = in_handler, .sa_flags = flags};
	sigaction(SIGALRM, &a, NULL);
	CALL("sem_init", sem_init(&semaphore, 0, 0));
	how = POST;
	soon();
	int result = sem_wait(&semaphore);
	say("sem_wait %d", result);
	if (result < 0)
		CALL("sem_wait", sem_wait(&semaphore));
	how = JUMP;
	for (volatile int i = 0; i < 3; i++) {
		soon();
		if (sigsetjmp(back, 1) == 0)
			sem_wait(&semaphore);
		else
			say("sem_wait unwound");
	}
	CALL("sem_trywait", sem_trywait(&semaphore));
	CALL("sem_destroy", sem_destroy(&semaphore));
}

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready;

static void cleanup(void *number)
{
	say("cond_wait unwound");
	CALL("mutex_unlock", pthread_mutex_unlock(&m));
}

static void *canceled(void *number)
{
	self = (int)(long)number;
	CALL("mutex_lock", pthread_mutex_lock(&m));
	pthread_cleanup_push(cleanup, NULL);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancellation(void)
{
	pthread_t t;
	CALL("create", pthread_create(&t, NULL, canceled, (void *)1L));
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	CALL("cancel", pthread_cancel(t));
	CALL("join", pthread_join(t, NULL));
}

static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;

static void second(void) { CALL("cond_signal", pthread_cond_signal(&c)); }

static void first(void) { CALL("once", pthread_once(&inner, second)); }

// The versions from before 2003, which allocate the condition.
int old_init(void *, const void *), old_signal(void *), old_broadcast(void *), old_destroy(void *);
int old_timedwait(void *, pthread_mutex_t *, const struct timespec *);
__asm__(".symver old_init, pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_broadcast, pthread_cond_broadcast@GLIBC_2.2.5");
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver old_destroy, pthread_cond_destroy@GLIBC_2.2.5");

static void old(void)
{
	void *condition = NULL;
	struct timespec past = {1, 0};
	CALL("cond_init", old_init(&condition, NULL));
	CALL("cond_signal", old_signal(&condition));
	CALL("mutex_lock", pthread_mutex_lock(&m));
	CALL("cond_timedwait", old_timedwait(&condition, &m, &past));
	CALL("mutex_unlock", pthread_mutex_unlock(&m));
	CALL("cond_broadcast", old_broadcast(&condition));
	CALL("cond_destroy", old_destroy(&condition));
}

static void libraries(const char *path)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_NOW);
		int (*act)(void) = (int (*)(void))dlsym(library, "act");
		say("custom_acquire %d", act());
		say("mutex_lock 0");
		say("mutex_unlock 0");
		dlclose(library);
	}
}

static void processes(void)
{
	extern char **environ;
	char *arguments[] = {"true", NULL};
	pid_t pid;
	int status;
	fflush(stdout);
	if ((pid = fork()) == 0) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		_exit(0);
	}
	say("fork");
	waitpid(pid, &status, 0);
	posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ);
	say("fork");
	waitpid(pid, &status, 0);
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
	handlers(0);
	handlers(SA_RESTART);
	sigaltstack(&alternate, NULL);
	handlers(SA_ONSTACK);
	handlers(SA_ONSTACK | SA_RESTART);
	cancellation();
	CALL("once", pthread_once(&outer, first));
	old();
	libraries(argv[1]);
	processes();
	tell();
	return 0;
}
