// A barrier orders; a semaphore orders what comes before its post.
#include "threads.h"
#include <semaphore.h>
int x, y, z;
static pthread_barrier_t b;
static sem_t s;
static void first(void) {
  x = 1; pthread_barrier_wait(&b);
  y = 1; sem_post(&s);
  z = 1; // predicted: 1
  lock(&m); unlock(&m);
}
static void second(void) {
  pthread_barrier_wait(&b); x = 2;
  sem_wait(&s); y = 2;
  pause_for(200000);
  lock(&m); unlock(&m);
  z = 2; // predicted: 1
}
int main(void) {
  pthread_barrier_init(&b, 0, 2); sem_init(&s, 0, 0);
  run(first, second);
  return 0;
}
