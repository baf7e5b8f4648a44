package syncops_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// takesBefore takes locks before its second thread exists: m ten times, and n, which it releases afterwards.
const takesBefore = `
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t m, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;
static sem_t s;
static void *work(void *p) {
  pthread_mutex_lock(&n); pthread_mutex_unlock(&n);
  for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
  return p;
}
int main(void) {
  pthread_t t;
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&m, &a); sem_init(&s, 0, 1);
  for (int i = 0; i < 10; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
  pthread_rwlock_rdlock(&r); pthread_rwlock_unlock(&r);
  static int count; __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
  sem_wait(&s);
  pthread_mutex_lock(&n);
  pthread_create(&t, 0, work, 0);
  pthread_mutex_unlock(&n);
  pthread_join(t, 0);
  pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
  return 0;
}`

// TestOperationsOfThreads: with WithOperationsOfThreads locks are recognised from the creation of the second thread on, other
// operations always, and both halves of an operation or none.
func TestOperationsOfThreads(t *testing.T) {
	c := config(gcctest.C(t, takesBefore, "-pthread"))
	of := func(options ...machine.Option) (syncs []event.Sync) {
		f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := c
		c.Record = &machine.Record{To: f, Sync: &machine.SyncRecord{Atomics: true}}
		if x, err := machine.Run(t.Context(), c, options...); err != nil || x.ExitCode != 0 {
			t.Fatalf("%+v, %v", x, err)
		}
		r := &recording{threads: map[arch.ThreadID]string{}, objects: map[event.ObjectID]event.Object{}}
		r.read(t, f.Name())
		return r.syncs
	}
	all, some := of(), of(machine.WithOperationsOfThreads())
	created := slices.IndexFunc(all, func(e event.Sync) bool { return e.Op == event.OpThreadStart })
	var want []event.Sync
	for i, e := range all {
		switch e.Op {
		case event.OpMutexLock, event.OpMutexUnlock, event.OpRWReadLock, event.OpRWUnlock, event.OpAtomic:
			if i < created {
				continue
			}
		}
		want = append(want, e)
	}
	key := func(e event.Sync) [3]uint64 { return [3]uint64{uint64(e.Op), uint64(e.Phase), uint64(e.Addr)} }
	byKey := func(list []event.Sync) (keys [][3]uint64) {
		for _, e := range list {
			keys = append(keys, key(e))
		}
		return keys
	}
	if got, want := byKey(some), byKey(want); !slices.Equal(got, want) || len(want) == len(all) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}
