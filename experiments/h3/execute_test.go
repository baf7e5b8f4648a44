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

// TestSearchByExecution has programs of which no symbolic trace gives the schedule: their threads share
// a container whose memory is freed, and a socket that they do not wait for; also at the ends of long paths.
func TestSearchByExecution(t *testing.T) {
	t.Run("container", func(t *testing.T) {
		bin := gcctest.File(t, filepath.Join("testdata", "shared-vector.cpp"), "-lstdc++")
		reproduceSeeds(t, &bug{class: machine.FailureCrash, sched: turnsOf30, slow: true}, bin)
	})
	t.Run("socket", func(t *testing.T) {
		reproduceSeeds(t, &bug{class: machine.FailureAssertion, sched: turnsOf30, slow: true}, gcctest.C(t, receiveWhatIsThere))
	})
	t.Run("long paths", func(t *testing.T) {
		b := &bug{class: machine.FailureAssertion, sched: sched.Options{Policy: sched.Random, Quantum: 300}, slow: true}
		reproduceSeeds(t, b, gcctest.C(t, receiveWhatIsThere, "-DROUNDS=150000"))
	})
}
