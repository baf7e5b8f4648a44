// A wait on a condition comes after its signal, and what the signal publishes is ordered; x is not.
#include "threads.h"
int x, data, ready;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void first(void) {
  data = 1;
  lock(&m); ready = 1; pthread_cond_signal(&c); unlock(&m);
  x = 1; // predicted: 1
  lock(&n); unlock(&n);
}
static void second(void) {
  lock(&m); while (!ready) pthread_cond_wait(&c, &m); unlock(&m);
  data++;
  pause_for(200000);
  lock(&n); unlock(&n);
  x = 2; // predicted: 1
}
int main(void) { run(first, second); return 0; }
