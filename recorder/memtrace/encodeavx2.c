// The encoder of records for processors with AVX2.
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")

#include "record.h"

size_t memtrace_take_avx2(struct heddle_mem_consumer *c, const struct heddle_mem_access *a, size_t n, const uint64_t *record,
                          uint32_t branches) {
  return take_block((struct memtrace_encoder *)c, a, n, record, branches);
}
