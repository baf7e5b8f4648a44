// A thread that is not the first executes the program again, twice, while other
// processes do the same.
#include "selflog.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char **arguments;

static void *again(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	execv("/proc/self/exe", arguments);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	pid_t child[2];
	arguments = argv;
	if (strcmp(argv[1], "0") == 0) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		while (wait(NULL) > 0)
			;
		return 0;
	}
	if (strcmp(argv[1], "2") == 0)
		for (int i = 0; i < 2; i++)
			if ((child[i] = fork()) == 0)
				break;
	argv[1][0]--;
	pthread_create(&t, NULL, again, NULL);
	for (;;)
		pause();
}
