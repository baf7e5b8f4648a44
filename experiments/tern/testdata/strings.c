// Whether a lock is taken depends on the results of string functions of the C library on an
// argument, and on how much of it is copied.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *arg) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return arg;
}

int main(int argc, char *argv[]) {
  if (argc != 4) return 2;
  char copy[16] = "0000000", from[] = "1111111";
  pthread_t t;
  pthread_create(&t, NULL, worker, NULL);
  if (strchr(argv[1], 'x')) worker(NULL);
  if (strcmp(argv[2], "on") == 0) worker(NULL);
  char *end;
  unsigned long n = strtol(argv[3], &end, 10);
  if (n > 8 || *end) return 3;
  memcpy(copy, from, n);
  if (copy[3] == '1') worker(NULL);
  pthread_join(t, NULL);
  puts(copy);
  return 0;
}
