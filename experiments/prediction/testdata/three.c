// The values that the second thread reads are of a third one, whose section must come before its own.
#include "threads.h"
int x, y, made;
static void third(void) { lock(&n); y = 7; unlock(&n); }
static void first(void) { x = 1; // predicted: 1
  lock(&m); made++; unlock(&m); }
static void second(void) { lock(&n); int seen = y; unlock(&n); lock(&m); unlock(&m); if (seen == 7) x = 2; // predicted: 1
}
int main(void) { pthread_t t; start(&t, third); pthread_join(t, 0); run(first, second); return 0; }
