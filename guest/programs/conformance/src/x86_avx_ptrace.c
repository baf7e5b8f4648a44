// Level x86-64-v3: the registers of AVX by ptrace, as the set NT_X86_XSTATE and apart from FXSAVE's.
// cpu: x86-64-v3
#include "tracer.h"

#include "avx.h"

#include <elf.h>
#include <sys/uio.h>
#include <sys/user.h>

static int keeps(void)
{
	struct ymm r[16];
	fill(r, 3);
	set_call(r, SYS_kill, getpid(), SIGUSR1, 0);
	printf("tracee: %lx %lx, %lx %lx, %lx\n", (long)r[2].low[0], (long)r[2].high[1], (long)r[9].low[1], (long)r[9].high[0], (long)r[15].high[0]);
	set_call(r, SYS_kill, getpid(), SIGUSR1, 0);
	printf("tracee: %lx %lx\n", (long)r[2].low[0], (long)r[2].high[1]);
	return 5;
}

static char image[8192];

static size_t get(pid_t pid)
{
	struct iovec v = {image, sizeof image};
	memset(image, 0xee, sizeof image);
	CHECK(trace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &v) == 0);
	return v.iov_len;
}

static void set(pid_t pid, size_t size, const char *what)
{
	struct iovec v = {image, size};
	long r = trace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &v);
	printf("%s: %s\n", what, r ? errname(errno) : "ok");
}

int main(void)
{
	pid_t pid = traced(keeps);
	let_go(PTRACE_CONT, pid, 0);
	size_t size = get(pid);
	uint64_t *header = (uint64_t *)(image + 512);
	struct ymm want[16];
	fill(want, 3);
	int low = 0, high = 0;
	for (int i = 0; i < 16; i++) {
		low += !memcmp(image + 160 + 16 * i, want[i].low, 16);
		high += !memcmp(image + high_at() + 16 * i, want[i].high, 16);
	}
	printf("read %d %d, header %lu, enabled %lu, large %d\n", low, high, (long)header[0] & 6, *(long *)(image + 464) & 7, size >= 832);
	struct user_fpregs_struct f;
	CHECK(trace(PTRACE_GETFPREGS, pid, 0, &f) == 0);
	printf("agrees with FXSAVE's: %d\n", memcmp(&f.xmm_space, image + 160, 256) == 0);

	// A part of the set.
	struct iovec v = {image, 64};
	SHOW(trace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &v));
	v.iov_len = 63;
	SHOW(trace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &v));
	size = get(pid);
	set(pid, 512, "short");
	header[0] |= 1ul << 62;
	set(pid, size, "unknown component");
	get(pid);
	header[1] = 1;
	set(pid, size, "compacted");
	get(pid);
	header[5] = 1;
	set(pid, size, "reserved");
	get(pid);
	((uint32_t *)image)[6] |= 1u << 20;
	set(pid, size, "MXCSR");

	get(pid);
	*(uint64_t *)(image + high_at() + 16 * 9) = 0x9999;
	*(uint64_t *)(image + 160 + 16 * 9 + 8) = 0x99;
	set(pid, size, "write");
	get(pid);
	printf("written %lx\n", *(long *)(image + high_at() + 16 * 9));
	// FXSAVE's registers leave the upper halves alone.
	CHECK(trace(PTRACE_GETFPREGS, pid, 0, &f) == 0);
	f.xmm_space[2 * 4] = 0x222;
	f.xmm_space[2 * 4 + 1] = 0;
	SHOW(trace(PTRACE_SETFPREGS, pid, 0, &f));
	f.mxcsr |= 1u << 16;
	SHOW(trace(PTRACE_SETFPREGS, pid, 0, &f));
	v = (struct iovec){&f, 256};
	SHOW(trace(PTRACE_SETREGSET, pid, NT_PRFPREG, &v));
	let_go(PTRACE_CONT, pid, 0);

	// Without the component the registers have their initial state.
	get(pid);
	header[0] &= ~4ul;
	set(pid, size, "no AVX");
	let_go(PTRACE_CONT, pid, 0);
	return 0;
}
