// Executes x87 instructions on the host's processor. Reads cases of a second opcode byte, 15 bytes
// that are not used and an FXSAVE image, and writes the images after D9 and that byte.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint8_t image[512] __attribute__((aligned(16)));

#define CASE(name, code) \
  case code: \
    __asm__ volatile("fxrstor64 %0\n\t" name "\n\tfxsave64 %0\n\tfninit" : "+m"(image)); \
    break;

int main(void) {
  uint8_t head[16];
  while (fread(head, sizeof head, 1, stdin) == 1 && fread(image, sizeof image, 1, stdin) == 1) {
    switch (head[0]) {
      CASE("f2xm1", 0xf0)
      CASE("fyl2x", 0xf1)
      CASE("fptan", 0xf2)
      CASE("fpatan", 0xf3)
      CASE("fxtract", 0xf4)
      CASE("fprem1", 0xf5)
      CASE("fprem", 0xf8)
      CASE("fyl2xp1", 0xf9)
      CASE("fsincos", 0xfb)
      CASE("fscale", 0xfd)
      CASE("fsin", 0xfe)
      CASE("fcos", 0xff)
      default:
        return 1;
    }
    if (fwrite(image, sizeof image, 1, stdout) != 1) return 1;
  }
  return fflush(stdout) != 0;
}
