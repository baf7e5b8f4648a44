// A program for debuggers: argv[1] says whether the program has threads, has children,
// crashes, waits for input or is stepped.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct node {
	int value;
	struct node *next;
};

static atomic_int arrived, released;
static volatile int total;
static volatile sig_atomic_t seen;

// hold is on one line: a debugger may stop the thread anywhere in it.
__attribute__((noinline)) static void hold(void) { for (arrived++; !released;) ; }

__attribute__((noinline)) static void meet(int n)
{
	total += n;
}

static void *work(void *arg)
{
	int n = *(int *)arg;
	hold();
	write(3, arg, sizeof n);
	return NULL;
}

// threads has two threads, each of which is let go and waited for in turn.
static int threads(void)
{
	pthread_t t[2];
	int n[2] = {1, 10};
	for (int i = 0; i < 2; i++) {
		released = 0;
		pthread_create(&t[i], NULL, work, &n[i]);
		while (arrived != i + 1)
			;
		meet(n[i]);
		released = 1;
		pthread_join(t[i], NULL);
	}
	printf("total %d\n", total);
	return 0;
}

static void handle(int signal) { seen += signal; }

// children has a child that ends, one that a signal ends, and a signal of its own.
static int children(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	waitpid(pid, &status, 0);
	printf("status %d\n", WEXITSTATUS(status));
	pid = vfork();
	if (pid == 0) {
		execl("/bin/echo", "echo", "a new program", NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	pid = fork();
	if (pid == 0)
		kill(getpid(), SIGKILL);
	waitpid(pid, &status, 0);
	printf("signal %d\n", WTERMSIG(status));
	signal(SIGUSR1, handle);
	kill(getpid(), SIGUSR1);
	struct timespec ts = {0, 1000};
	nanosleep(&ts, NULL);
	printf("seen %d\n", (int)seen);
	fflush(stdout);
	kill(getpid(), SIGTERM);
	return 0;
}

__attribute__((noinline)) static int sum(struct node *n, int depth)
{
	if (depth == 0)
		return n->value + n->next->value;
	return n->value + sum(n, depth - 1);
}

static int crash(void)
{
	struct node n = {5, NULL};
	return sum(&n, 3);
}

static int steps(void)
{
	char text[32] = "";
	for (int i = 0; i < 5; i++) {
		total += i;
		memset(text, 'a' + i, sizeof text);
	}
	return text[31] - 'a';
}

// waits says by a file that it has nothing left to do but to read its input.
static int waits(void)
{
	char line[16];
	close(creat("ready", 0600));
	int n = read(0, line, sizeof line);
	printf("read %d\n", n);
	return n;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	const char *mode = argc > 1 ? argv[1] : "";
	if (strcmp(mode, "threads") == 0)
		return threads();
	if (strcmp(mode, "children") == 0)
		return children();
	if (strcmp(mode, "crash") == 0)
		return crash();
	if (strcmp(mode, "steps") == 0)
		return steps();
	return waits();
}
