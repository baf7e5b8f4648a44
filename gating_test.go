package heddle_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/sched"
)

// controlled is a program with mutexes, conditions, barriers, a once routine,
// semaphores, system calls that wait and threads that come and go, in which
// everything depends on everything; it prints a sum that no order changes.
const controlled = `
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t s;
static int turn, sum, made, pipes[2];
static void routine(void) {
	pthread_mutex_lock(&m);
	made++;
	pthread_mutex_unlock(&m);
	usleep(10);
}
static void *work(void *arg) {
	int me = (int)(long)arg;
	pthread_once(&once, routine);
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&m);
		while (turn % 4 != me) pthread_cond_wait(&c, &m);
		turn++;
		sum += turn;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		sem_post(&s);
		pthread_barrier_wait(&b);
		if (me == 0) write(pipes[1], "x", 1);
		if (me == 1) { char ch; read(pipes[0], &ch, 1); }
		if (pthread_mutex_trylock(&m) == 0) {
			sum++, sum--;
			pthread_mutex_unlock(&m);
		}
	}
	return 0;
}
int main(void) {
	pthread_t t[4];
	pipe(pipes);
	sem_init(&s, 0, 0);
	pthread_barrier_init(&b, 0, 4);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 20; i++) sem_wait(&s);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%d %d\n", sum, made);
	return 0;
}`

// TestFirstComeFirstServed: the program runs to its end with its operations one
// at a time, the same way each time, and its recording can be repeated.
func TestFirstComeFirstServed(t *testing.T) {
	bin := compile(t, controlled)
	for _, cores := range []int{1, 4} {
		t.Run(fmt.Sprint(cores), func(t *testing.T) {
			c, out := config(t, bin)
			c.Cores, c.Seed = cores, 5
			c.Control = sched.Control{Policy: sched.FCFS}
			first := run(t, c)
			if first.Outcome != "exit" || out.String() != "210 1\n" {
				t.Fatalf("%s: %s%s", first.Outcome, first.Message, out)
			}
			file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c.Record = &heddle.Record{To: file, Sync: &heddle.SyncRecord{}, Inputs: true}
			if again := run(t, c); again.Digest != first.Digest {
				t.Errorf("recorded: %s, not %s", again.Digest, first.Digest)
			}
			r, err := heddle.OpenReplay(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			c, err = r.Config()
			if err != nil {
				t.Fatal(err)
			}
			c.Stdout, c.Stderr = io.Discard, io.Discard
			if again := run(t, c); again.Digest != first.Digest || again.Message != "" {
				t.Errorf("replayed: %s (%s), not %s", again.Digest, again.Message, first.Digest)
			}
		})
	}
}

// A machine that is controlled goes on from a snapshot as it did the first time.
func TestSnapshotOfControlledRun(t *testing.T) {
	c, _ := config(t, compile(t, controlled))
	c.Control = sched.Control{Policy: sched.FCFS}
	m, err := heddle.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 100 {
		m.Step()
	}
	if m.Done() {
		t.Fatal("the run is over")
	}
	s := m.Snapshot()
	defer s.Release()
	first, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := first.Digest
	m.Restore(s)
	if again, err := m.Run(t.Context()); err != nil || again.Digest != want || again.Outcome != "exit" {
		t.Errorf("%v: %+v", err, again)
	}
}
