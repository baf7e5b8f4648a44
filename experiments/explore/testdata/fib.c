// Two threads add two variables to each other N times; main looks whether they exceed a Fibonacci number.
#include "threads.h"
static int i = 1, j = 1;
static void thread(long number) {
  for (int k = 0; k < N; k++) {
    if (number == 0) {
      int a = LOAD(i), b = LOAD(j);
      STORE(i, a + b);
    } else {
      int a = LOAD(j), b = LOAD(i);
      STORE(j, a + b);
    }
  }
}
static void run(void) {
  create(0);
  create(1);
  int before = 0, most = 1;
  for (int n = 0; n < 1 + 2 * N; n++) {
    int next = before + most;
    before = most;
    most = next;
  }
  if (LOAD(i) > most || LOAD(j) > most) fail();
}
