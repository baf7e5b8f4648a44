// A thread waits in a system call until the signal of another ends it. The argument names the call.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static sigset_t none;
static int pipes[2];

static void handler(int n) { caught = n; }

static void *sender(void *to)
{
	pthread_kill(*(pthread_t *)to, SIGUSR2);
	return 0;
}

static void wait_in(const char *call)
{
	char byte;

	if (!strcmp(call, "sigsuspend"))
		sigsuspend(&none);
	else if (!strcmp(call, "read"))
		read(pipes[0], &byte, 1);
	else
		usleep(100000000);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	pthread_t self = pthread_self(), thread;
	sigset_t blocked;

	sigemptyset(&none);
	sigemptyset(&blocked);
	if (!strcmp(argv[1], "sigsuspend"))
		sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, 0);
	sigaction(SIGUSR2, &action, 0);
	if (pipe(pipes) || pthread_create(&thread, 0, sender, &self))
		return 1;
	while (!caught)
		wait_in(argv[1]);
	pthread_join(thread, 0);
	printf("signal %d\n", caught);
	return 0;
}
