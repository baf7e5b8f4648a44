// N threads read a variable that another one writes.
#include "threads.h"
static int x;
static void thread(long number) {
  if (number == 0)
    STORE(x, 1);
  else
    (void)LOAD(x);
}
static void run(void) {
  for (long i = 0; i <= N; i++) create(i);
}
