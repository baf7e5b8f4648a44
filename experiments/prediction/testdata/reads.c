// The second thread's section reads what the first one's has written: it comes after it in all orders that keep the
// values.
#include "threads.h"
int x, y;
static void first(void) { x = 1; lock(&m); y = 1; unlock(&m); }
static void second(void) { lock(&m); int seen = y; unlock(&m); if (seen) x = 2; }
int main(void) { run(first, second); return 0; }
