// A flag of C11 orders, as an atomic instruction or as a plain store: its reads get the values of its writes.
#include "threads.h"
#include <stdatomic.h>
int x, y, z;
static atomic_int flag, count;
static void first(void) {
  x = 1; atomic_store_explicit(&flag, 1, memory_order_release);
  y = 1; atomic_fetch_add(&count, 1);
}
static void second(void) {
  lock(&m); z++; unlock(&m);
  if (atomic_fetch_add(&count, 1) == 1) y = 2;
}
int main(void) { run(first, second); return 0; }
