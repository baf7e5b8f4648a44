// SSE and SSE2 on integers and floats, lane by lane: arithmetic, saturation, packing, shuffles, shifts, comparisons, moves.
#include "conformance.h"

#include <emmintrin.h>

static uint64_t state = 88172645463325252ul;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t hash;

static void mix(__m128i v)
{
	uint32_t w[4];
	memcpy(w, &v, 16);
	for (int i = 0; i < 4; i++)
		hash = (hash ^ w[i]) * 16777619u;
}

#define INT(op)                                                      \
	do {                                                         \
		hash = 1;                                            \
		for (int i = 0; i < 100; i++) {                      \
			__m128i a = _mm_set_epi64x(next(), next());  \
			__m128i b = _mm_set_epi64x(next(), next());  \
			(void)b;                                     \
			mix(op);                                     \
		}                                                    \
		printf("%-36s %08x\n", #op, hash);                   \
	} while (0)

#define FLT(op)                                                                         \
	do {                                                                            \
		hash = 1;                                                               \
		for (int i = 0; i < 100; i++) {                                         \
			__m128 a = _mm_set_ps((int)next(), (int)next() / 3.f, i, -i);   \
			__m128 b = _mm_set_ps((short)next(), i + .5f, (int)next(), i);  \
			(void)b;                                                        \
			mix(_mm_castps_si128(op));                                      \
		}                                                                       \
		printf("%-36s %08x\n", #op, hash);                                      \
	} while (0)

#define DBL(op)                                                                     \
	do {                                                                        \
		hash = 1;                                                           \
		for (int i = 0; i < 100; i++) {                                     \
			__m128d a = _mm_set_pd((long)next() / 7., i - 50.25);       \
			__m128d b = _mm_set_pd((int)next(), (short)next() + .125);  \
			(void)a;                                                    \
			(void)b;                                                    \
			mix(_mm_castpd_si128(op));                                  \
		}                                                                   \
		printf("%-36s %08x\n", #op, hash);                                  \
	} while (0)

int main(void)
{
	INT(_mm_add_epi8(a, b));
	INT(_mm_adds_epi8(a, b));
	INT(_mm_adds_epu16(a, b));
	INT(_mm_sub_epi64(a, b));
	INT(_mm_subs_epu8(a, b));
	INT(_mm_subs_epi16(a, b));
	INT(_mm_mullo_epi16(a, b));
	INT(_mm_mulhi_epi16(a, b));
	INT(_mm_mulhi_epu16(a, b));
	INT(_mm_mul_epu32(a, b));
	INT(_mm_madd_epi16(a, b));
	INT(_mm_sad_epu8(a, b));
	INT(_mm_avg_epu8(a, b));
	INT(_mm_avg_epu16(a, b));
	INT(_mm_min_epu8(a, b));
	INT(_mm_max_epi16(a, b));
	INT(_mm_cmpgt_epi8(a, b));
	INT(_mm_cmpgt_epi32(a, b));
	INT(_mm_cmpeq_epi16(a, _mm_unpacklo_epi16(a, b)));
	INT(_mm_packs_epi16(a, b));
	INT(_mm_packus_epi16(a, b));
	INT(_mm_packs_epi32(a, b));
	INT(_mm_unpackhi_epi8(a, b));
	INT(_mm_unpacklo_epi64(a, b));
	INT(_mm_shuffle_epi32(a, 0x1b));
	INT(_mm_shufflehi_epi16(a, 0x72));
	INT(_mm_shufflelo_epi16(a, 0x8d));
	INT(_mm_slli_si128(a, 5));
	INT(_mm_srli_si128(a, 11));
	INT(_mm_slli_epi32(a, 7));
	INT(_mm_srai_epi16(a, 20));
	INT(_mm_srl_epi64(a, _mm_cvtsi32_si128(i)));
	INT(_mm_sra_epi32(a, _mm_cvtsi32_si128(i)));
	INT(_mm_andnot_si128(a, b));
	INT(_mm_insert_epi16(a, i, 3));
	INT(_mm_cvtsi32_si128(_mm_extract_epi16(a, 6)));
	INT(_mm_cvtsi32_si128(_mm_movemask_epi8(a)));
	INT(_mm_move_epi64(a));
	INT(_mm_castpd_si128(_mm_cvtepi32_pd(a)));
	INT(_mm_castps_si128(_mm_cvtepi32_ps(a)));
	FLT(_mm_add_ps(a, b));
	FLT(_mm_sub_ps(a, b));
	FLT(_mm_mul_ps(a, b));
	FLT(_mm_div_ps(a, b));
	FLT(_mm_sqrt_ps(_mm_max_ps(a, b)));
	FLT(_mm_min_ps(a, b));
	FLT(_mm_cmplt_ps(a, b));
	FLT(_mm_cmpunord_ps(_mm_div_ps(a, a), b));
	FLT(_mm_cmpnle_ps(a, b));
	FLT(_mm_shuffle_ps(a, b, 0x6c));
	FLT(_mm_unpackhi_ps(a, b));
	FLT(_mm_movehl_ps(a, b));
	FLT(_mm_add_ss(a, b));
	FLT(_mm_castsi128_ps(_mm_cvtps_epi32(a)));
	FLT(_mm_castsi128_ps(_mm_cvttps_epi32(a)));
	FLT(_mm_castpd_ps(_mm_cvtps_pd(a)));
	FLT(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm_movemask_ps(a))));
	FLT(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm_comilt_ss(a, b) + 2 * _mm_ucomineq_ss(a, b))));
	DBL(_mm_add_pd(a, b));
	DBL(_mm_mul_pd(a, b));
	DBL(_mm_div_pd(a, b));
	DBL(_mm_sqrt_pd(_mm_mul_pd(a, a)));
	DBL(_mm_max_pd(a, b));
	DBL(_mm_cmpge_pd(a, b));
	DBL(_mm_shuffle_pd(a, b, 1));
	DBL(_mm_castps_pd(_mm_cvtpd_ps(a)));
	DBL(_mm_castsi128_pd(_mm_cvtpd_epi32(b)));
	DBL(_mm_castsi128_pd(_mm_cvttpd_epi32(b)));
	DBL(_mm_sub_sd(a, b));
	DBL(_mm_cvtsi64_sd(a, (long)next()));
	DBL(_mm_cvtss_sd(a, _mm_set_ss(i * .3f)));
	DBL(_mm_castsi128_pd(_mm_cvtsi64_si128(_mm_cvtsd_si64(b))));

	// Stores that bypass the cache, masked stores, unaligned loads.
	_Alignas(16) unsigned char m[64] = {0};
	__m128i v = _mm_set_epi64x(next(), next());
	_mm_stream_si128((__m128i *)m, v);
	_mm_stream_si32((int *)(m + 16), 0x11223344);
	_mm_sfence();
	_mm_storeu_si128((__m128i *)(m + 23), v);
	_mm_maskmoveu_si128(_mm_set1_epi8(0x7e), v, (char *)m + 41);
	hash = 1;
	for (int i = 0; i < 64; i += 16)
		mix(_mm_load_si128((__m128i *)(m + i)));
	mix(_mm_loadu_si128((__m128i *)(m + 3)));
	printf("%-36s %08x\n", "stores", hash);
	return 0;
}
