// A server that answers each line of a client with the number of units that it has counted, two for each line: by two threads
// with a lock, or without one if its argument is "race". It ends after the line "quit".
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long count;
static int locked = 1;

static void *add(void *unused)
{
	if (locked) pthread_mutex_lock(&lock);
	long n = count;
	for (volatile int i = 0; i < 20000; i++) ;
	count = n + 1;
	if (locked) pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), client;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	locked = argc < 2 || strcmp(argv[1], "race") != 0;
	if (bind(listener, (void *)&a, sizeof a) < 0 || listen(listener, 100) < 0) return 1;
	while ((client = accept(listener, 0, 0)) >= 0) {
		FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
		char line[100];
		while (fgets(line, sizeof line, in)) {
			pthread_t helper;
			pthread_create(&helper, 0, add, 0);
			add(0);
			pthread_join(helper, 0);
			fprintf(out, "%ld %s", count, line);
			fflush(out);
			if (strcmp(line, "quit\n") == 0) return 7;
		}
		fclose(in);
		fclose(out);
	}
	return 2;
}
