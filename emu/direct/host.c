// The host's processor: what it has of the levels that a guest's can have.
#include "engine.h"

#include <cpuid.h>

#define V2_ECX (1u | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23)  // SSE3 to SSE4.2, CX16, POPCNT
#define V3_ECX (1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29)      // FMA, MOVBE, OSXSAVE, AVX, F16C
#define V3_EBX (1u << 3 | 1u << 5 | 1u << 8)                               // BMI1, AVX2, BMI2
#define LAHF 1u
#define LZCNT (1u << 5)
#define VECTOR_STATE 6u  // XMM and YMM

static uint64_t enabled_state(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

// Reports whether the host's processor has all instructions of the level.
bool direct_host_has(enum direct_level level) {
  uint32_t a, b, c, d, features, extended;
  if (!__get_cpuid(1, &a, &b, &features, &d) || !__get_cpuid(0x80000001u, &a, &b, &extended, &d)) return false;
  if ((features & V2_ECX) != V2_ECX || !(extended & LAHF)) return false;
  if (level == DIRECT_V2) return true;
  if ((features & V3_ECX) != V3_ECX || !(extended & LZCNT) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (b & V3_EBX) == V3_EBX && (enabled_state() & VECTOR_STATE) == VECTOR_STATE;
}
