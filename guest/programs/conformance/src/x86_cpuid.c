// CPUID: all leaves answer, basic facts of x86-64 hold, announced features work and give the right results.
#include "conformance.h"

#include <cpuid.h>
#include <ctype.h>
#include <tmmintrin.h>
#include <smmintrin.h>
#include <nmmintrin.h>

static uint64_t state = 1234567;

static uint64_t next(void)
{
	return state = state * 6364136223846793005ul + 1442695040888963407ul;
}

__attribute__((target("popcnt"))) static void check_popcnt(void)
{
	for (int i = 0; i < 200; i++) {
		uint64_t x = next(), n = 0, r;
		for (int b = 0; b < 64; b++)
			n += x >> b & 1;
		__asm__("popcnt %1, %0" : "=r"(r) : "r"(x) : "cc");
		CHECK(r == n);
	}
}

__attribute__((target("ssse3"))) static void check_ssse3(void)
{
	for (int i = 0; i < 100; i++) {
		unsigned char a[16], k[16], r[16];
		for (int j = 0; j < 16; j++)
			a[j] = next() >> 40, k[j] = next() >> 40;
		__m128i v = _mm_loadu_si128((__m128i *)a), w = _mm_loadu_si128((__m128i *)k);
		_mm_storeu_si128((__m128i *)r, _mm_shuffle_epi8(v, w));
		for (int j = 0; j < 16; j++)
			CHECK(r[j] == (k[j] & 0x80 ? 0 : a[k[j] & 15]));
		_mm_storeu_si128((__m128i *)r, _mm_alignr_epi8(v, w, 5));
		for (int j = 0; j < 16; j++)
			CHECK(r[j] == (j + 5 < 16 ? k[j + 5] : a[j + 5 - 16]));
		_mm_storeu_si128((__m128i *)r, _mm_abs_epi8(v));
		for (int j = 0; j < 16; j++)
			CHECK(r[j] == (unsigned char)abs((signed char)a[j]));
	}
}

__attribute__((target("sse4.1"))) static void check_sse41(void)
{
	for (int i = 0; i < 100; i++) {
		int32_t a[4], b[4], r[4];
		for (int j = 0; j < 4; j++)
			a[j] = next() >> 30, b[j] = next() >> 30;
		__m128i v = _mm_loadu_si128((__m128i *)a), w = _mm_loadu_si128((__m128i *)b);
		_mm_storeu_si128((__m128i *)r, _mm_min_epi32(v, w));
		for (int j = 0; j < 4; j++)
			CHECK(r[j] == (a[j] < b[j] ? a[j] : b[j]));
		_mm_storeu_si128((__m128i *)r, _mm_mullo_epi32(v, w));
		for (int j = 0; j < 4; j++)
			CHECK(r[j] == (int32_t)((uint32_t)a[j] * (uint32_t)b[j]));
		CHECK(_mm_extract_epi32(v, 2) == a[2]);
		CHECK(_mm_testz_si128(v, w) == ((a[0] & b[0]) == 0 && (a[1] & b[1]) == 0 && (a[2] & b[2]) == 0 && (a[3] & b[3]) == 0));
	}
	CHECK(_mm_cvtsd_f64(_mm_round_sd(_mm_setzero_pd(), _mm_set_sd(-2.5), _MM_FROUND_TO_NEG_INF)) == -3);
}

__attribute__((target("sse4.2"))) static void check_sse42(void)
{
	uint32_t crc = ~0u, want = ~0u;
	for (int i = 0; i < 100; i++) {
		unsigned char c = next() >> 50;
		crc = _mm_crc32_u8(crc, c);
		want ^= c;
		for (int b = 0; b < 8; b++)
			want = want >> 1 ^ (want & 1 ? 0x82f63b78 : 0);
	}
	CHECK(crc == want);
	__m128i text = _mm_loadu_si128((const __m128i *)"find the blank..."), set = _mm_loadu_si128((const __m128i *)" .\0aaaaaaaaaaaaa");
	CHECK(_mm_cmpistri(set, text, _SIDD_CMP_EQUAL_ANY) == 4);
	CHECK(_mm_cmpestri(text, 8, text, 16, _SIDD_CMP_EQUAL_ORDERED) == 0);
}

int main(void)
{
	unsigned a, b, c, d, max, ext;
	char vendor[13] = {0};
	__cpuid(0, max, b, c, d);
	memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
	for (int i = 0; i < 12; i++)
		CHECK(isprint((unsigned char)vendor[i]));
	CHECK(max >= 1);
	for (unsigned leaf = 0; leaf <= max && leaf < 64; leaf++)
		for (unsigned sub = 0; sub < 4; sub++)
			__cpuid_count(leaf, sub, a, b, c, d);
	__cpuid(0x80000000, ext, b, c, d);
	CHECK(ext >= 0x80000001);
	for (unsigned leaf = 0x80000000; leaf <= ext && leaf < 0x80000040; leaf++)
		__cpuid_count(leaf, 0, a, b, c, d);
	__cpuid(0x80000001, a, b, c, d);
	printf("long mode %d, syscall %d, no-execute %d\n", d >> 29 & 1, d >> 11 & 1, d >> 20 & 1);
	__cpuid(1, a, b, c, d);
	printf("fpu %d tsc %d cx8 %d cmov %d fxsr %d sse %d sse2 %d\n", d & 1, d >> 4 & 1, d >> 8 & 1, d >> 15 & 1, d >> 24 & 1,
	       d >> 25 & 1, d >> 26 & 1);
	if (c & bit_POPCNT)
		check_popcnt();
	if (c & bit_SSSE3)
		check_ssse3();
	if (c & bit_SSE4_1)
		check_sse41();
	if (c & bit_SSE4_2)
		check_sse42();
	// The state that XSAVE manages is announced together with the instruction that reads it.
	if (c & bit_OSXSAVE) {
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
		CHECK((a & 3) == 3);
	}
	// The same on every thread, and builtin tests agree.
	__builtin_cpu_init();
	CHECK(__builtin_cpu_supports("sse2"));
	CHECK(!!__builtin_cpu_supports("popcnt") == !!(c & bit_POPCNT));
	printf("what is announced works\n");
	return 0;
}
