package frost_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/sched"
)

// racyOutput has a thread that outputs a value which another one stores, in the way that its argument names, and leaves
// nothing of it in memory.
const racyOutput = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static pthread_barrier_t before, after;
static volatile int v;
static int to, pair[2];
static const char *how;
static void *set(void *arg) { pthread_barrier_wait(&before); v = 1; pthread_barrier_wait(&after); return arg; }
static void *output(void *arg) {
  char volatile b[2];
  pthread_barrier_wait(&before);
  b[0] = b[1] = '0' + v;
  struct iovec buffer = {(void *)b, 1};
  struct msghdr message = {.msg_iov = &buffer, .msg_iovlen = 1};
  if (!strcmp(how, "writev")) writev(to, &buffer, 1);
  else if (!strcmp(how, "pwritev")) pwritev(to, &buffer, 1, 0);
  else if (!strcmp(how, "sendmsg")) sendmsg(pair[0], &message, 0);
  else { volatile off_t at = b[0] == '1'; sendfile(to, pair[1], (off_t *)&at, 10); at = 0; }
  b[0] = b[1] = 0;
  pthread_barrier_wait(&after);
  return arg;
}
int main(int argc, char **argv) {
  pthread_t t[2];
  how = argv[1];
  to = memfd_create("to", 0);
  if (!strcmp(how, "sendfile")) { pair[1] = memfd_create("from", 0); if (write(pair[1], "0123456789abcdef", 16) != 16) return 1; }
  else if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) return 1;
  pthread_barrier_init(&before, 0, 2);
  pthread_barrier_init(&after, 0, 2);
  pthread_create(&t[0], 0, set, 0);
  pthread_create(&t[1], 0, output, 0);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  puts("done");
  return 0;
}`

// TestOutputOfEachKind: replicas that differ in their output alone have a race, whichever system call makes it.
func TestOutputOfEachKind(t *testing.T) {
	program := gcctest.C(t, racyOutput, "-pthread", "-O1")
	for _, how := range []string{"writev", "pwritev", "sendmsg", "sendfile"} {
		found := false
		for seed := uint64(1); seed <= 2 && !found; seed++ {
			x := try(t, options(), sched.Options{}, seed, program, how)
			found = x.Verdict != frost.Clean
		}
		if !found {
			t.Errorf("%s: no replica has another output", how)
		}
	}
}
