// Threads that wait for each other in loops without PAUSE, by atomic loads, as redis's do.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int turn;
static int sum;

static void *work(void *arg) {
  int me = (int)(long)arg;
  for (int i = 0; i < 10; i++) {
    while (turn % 2 != me) {
    }
    sum++;
    turn++;
  }
  return NULL;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, NULL, work, (void *)1);
  work((void *)0);
  pthread_join(t, NULL);
  printf("%d\n", sum);
}
