// Two threads allocate memory and take the lock that its address chooses: addresses ROUNDS SEED.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 8 };
static pthread_mutex_t locks[LOCKS];
static long counts[LOCKS], rounds;

static void *work(void *arg) {
  for (int i = 0; i < rounds; i++) {
    char *block = malloc(40 + i * 8);
    memset(block, 1, 40);
    int k = (uintptr_t)block / 16 % LOCKS;
    pthread_mutex_lock(&locks[k]);
    counts[k]++;
    pthread_mutex_unlock(&locks[k]);
    if (i % 3 == 0) free(block);
  }
  return arg;
}

int main(int argc, char *argv[]) {
  if (argc < 3) return 1;
  rounds = atol(argv[1]);
  pthread_t threads[2];
  for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  long sum = atol(argv[2]);
  for (int i = 0; i < LOCKS; i++) sum += counts[i];
  printf("%ld\n", sum);
  return 0;
}
