package h3

import (
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// turns of 30 instructions make these programs fail in some seeds of a few.
var turnsOf30 = sched.Options{Policy: sched.Random, Quantum: 30}

// receiveWhatIsThere receives without waiting, and takes what has come so far for all. Both threads compute
// before, if ROUNDS is defined.
const receiveWhatIsThere = `
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#ifndef ROUNDS
#define ROUNDS 0
#endif
static int ends[2], received;
static void compute(void)
{
	for (volatile int i = 0; i < ROUNDS; i++)
		;
}
static void *receive(void *arg)
{
	char b[8];
	compute();
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 5; i++) {
		ssize_t n = recv(ends[0], b, sizeof b, 0);
		if (n > 0)
			received += n;
		else if (errno != EAGAIN)
			abort();
	}
	return arg;
}
static void *transmit(void *arg)
{
	compute();
	for (int i = 0; i < 4; i++)
		send(ends[1], "abc", 3, 0);
	return arg;
}
int main(void)
{
	pthread_t threads[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	pthread_create(&threads[0], 0, receive, 0);
	pthread_create(&threads[1], 0, transmit, 0);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	if (received != 12)
		abort();
}
`

// twoLocksOfFutexes takes two locks in both orders; the locks are made of futexes, as those of run-time libraries that do
// not use the C library's are (Drepper, "Futexes are tricky", 2011, the second mutex). With CONDITION a thread waits
// for a flag that the other sets without the lock: the wake-up can be lost. Threads ask for their stacks for signals and
// their cores, and make a key, as Rust's do.
const twoLocksOfFutexes = `
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static atomic_int first, second, flag, sequence;
static pthread_barrier_t start;
static void compute(void)
{
	for (volatile int i = 0; i < 20; i++)
		;
}
static void lock(atomic_int *l)
{
	int c = 0;
	if (atomic_compare_exchange_strong(l, &c, 1))
		return;
	if (c != 2)
		c = atomic_exchange(l, 2);
	while (c) {
		syscall(SYS_futex, l, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
		c = atomic_exchange(l, 2);
	}
}
static void unlock(atomic_int *l)
{
	if (atomic_exchange(l, 0) == 2)
		syscall(SYS_futex, l, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void *other(void *arg)
{
	stack_t stack;
	cpu_set_t cores;
	pthread_key_t key;
	if (sigaltstack(0, &stack) || stack.ss_flags != SS_DISABLE || sched_getaffinity(0, sizeof cores, &cores) || !CPU_COUNT(&cores))
		abort();
	if (pthread_key_create(&key, 0) || pthread_setspecific(key, arg) || pthread_getspecific(key) != arg)
		abort();
	pthread_barrier_wait(&start);
#ifdef CONDITION
	compute();
	atomic_store(&flag, 1);
	atomic_fetch_add(&sequence, 1);
	syscall(SYS_futex, &sequence, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
#else
	lock(&second);
	compute();
	lock(&first);
	unlock(&first);
	unlock(&second);
#endif
	return arg;
}
int main(void)
{
	pthread_t t;
	int x = 0;
	pthread_barrier_init(&start, 0, 2);
	pthread_create(&t, 0, other, &x);
	pthread_barrier_wait(&start);
#ifdef CONDITION
	lock(&first);
	while (!flag) {
		compute();
		int now = sequence;
		unlock(&first);
		syscall(SYS_futex, &sequence, FUTEX_WAIT_PRIVATE, now, 0, 0, 0);
		lock(&first);
	}
	unlock(&first);
#else
	lock(&first);
	compute();
	lock(&second);
	unlock(&second);
	unlock(&first);
#endif
	pthread_join(t, 0);
}
`

// TestSearchByExecution has programs of which no symbolic trace gives the schedule: their threads share
// a container whose memory is freed, a socket that they do not wait for, and locks made of futexes; also at the ends of long
// paths.
func TestSearchByExecution(t *testing.T) {
	t.Run("container", func(t *testing.T) {
		bin := gcctest.File(t, filepath.Join("testdata", "shared-vector.cpp"), "-lstdc++")
		reproduceSeeds(t, &bug{class: machine.FailureCrash, sched: turnsOf30, slow: true}, bin)
	})
	t.Run("socket", func(t *testing.T) {
		reproduceSeeds(t, &bug{class: machine.FailureAssertion, sched: turnsOf30, slow: true}, gcctest.C(t, receiveWhatIsThere))
	})
	for _, model := range []string{"sc", "tso"} {
		b := &bug{class: machine.FailureDeadlock, sched: turnsOf30, model: model, slow: true}
		t.Run("futexes "+model, func(t *testing.T) { reproduceSeeds(t, b, gcctest.C(t, twoLocksOfFutexes)) })
		t.Run("lost wake-up "+model, func(t *testing.T) { reproduceSeeds(t, b, gcctest.C(t, twoLocksOfFutexes, "-DCONDITION")) })
	}
	t.Run("long paths", func(t *testing.T) {
		b := &bug{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 300}, slow: true}
		reproduceSeeds(t, b, gcctest.C(t, receiveWhatIsThere, "-DROUNDS=150000"))
	})
}
