#include <stdio.h>

#include "heddle.h"

static int table[4] = {3, 1, 4, 1};
static volatile int shared = 7;

int main(void) {
  heddle_task_begin();
  heddle_input(table, sizeof table);
  int least = table[0];
  for (int i = 1; i < 4; i++) {
    if (table[i] < least) least = table[i];
  }
  heddle_range(least, 1, 9);
  if (shared == 7) puts("seven");
  if (least == 1) puts("one");
  heddle_task_end();
  printf("%d\n", least);
  return 0;
}
