// The access is in a section of another lock, which the thread need not have left.
#include "threads.h"
int x, y;
static void first(void) { lock(&n); x = 1; // predicted: 1
  lock(&m); y++; unlock(&m); unlock(&n); }
static void second(void) { lock(&m); unlock(&m); x = 2; // predicted: 1
}
int main(void) { run(first, second); return 0; }
