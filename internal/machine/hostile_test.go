package machine_test

import (
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// faulting makes argv[1] accesses that fault, of five kinds, in two threads. The handler has each of them done
// with.
const faulting = `
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static __thread volatile long seen;
static __thread unsigned long sum;
static char *page;
int zero;
static void caught(int sig, siginfo_t *info, void *context) {
	ucontext_t *c = context;
	seen++;
	sum = sum * 31 + (unsigned long)sig + (unsigned long)info->si_code + (unsigned long)info->si_addr % 4096;
	c->uc_mcontext.gregs[REG_RIP] = c->uc_mcontext.gregs[REG_RBX];
}
#define FAULT(code) __asm__ volatile("lea 1f(%%rip), %%rbx\n\t" code "\n1:" : : "a"(page), "c"(i) : "rbx", "rdx", "memory")
static void *work(void *arg) {
	for (long i = 0, n = (long)arg; i < n; i++) {
		switch (i % 5) {
			case 0: FAULT("mov %%rcx, 8(%%rax)"); break;
			case 1: FAULT("movzbl 100, %%edx"); break;
			case 2: FAULT("ud2"); break;
			case 3: FAULT("xor %%edx, %%edx; idivl zero(%%rip)"); break;
			case 4: FAULT("mov $0x123456789abcdef0, %%rdx; mov (%%rdx), %%rdx"); break;
		}
	}
	return (void *)(sum + (unsigned long)seen);
}
int main(int argc, char **argv) {
	struct sigaction a = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int signals[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS};
	pthread_t t[2];
	void *result[2];
	for (int i = 0; i < 4; i++) sigaction(signals[i], &a, 0);
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(atol(argv[1]) / 2));
	for (int i = 0; i < 2; i++) pthread_join(t[i], &result[i]);
	printf("%lx %lx\n", (unsigned long)result[0], (unsigned long)result[1]);
	return 0;
}`

// TestManyFaults runs a program that faults up to a million times, quietly and while the Go runtime profiles at 5 kHz and
// collects garbage: the output is the native one, and the digests are equal.
func TestManyFaults(t *testing.T) {
	bin := machinetest.Compile(t, faulting, "-O1", "-pthread")
	n := strconv.Itoa(testsize.Pick(2_000, 100_000, 1_000_000))
	c, out := machinetest.Config(t, bin, n)
	quiet := machinetest.Run(t, c)
	want := out.String()
	native, err := exec.Command(bin, n).Output()
	if err != nil || string(native) != want {
		t.Errorf("%q, natively %q, %v", want, native, err)
	}

	runtime.SetCPUProfileRate(5000)
	if err := pprof.StartCPUProfile(io.Discard); err != nil { // which complains that the rate is set
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	c, out = machinetest.Config(t, bin, n)
	busy := machinetest.Run(t, c)
	if out.String() != want || busy.Digest != quiet.Digest {
		t.Errorf("%q with digest %v, quietly %q with %v", out.String(), busy.Digest, want, quiet.Digest)
	}
}
