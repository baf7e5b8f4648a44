// Level x86-64-v3: the registers of AVX over signals, in frames of handlers, and in frames that are damaged.
// cpu: x86-64-v3
// exit: 4
#include "avx.h"

#include <sys/auxv.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile sig_atomic_t hits, dirty;

static void clobber(int sig)
{
	static struct ymm r[16], ones[16];
	(void)sig;
	__asm__ volatile(ALL(GET) : : "r"(r) : "memory");
	for (int i = 0; i < 16; i++)
		if (hits == 0 && (r[i].low[0] | r[i].low[1] | r[i].high[0] | r[i].high[1]))
			dirty++;
	memset(ones, 0xff, sizeof ones);
	__asm__ volatile(ALL(SET) : : "r"(ones) : CLOBBERS);
	hits++;
}

// The sum of products in YMM registers; one that is lost changes it.
__attribute__((noinline)) static double compute(void)
{
	static double x[512];
	double s[4] = {0}, t = 0;
	for (int i = 0; i < LEN(x); i++)
		x[i] = 1.0 / (i + 1);
	for (int n = 0; n < 40; n++)
		for (int i = 0; i < LEN(x); i += 4)
			for (int k = 0; k < 4; k++)
				s[k] += x[i + k] * x[i + k] * (n + 1);
	for (int k = 0; k < 4; k++)
		t += s[k];
	return t;
}

static void interrupted(void)
{
	on_signal(SIGALRM, clobber, SA_RESTART);
	raise(SIGALRM);
	printf("handlers start with zeros: %d\n", dirty == 0);
	double want = compute();
	struct itimerval it = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
	for (int rounds = 0; hits < 20 || rounds < 20; rounds++)
		CHECK(compute() == want);
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	printf("sums unchanged\n");
}

static void over_call(void)
{
	struct ymm r[16], want[16];
	fill(r, 5);
	memcpy(want, r, sizeof r);
	CHECK(set_call(r, SYS_tgkill, getpid(), gettid(), SIGALRM) == 0);
	printf("registers over a signal: %d\n", memcmp(r, want, sizeof r) == 0);
}

static int mode;
static void *kept;

static struct _fpx_sw_bytes *words(void *fp) { return (void *)((char *)fp + 464); }

// What a handler does to the state in its frame.
static void change(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *fp = (char *)uc->uc_mcontext.fpregs;
	struct _fpx_sw_bytes *w = words(fp);
	uint64_t *header = (uint64_t *)(fp + 512);
	(void)sig;
	(void)info;
	switch (mode) {
	case 0:
		printf("flag %lu, magic %x %x, features %llu, header %llu, sizes %d %d, aligned %d\n", uc->uc_flags & 1, w->magic1,
		       *(unsigned *)(fp + w->xstate_size), (unsigned long long)w->xstate_bv & 7, (unsigned long long)header[0] & 7,
		       w->extended_size - w->xstate_size, w->xstate_size >= 832, (uintptr_t)fp % 64 == 0);
		CHECK(getauxval(AT_MINSIGSTKSZ) > w->extended_size + sizeof(ucontext_t) - 512);
		((uint64_t *)(fp + high_at()))[2 * 3] = 0x3333333333333333; // YMM3
		return;
	case 1: // the legacy state alone
		w->magic1 = 0;
		return;
	case 2:
		*(unsigned *)(fp + w->xstate_size) = 0;
		return;
	case 3: // AVX in its initial state
		header[0] &= ~4ull;
		return;
	case 4: // AVX is not to be restored
		w->xstate_bv &= ~4ull;
		return;
	case 5:
		w->xstate_size = 100;
		return;
	case 6: // no state
		uc->uc_mcontext.fpregs = NULL;
		return;
	case 7: // a copy elsewhere
		memcpy(kept, fp, w->extended_size);
		uc->uc_mcontext.fpregs = kept;
		return;
	case 8: // reserved
		header[0] |= 1ull << 62;
		return;
	case 9:
		header[1] = 1;
		return;
	case 10:
		((uint32_t *)fp)[6] |= 1u << 16; // MXCSR
		return;
	case 11: // not aligned
		memcpy((char *)kept + 16, fp, w->extended_size);
		uc->uc_mcontext.fpregs = (void *)((char *)kept + 16);
		return;
	case 12:
		uc->uc_mcontext.fpregs = (void *)4096;
		return;
	}
}

static void frames(void)
{
	on_siginfo(SIGUSR1, change, 0);
	kept = aligned_alloc(64, 8192);
	CHECK(kept);
	for (mode = 0; mode < 13; mode++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct ymm r[16], want[16];
			no_core();
			fill(r, mode);
			memcpy(want, r, sizeof r);
			CHECK(set_call(r, SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0);
			int low = 0, high = 0;
			for (int i = 0; i < 16; i++) {
				low += !memcmp(r[i].low, want[i].low, 16);
				high += !memcmp(r[i].high, want[i].high, 16);
			}
			printf("mode %d: %d %d, third %lx, last %d\n", mode, low, high, mode ? 0 : (long)r[3].high[0], r[15].high[1] == 0);
			_exit(0);
		}
		printf("mode %d: %s\n", mode, status_text(wait_for(pid)));
	}
}

// A SIGSEGV of sigreturn comes after the registers were restored.
static void refused(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	printf("refused, code %d\n", info->si_code == SI_KERNEL);
	_exit(4);
}

int main(void)
{
	interrupted();
	over_call();
	frames();
	on_siginfo(SIGSEGV, refused, 0);
	mode = 8;
	raise(SIGUSR1);
	return 0;
}
