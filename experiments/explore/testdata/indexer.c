// N threads insert values into a hash table by compare and swap. From 12 threads on some collide.
#include "threads.h"
enum { SIZE = 128, MOST = 4 };
static int table[SIZE];
static void thread(long number) {
  for (int m = 1; m <= MOST; m++) {
    int w = m * 11 + (int)number, h = w * 7 % SIZE, zero;
    do {
      zero = 0;
      if (__atomic_compare_exchange_n(&table[h], &zero, w, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
      h = (h + 1) % SIZE;
    } while (1);
  }
}
static void run(void) {
  for (long i = 0; i < N; i++) create(i);
}
