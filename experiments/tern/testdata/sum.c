// Adds up numbers for the letters of a file in some threads: sum THREADS FILE. Which threads take the lock when
// depends on every byte.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[4096];
static int length, threads, total;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
  int sum = 0;
  for (int i = 0; i < length; i++) {
    if (text[i] == 'a') sum += 3;
    else if (text[i] > 'm') sum += 1;
    if (sum % 7 == 3) {
      pthread_mutex_lock(&mutex);
      total += sum;
      pthread_mutex_unlock(&mutex);
    }
  }
  return arg;
}

int main(int argc, char *argv[]) {
  FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
  threads = argc > 1 ? atoi(argv[1]) : 0;
  if (!file || threads < 1 || threads > 4) return 1;
  length = (int)fread(text, 1, sizeof text, file);
  pthread_t id[4];
  for (long i = 0; i < threads; i++) pthread_create(&id[i], NULL, work, (void *)i);
  for (int i = 0; i < threads; i++) pthread_join(id[i], NULL);
  printf("%d\n", total);
  return 0;
}
