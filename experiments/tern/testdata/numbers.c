// Reads a number of rounds from an option's end, by scanf or otherwise from standard input, or as a real one; two
// threads take a lock once in each round.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

static void *work(void *arg) {
  for (int i = 0; i < rounds / 2; i++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  return arg;
}

int main(int argc, char *argv[]) {
  char line[64];
  if (argc > 2) rounds = (int)strtod(argv[1], NULL);
  else if (!strncmp(argv[1], "-n", 2)) rounds = atoi(argv[1] + 2);
  else if (!strncmp(argv[1], "-u", 2)) rounds = (int)strtoul(argv[1] + 2, NULL, 10);
  else if (!strcmp(argv[1], "scanf")) {
    if (scanf("%d", &rounds) != 1) return 1;
  } else if (argv[1][0] == '=') {
    if (sscanf(argv[1], "=%d", &rounds) != 1) return 1;
  } else if (fgets(line, sizeof line, stdin)) rounds = atoi(line);
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  work(NULL);
  pthread_join(thread, NULL);
  puts("done");
  return 0;
}
