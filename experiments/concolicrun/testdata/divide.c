// The idiom of PEREGRINE's figure 3: threads share the work of size bytes, and
// no thread waits for them before the result is used.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int size;
int nthread;
unsigned long result;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int input;

static void *worker(void *arg) {
  char *data = malloc(size / nthread);
  if (read(input, data, size / nthread) < 0) return arg;
  unsigned long sum = 0;
  for (int i = 0; i < size / nthread; ++i) {
    data[i] = data[i] * 3 + 1;
    sum += (unsigned char)data[i];
  }
  pthread_mutex_lock(&mutex);
  result += sum;
  pthread_mutex_unlock(&mutex);
  return arg;
}

int main(int argc, char *argv[]) {
  pthread_t t;
  assert(argc == 4);
  nthread = atoi(argv[1]);
  size = atoi(argv[2]);
  assert(nthread > 0 && size >= nthread);
  for (int i = 1; i < nthread; ++i) pthread_create(&t, NULL, worker, NULL);
  worker(NULL);
#ifdef LATE  // the other threads have added their sums when this one reads the result
  for (volatile int i = 0; i < 5000; ++i) continue;
#endif
  if (atoi(argv[3]) == 1) result += 1000000;
  printf("result = %lu\n", result);
  return 0;
}
