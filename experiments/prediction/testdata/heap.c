// Blocks of the heap, system calls and output come between the accesses; the witness leaves some of them out.
#include "threads.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct entry { long key; char *name; };
struct entry *shared;
void *kept[64];
static void first(void) {
  for (int i = 0; i < 32; i++) kept[i] = malloc(24 + 8 * i);
  shared->key = 1; // predicted: 1
  write(1, "first\n", 6);
  for (int i = 0; i < 32; i++) free(kept[i]);
  lock(&m); unlock(&m);
}
static void second(void) {
  char *own = strdup("second\n");
  lock(&m); unlock(&m);
  for (int i = 32; i < 64; i++) kept[i] = malloc(5000 * i);
  write(1, own, strlen(own));
  free(own);
  shared->key += 2; // predicted: 1
}
int main(void) {
  shared = calloc(1, sizeof *shared);
  run(first, second);
  return 0;
}
