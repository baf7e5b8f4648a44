// Level x86-64-v3: products of matrices, FMA, gathers, masked moves, conversions of halves, BMI, LZCNT, MOVBE, strings of glibc.
// cpu: x86-64-v3
// link: -lm
#include "conformance.h"

#include <immintrin.h>
#include <math.h>

enum { N = 48 };

static double a[N][N], b[N][N], c[N][N];
static float fa[N], fb[N];

__attribute__((noinline)) static void multiply(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double s = 0;
			for (int k = 0; k < N; k++)
				s = fma(a[i][k], b[k][j], s);
			c[i][j] = s;
		}
}

static uint64_t hash(const void *p, size_t n)
{
	const unsigned char *s = p;
	uint64_t h = 1469598103934665603u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * 1099511628211u;
	return h;
}

static void matrices(void)
{
	for (int i = 0; i < N; i++) {
		fa[i] = sqrtf(i);
		fb[i] = 1.0f / (i + 1);
		for (int j = 0; j < N; j++) {
			a[i][j] = 1.0 / (i + j + 1);
			b[i][j] = (i - j) * 0.375;
		}
	}
	multiply();
	float dot = 0;
	for (int i = 0; i < N; i++)
		dot += fa[i] * fb[i];
	printf("matrix %016lx, dot %a\n", (unsigned long)hash(c, sizeof c), (double)dot);
}

static void gathers(void)
{
	static int words[256];
	static long longs[256];
	for (int i = 0; i < 256; i++) {
		words[i] = i * 2654435761u;
		longs[i] = i * 0x9e3779b97f4a7c15;
	}
	__m256i index = _mm256_setr_epi32(3, 250, 17, 99, 0, 255, 128, 64), at = _mm256_setr_epi64x(200, 1, 77, 13);
	__m256i r = _mm256_i32gather_epi32(words, index, 4), q = _mm256_i64gather_epi64((long long *)longs, at, 8);
	__m256i half = _mm256_mask_i32gather_epi32(index, words, index, _mm256_setr_epi32(-1, 0, -1, 0, 0, -1, 0, -1), 4);
	__m256d d = _mm256_i32gather_pd((double *)longs, _mm_setr_epi32(5, 6, 7, 8), 8);
	printf("gathers %016lx %016lx %016lx %016lx\n", (unsigned long)hash(&r, 32), (unsigned long)hash(&q, 32),
	       (unsigned long)hash(&half, 32), (unsigned long)hash(&d, 32));
}

static void masked(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
	int *last = (int *)(p + page) - 3; // of eight elements five cannot be accessed
	__m256i mask = _mm256_setr_epi32(-1, 0, -1, 0, 0, 0, 0, 0), ones = _mm256_set1_epi32(0x01020304);
	_mm256_maskstore_epi32(last, mask, ones);
	__m256i back = _mm256_maskload_epi32(last, mask);
	printf("masked %d %d %d, %016lx\n", last[0], last[1], last[2], (unsigned long)hash(&back, 32));
	_mm_maskmoveu_si128(_mm_set1_epi8(0x55), _mm_setr_epi8(-1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), p);
	printf("bytes %x\n", *(int *)p);
	// Across two pages.
	CHECK(mprotect(p + page, page, PROT_READ | PROT_WRITE) == 0);
	_mm256_storeu_si256((__m256i *)last, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8));
	__m256i sum = _mm256_add_epi32(_mm256_loadu_si256((__m256i *)last), ones);
	printf("pages %016lx\n", (unsigned long)hash(&sum, 32));
	CHECK(munmap(p, 2 * page) == 0);
}

static void integers(void)
{
	volatile uint64_t seed = 0x123456789abcdef1;
	uint64_t x = seed, high, low = _mulx_u64(x, x, (unsigned long long *)&high);
	printf("mulx %lx %lx pdep %llx pext %llx bzhi %llx\n", (long)low, (long)high, _pdep_u64(x, 0xf0f0f0f0f0f0f0f0),
	       _pext_u64(x, 0x0ff00ff00ff00ff0), _bzhi_u64(x, 37));
	printf("andn %llx bextr %llx blsi %llx blsr %llx blsmsk %llx\n", (long long)_andn_u64(x, ~0ull), (long long)_bextr_u64(x, 7, 20),
	       (long long)_blsi_u64(x << 9), (long long)_blsr_u64(x), (long long)_blsmsk_u64(x << 5));
	printf("lzcnt %llu %llu tzcnt %llu %llu\n", (long long)_lzcnt_u64(x), (long long)_lzcnt_u64(x - seed), (long long)_tzcnt_u64(x << 3),
	       (long long)_tzcnt_u64(x - seed));
	uint64_t m = __builtin_bswap64(seed);
	__asm__("movbe %1, %0" : "=r"(low) : "m"(m));
	printf("movbe %lx, rorx %lx, sarx %lx\n", (long)low, (long)(x >> 13 | x << 51), (long)((int64_t)x >> (seed & 31)));
}

static void halves(void)
{
	float in[8] = {1, 1.0f / 3, 65504, 65520, -0.0f, 1e-7f, INFINITY, -2.71828f}, out[8];
	__m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT);
	_mm256_storeu_ps(out, _mm256_cvtph_ps(h));
	for (int i = 0; i < 8; i++)
		printf("%a ", (double)out[i]);
	printf("\n");
}

static void strings(void)
{
	char *p = malloc(70000), *q = malloc(70000);
	CHECK(p && q);
	for (int i = 0; i < 70000; i++)
		p[i] = 1 + i * 7 % 251;
	for (int n = 0; n < 70000; n = n * 3 + 1) {
		memcpy(q, p, n);
		q[n] = 0;
		CHECK(strlen(q) == (size_t)n && memcmp(p, q, n) == 0 && !memchr(q, 253, n) && strnlen(q, n + 1) == (size_t)n);
		memmove(q + 3, q, n / 2);
		CHECK(n < 8 || memcmp(q + 3, p, n / 2) == 0);
		memset(q, n, n);
		CHECK(n < 8 || strchr(q, 0) == q + (n % 256 ? n : 0));
	}
	printf("strings\n");
	free(p);
	free(q);
}

int main(void)
{
	matrices();
	gathers();
	masked();
	integers();
	halves();
	strings();
	return 0;
}
