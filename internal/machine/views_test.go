package machine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched"
)

// isolating are the policies under which threads have views of memory.
var isolating = []string{sched.DThreads, sched.Consequence}

// viewsRacey has threads whose result depends on the order of nearly all their accesses to memory, none of
// which is synchronized (after Hill and Xu's racey), with locks and a barrier in between.
const viewsRacey = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { THREADS = 4, WORDS = 64 };
static unsigned words[WORDS];
static long sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned mix(unsigned i, unsigned j) { return (i + j * 103995407) % 103995391; }
static void *run(void *arg) {
	long id = (long)arg;
	unsigned n = words[id];
	for (int i = 0; i < 2000; i++) {
		n = words[n % WORDS] + id * 7 + i;
		words[n % WORDS] = mix(n, words[(n >> 3) % WORDS]);
		if (i % 400 == 0) {
			pthread_mutex_lock(&lock);
			sum += n;
			pthread_mutex_unlock(&lock);
		}
		if (i == 1000) pthread_barrier_wait(&barrier);
	}
	return (void *)(long)n;
}
int main(void) {
	pthread_t t[THREADS];
	unsigned s = 0;
	for (int i = 0; i < WORDS; i++) words[i] = mix(i, i + 1);
	pthread_barrier_init(&barrier, 0, THREADS);
	for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *r;
		pthread_join(t[i], &r);
		s = mix(s, (unsigned)(long)r);
	}
	for (int i = 0; i < WORDS; i++) s = mix(s, words[i]);
	printf("%08x %ld\n", s, sum);
	return 0;
}`

// TestViewsOrderRaces: with views, also a program that consists of races has one output, one final
// memory and one number of instructions, with every noise and delay; and but for the numbers of cores
// and the random numbers that the system has in memory, on every seed and number of cores. Without
// them it has many outputs.
func TestViewsOrderRaces(t *testing.T) {
	bin := machinetest.Compile(t, viewsRacey)
	states := func(policy string, vary bool) map[string]bool {
		found := map[string]bool{}
		for i, cores := range []int{4, 1, 2, 7, 4, 4} {
			most := float64(i%2) * 0.9
			c, out := machinetest.Config(t, bin)
			if vary {
				c.Cores, c.Seed = cores, uint64(i)
			}
			c.Sched = sched.Options{Policy: policy, Jitter: &most, DelayRate: 0.1 * float64(i), Quantum: 300 << i}
			r, err := machine.Run(context.Background(), c, machine.WithOneVisibleCore())
			if err != nil || r.Outcome != machine.OutcomeExit {
				t.Fatalf("%s on %d cores: %v %+v", policy, cores, err, r)
			}
			if vary {
				r.StateDigest = ""
			}
			found[fmt.Sprint(out, r.Instructions, r.StateDigest)] = true
		}
		return found
	}
	for _, policy := range isolating {
		for _, vary := range []bool{false, true} {
			if found := states(policy, vary); len(found) != 1 {
				t.Errorf("%s: %d states: %v", policy, len(found), found)
			}
		}
	}
	for _, policy := range []string{sched.Kendo, sched.Parrot} {
		if found := states(policy, true); len(found) < 2 {
			t.Errorf("%s orders races", policy)
		}
	}
}

// viewsLast has two threads that store to the two halves of a word, and to the same byte, in one
// phase; each reads back its own, and main sees both halves and the byte of the later commit.
const viewsLast = `
#include <pthread.h>
#include <stdio.h>
static volatile unsigned short half[2];
static volatile unsigned char byte = 9;
static void *run(void *arg) {
	long i = (long)arg;
	half[i] = 100 + i;
	byte = i;
	for (volatile int k = 0; k < 3000; k++);
	return (void *)(long)(half[1 - i] * 10 + byte);
}
int main(void) {
	pthread_t t[2];
	void *r[2];
	for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 2; i++) pthread_join(t[i], &r[i]);
	printf("%d %d %d %ld %ld\n", half[0], half[1], byte, (long)r[0], (long)r[1]);
	return 0;
}`

// TestViewsHideStores: under DThreads neither thread sees the other's stores, both of which are
// there at the end (Liu, Curtsinger, Berger: differences are committed byte by byte, in
// the order of the token, and the last writer wins).
func TestViewsHideStores(t *testing.T) {
	bin := machinetest.Compile(t, viewsLast)
	for seed := range uint64(3) {
		c, out := machinetest.Config(t, bin)
		c.Seed, c.Sched.Policy = seed, sched.DThreads
		machinetest.Run(t, c)
		if out.String() != "100 101 1 0 1\n" {
			t.Errorf("seed %d: %s", seed, out)
		}
	}
}

// viewsAdverse uses what is difficult for views: signals within computations, waits and calls, a
// handler for a fault, timeouts, fork, memory that processes share, threads that create threads, a
// spin lock of the program's own, and suspension until a signal.
const viewsAdverse = `
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t got, usr2;
static int ready, spun;
static long plain[8];
static atomic_flag flag;
static sigjmp_buf env;
static void count(int s) { if (s == SIGUSR2) usr2++; else got++; }
static void fault(int s) { siglongjmp(env, 1); }
static void *inner(void *arg) {
	plain[(long)arg]++;
	char *p = malloc(5000);
	memset(p, 1, 5000);
	plain[(long)arg] += p[4999];
	free(p);
	for (int i = 0; i < 50; i++) {
		while (atomic_flag_test_and_set(&flag)) __builtin_ia32_pause();
		spun++;
		atomic_flag_clear(&flag);
	}
	return 0;
}
static void *waiter(void *arg) {
	pthread_t t;
	pthread_mutex_lock(&lock);
	while (!ready) pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	pthread_create(&t, 0, inner, arg);
	pthread_join(t, 0);
	return 0;
}
static void *timed(void *arg) {
	struct timespec ts;
	int r = 0;
	clock_gettime(CLOCK_REALTIME, &ts);
	if ((ts.tv_nsec += 2000000) >= 1000000000) ts.tv_nsec -= 1000000000, ts.tv_sec++;
	pthread_mutex_lock(&lock);
	while (r != ETIMEDOUT) r = pthread_cond_timedwait(&never, &lock, &ts);
	pthread_mutex_unlock(&lock);
	return 0;
}
static void *sleeper(void *arg) {
	struct timespec d = {0, 1000000};
	while (!got) nanosleep(&d, 0);
	return 0;
}
static void *killer(void *arg) {
	kill(getpid(), SIGUSR2);
	return 0;
}
int main(void) {
	struct sigaction sa = {.sa_handler = count};
	sigset_t blocked, old;
	sigaction(SIGUSR1, &sa, 0);
	sigaction(SIGUSR2, &sa, 0);
	sa.sa_handler = fault;
	sigaction(SIGSEGV, &sa, 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, &old);
	pthread_t t[7];
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, waiter, (void *)i);
	pthread_create(&t[4], 0, timed, 0);
	pthread_create(&t[5], 0, sleeper, 0);
	usleep(1000);
	pthread_mutex_lock(&lock);
	ready = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	pthread_kill(t[5], SIGUSR1);
	pthread_create(&t[6], 0, killer, 0);
	while (!usr2) sigsuspend(&old);
	for (int i = 0; i < 7; i++) pthread_join(t[i], 0);
	int *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), fd[2], status;
	char c;
	if (pipe(fd)) return 1;
	plain[5] = 7;
	pid_t child = fork();
	if (!child) {
		pthread_t q;
		*shared = 42;
		plain[5] = 8;
		if (write(fd[1], "x", 1) != 1) _exit(1);
		pthread_create(&q, 0, inner, (void *)6);
		pthread_join(q, 0);
		_exit(plain[6] == 2 ? 3 : 4);
	}
	if (read(fd[0], &c, 1) != 1) return 1;
	waitpid(child, &status, 0);
	volatile int caught = 0;
	plain[7] = 5;
	if (!sigsetjmp(env, 1)) {
		plain[7] = 6;
		*(volatile int *)8 = 1;
	} else caught = plain[7];
	raise(SIGUSR1);
	long sum = 0;
	for (int i = 0; i < 8; i++) sum += plain[i];
	printf("%ld %d %d %d %d %d %d %c\n", sum, spun, *shared, WEXITSTATUS(status), caught, (int)got, (int)usr2, c);
	fflush(stdout);
	sa.sa_handler = SIG_DFL;
	sigaction(SIGABRT, &sa, 0);
	abort();
}`

// TestViewsRunAdversePrograms: what the program prints natively, and how it ends.
func TestViewsRunAdversePrograms(t *testing.T) {
	bin := machinetest.Compile(t, viewsAdverse)
	for _, policy := range append([]string{sched.Parrot}, isolating...) {
		for _, cores := range []int{1, 3} {
			c, out := machinetest.Config(t, bin)
			c.Cores, c.Sched.Policy = cores, policy
			r := machinetest.Run(t, c)
			if r.Outcome != machine.OutcomeSignal || r.Signal != 6 || out.String() != "21 200 42 3 6 2 1 x\n" {
				t.Errorf("%s on %d cores: %s %d %s%s", policy, cores, r.Outcome, r.Signal, r.Message, out)
			}
		}
	}
}

// viewsSpin waits for another thread in a loop without a synchronization operation, and the other one
// waits for it at a barrier.
const viewsSpin = `
#include <pthread.h>
#include <stdio.h>
static volatile int flag;
static pthread_barrier_t barrier;
static void *run(void *arg) {
	flag = 1;
	pthread_barrier_wait(&barrier);
	return 0;
}
int main(void) {
	pthread_t t;
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t, 0, run, 0);
	while (!flag);
	pthread_barrier_wait(&barrier);
	pthread_join(t, 0);
	puts("seen");
	return 0;
}`

// TestViewsEndSpinning: a loop that DThreads cannot leave ends the run with a sentence that names the
// thread, always at the same place; under Consequence views are bounded and the loop ends. A long
// computation is not an error.
func TestViewsEndSpinning(t *testing.T) {
	bin := machinetest.Compile(t, viewsSpin)
	instructions := map[uint64]bool{}
	for seed := range uint64(3) {
		c, _ := machinetest.Config(t, bin)
		c.Seed, c.Sched = seed, sched.Options{Policy: sched.DThreads, Fairness: 100_000}
		r := machinetest.Run(t, c)
		if r.Outcome != machine.OutcomeDeadlock || !strings.Contains(r.Message, "deadlock: thread 1 has run 100000 instructions without a synchronization operation while others wait") {
			t.Errorf("%s: %s", r.Outcome, r.Message)
		}
		c, out := machinetest.Config(t, bin)
		c.Seed, c.Sched = seed, sched.Options{Policy: sched.Consequence, Fairness: 100_000}
		if r := machinetest.Run(t, c); out.String() != "seen\n" {
			t.Errorf("%s: %s%s", r.Outcome, r.Message, out)
		} else {
			instructions[r.Instructions] = true
		}
	}
	if len(instructions) != 1 {
		t.Errorf("under consequence the loop has %d lengths", len(instructions))
	}
	long := machinetest.Compile(t, strings.NewReplacer("while (!flag)", "for (volatile int i = 0; i < 100000; i++)").Replace(strings.Replace(viewsSpin, "flag = 1;", "for (volatile int i = 0; i < 100000; i++);", 1)))
	c, out := machinetest.Config(t, long)
	c.Sched = sched.Options{Policy: sched.DThreads, Fairness: 1_000_000}
	if r := machinetest.Run(t, c); out.String() != "seen\n" {
		t.Errorf("a computation: %s: %s", r.Outcome, r.Message)
	}
}

// softBarriers has threads that each compute and then do an operation. With the hint, computations
// overlap.
const softBarriers = `
#include <pthread.h>
#include <stdio.h>
__attribute__((noipa)) void soba_init(long barrier, unsigned count, unsigned turns) {}
__attribute__((noipa)) void soba_wait(long barrier) {}
__attribute__((noipa)) void pcs_enter(void) {}
__attribute__((noipa)) void pcs_exit(void) {}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *run(void *arg) {
	if (SOFT) soba_wait(1);
	for (volatile int i = 0; i < 30000; i++);
	if (SECTION) pcs_enter();
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		sum += i;
		pthread_mutex_unlock(&lock);
		for (volatile int k = 0; k < (long)arg * 100; k++);
	}
	if (SECTION) pcs_exit();
	return 0;
}
int main(void) {
	pthread_t t[4];
	soba_init(1, COUNT, 0);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%ld\n", sum);
	return 0;
}`

// TestParrotHints: a soft barrier lets the computations of threads overlap, which are one after the
// other under plain round-robin, since a thread that computes has the turn; a barrier for more threads
// than there are opens all the same; and a section without turns is faster. None changes the result.
func TestParrotHints(t *testing.T) {
	time := func(soft, section, count int) uint64 {
		bin := machinetest.Compile(t, strings.NewReplacer("SOFT", fmt.Sprint(soft), "SECTION", fmt.Sprint(section), "COUNT", fmt.Sprint(count)).Replace(softBarriers))
		none, first := 0.0, uint64(0)
		for seed := range uint64(2) {
			c, out := machinetest.Config(t, bin)
			c.Cores, c.Seed, c.Sched = 5, seed, sched.Options{Policy: sched.Parrot, Jitter: &none, Quantum: 1000}
			r := machinetest.Run(t, c)
			if r.Outcome != machine.OutcomeExit || out.String() != "760\n" {
				t.Fatalf("%s: %s%s", r.Outcome, r.Message, out)
			}
			first = r.Cycles
		}
		return first
	}
	plain, soft, section, never := time(0, 0, 4), time(1, 0, 4), time(1, 1, 4), time(1, 0, 9)
	if soft*10 > plain*8 {
		t.Errorf("%d cycles with a soft barrier, %d without", soft, plain)
	}
	if section >= soft {
		t.Errorf("%d cycles with a section without turns, %d without one", section, soft)
	}
	if never > 2*plain {
		t.Errorf("%d cycles with a soft barrier for too many threads, %d without", never, plain)
	}
}

// TestViewsRefuse: combinations that views exclude.
func TestViewsRefuse(t *testing.T) {
	for _, policy := range isolating {
		c, _ := machinetest.Config(t, "/bin/true")
		c.Sched.Policy, c.Memory.Model = policy, "tso"
		if _, err := machine.New(c); err == nil || !strings.Contains(err.Error(), "has a memory model of its own") {
			t.Errorf("%s under tso: %v", policy, err)
		}
	}
}
