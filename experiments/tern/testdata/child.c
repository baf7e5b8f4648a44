// Starts another program, as popen does, with many arguments, and then lets two threads take a lock as often as the first
// argument has an 'a'.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, total;

static void *work(void *unused) {
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		total++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv) {
	char *args[] = {"true", "a text that is as long as the memory of the first program's arguments and more", NULL}, *env[] = {NULL};
	pid_t child;
	if (posix_spawn(&child, "/bin/true", NULL, NULL, args, env) != 0 || waitpid(child, NULL, 0) != child)
		return 1;
	for (char *p = argv[1]; *p; p++)
		rounds += *p == 'a';
	pthread_t a, b;
	pthread_create(&a, NULL, work, NULL);
	pthread_create(&b, NULL, work, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", total);
	return 0;
}
