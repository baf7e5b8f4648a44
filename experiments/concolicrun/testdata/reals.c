// Branches on two numbers of floating point.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) void say(const char *s) { fputs(s, stdout); __asm__ volatile(""); }

int main(int argc, char *argv[]) {
  if (argc != 3) return 1;
  double x = atof(argv[1]), y = atof(argv[2]);
  float f = (float)x;
  if (x < y) say("less ");
  if (x + y > 10) say("sum ");
  if (f * f < 2.0f) say("square ");
  if (y - 1 == x) say("next ");
  if ((int)y == 3) say("three ");
  if (isnan(x - y)) say("nan ");
  if (x >= 2) say("two ");
  say("\n");
  return 0;
}
