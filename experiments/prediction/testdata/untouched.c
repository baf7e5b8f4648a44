// The first thread loads from memory that no thread has stored to, at the same place of two pages; the second one stores
// to one of the two.
#include "threads.h"
static int zeros[1 << 20];
int y, z;
static void first(void) {
  int a = *(volatile int *)&zeros[500000]; // predicted: 1
  int b = *(volatile int *)&zeros[500000 + 1024];
  lock(&m); y += a + b; unlock(&m);
}
static void second(void) { lock(&m); z++; unlock(&m); zeros[500000] = 2; // predicted: 1
}
int main(void) { run(first, second); return 0; }
