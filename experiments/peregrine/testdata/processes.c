// Processes made by fork, by vfork (posix_spawn) and by a shell, one of them with
// threads. Two children share a page with their parent, on purpose, and race on it.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int own, *shared;

static void *add(void *arg)
{
	for (int i = 0; i < 50; i++)
		++*shared;
	return arg;
}

static int status(pid_t pid)
{
	int s;
	waitpid(pid, &s, 0);
	return WEXITSTATUS(s);
}

int main(void)
{
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child[2];
	for (int i = 0; i < 2; i++) {
		if ((child[i] = fork()) == 0) {
			pthread_t t;
			pthread_create(&t, 0, add, 0);
			add(0);
			pthread_join(t, 0);
			own++;
			_exit(i + own);
		}
		own += 10;
	}
	for (int i = 0; i < 2; i++)
		printf("%d\n", status(child[i]));
	pid_t echo;
	posix_spawn(&echo, "/bin/echo", 0, 0, (char *[]){"echo", "spawned", 0}, environ);
	fflush(stdout);
	int code = status(echo);
	code += system("echo by a shell");
	printf("%d %d %s\n", code, own, *shared <= 200 ? "all" : "more");
	return *shared % 7;
}
