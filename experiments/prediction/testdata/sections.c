// The second thread's section comes after the first one's, which orders the accesses in this run; but the section
// can be left out.
#include "threads.h"
int x, y, z;
static void first(void) { x = 1; // predicted: 1
  lock(&m); y++; unlock(&m); }
static void second(void) { lock(&m); z++; unlock(&m); x = 2; // predicted: 1
}
int main(void) { run(first, second); return 0; }
