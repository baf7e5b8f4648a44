// Sorts eight bytes of standard input, and does arithmetic of many kinds on them.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  unsigned char b[8];
  if (read(0, b, sizeof b) != sizeof b) return 1;
  int swaps = 0;
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j + 1 < 8 - i; j++) {
      if (b[j] > b[j + 1]) {
        unsigned char t = b[j];
        b[j] = b[j + 1];
        b[j + 1] = t;
        swaps++;
      }
    }
  }
  unsigned sum = 0;
  for (int i = 0; i < 8; i++) sum = (sum << 1) + b[i];
  if ((sum & 3) == 0) puts("a");
  if ((signed char)b[4] < -20) puts("b");
  if (b[7] / (b[0] | 1) > 3) puts("c");
  if ((sum >> (b[1] & 7)) & 1) puts("d");
#ifdef FLOAT
  double mean = (b[0] + b[3] + b[7]) / 3.0;
  if (mean > 100.5) puts("e");
  if ((float)b[2] * 0.1f < 7.7f) puts("f");
  if ((long)(mean * 2.5) == 200) puts("g");
#endif
  return swaps != 5;
}
