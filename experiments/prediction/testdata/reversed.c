// The accesses race only if the second section comes before the first: an order that does not preserve the
// synchronization.
#include "threads.h"
int x;
static void first(void) { lock(&m); x = 1; unlock(&m); }
static void second(void) { lock(&m); unlock(&m); x = 2; }
int main(void) { run(first, second); return 0; }
