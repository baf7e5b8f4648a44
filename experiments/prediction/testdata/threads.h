// Common parts of the programs of this folder: two threads, of which the second one starts later than the first one
// ends, unless they wait for each other.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static void lock(pthread_mutex_t *x) { pthread_mutex_lock(x); }
static void unlock(pthread_mutex_t *x) { pthread_mutex_unlock(x); }
static void pause_for(int turns) { for (volatile int i = 0; i < turns; i++); }
static void *call(void *f) { ((void (*)(void))f)(); return 0; }
static void start(pthread_t *t, void (*f)(void)) { pthread_create(t, 0, call, f); }
static void run(void (*first)(void), void (*second)(void)) {
  pthread_t t, u;
  (void)n; (void)pause_for;
  start(&t, first);
  pause_for(200000);
  start(&u, second);
  pthread_join(t, 0); pthread_join(u, 0);
}
