// Thread 0 looks for the last zero of an array; N others set an element to the one before it and 1.
#include "threads.h"
static int array[N + 1];
static void thread(long number) {
  if (number == 0) {
    for (int i = N; LOAD(array[i]) != 0; i--)
      ;
  } else {
    int before = LOAD(array[number - 1]);
    STORE(array[number], before + 1);
  }
}
static void run(void) {
  for (long i = 0; i <= N; i++) create(i);
}
