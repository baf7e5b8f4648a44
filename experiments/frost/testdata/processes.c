// Processes that wait for each other in system calls: by vfork, by pipes that are full, by poll and
// epoll_wait whose time is up or that a signal ends, and by waits for their ends; and file time stamps
// in memory.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile sig_atomic_t children;
static struct stat stamps[2][8];

static void count(int unused) { children++; }

// spin computes for a while.
static void spin(int n)
{
	for (volatile int i = 0; i < n; i++) ;
}

// fill writes more than a pipe holds.
static void *fill(void *to)
{
	static char block[200000];
	memset(block, 'x', sizeof block);
	for (int i = 0; i < 2; i++)
		if (write(*(int *)to, block, sizeof block) != sizeof block) return (void *)1;
	close(*(int *)to);
	return 0;
}

// stamp keeps the time stamps of a file of its own.
static void *stamp(void *id)
{
	long n = (long)id;
	char name[16];
	sprintf(name, "f%ld", n);
	for (int i = 0; i < 8; i++) {
		int fd = open(name, O_CREAT | O_RDWR | O_APPEND, 0600);
		spin(500 * (n + 1));
		if (write(fd, "abc", 3) != 3 || pread(fd, &(char){0}, 1, 0) != 1) return (void *)1;
		fstat(fd, &stamps[n][i]);
		close(fd);
	}
	return 0;
}

int main(void)
{
	struct sigaction a = {.sa_handler = count};
	sigaction(SIGCHLD, &a, 0);
	pthread_t t[2];
	for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, stamp, (void *)i);
	void *bad = 0, *result;
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &result);
		bad = bad ? bad : result;
	}
	int p[2], q[2], e = epoll_create1(0), interrupted = 0;
	if (pipe(p) || pipe(q)) return 1;
	pthread_create(&t[0], 0, fill, &p[1]);
	long total = 0;
	static char got[5000];
	for (ssize_t n; (n = read(p[0], got, sizeof got)) > 0;) {
		total += n;
		spin(n / 10);
	}
	pthread_join(t[0], &result);
	epoll_ctl(e, EPOLL_CTL_ADD, q[0], &(struct epoll_event){.events = EPOLLIN});
	int idle = poll(&(struct pollfd){q[0], POLLIN, 0}, 1, 1);
	struct epoll_event x;
	idle += epoll_wait(e, &x, 1, 1);
	for (int i = 0; i < 3; i++) {
		pid_t child;
		char command[64];
		sprintf(command, "i=0; while [ $i -lt %d ]; do i=$((i + 1)); done; echo %d >&%d", 40 * i, i, q[1]);
		char *words[] = {"sh", "-c", command, 0};
		if (posix_spawn(&child, "/bin/sh", 0, 0, words, environ)) return 1;
		while (epoll_wait(e, &x, 1, -1) != 1) interrupted++;
		read(q[0], got, 2);
		int status;
		while (waitpid(child, &status, 0) != child) ;
		spin(3000 * i);
	}
	while (children < 3) pause();
	printf("%ld %d %d %d %d\n", total, idle, (int)children, interrupted <= 3, bad || result);
	return 0;
}
