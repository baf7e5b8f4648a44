package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/stream"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// phases uses each kind of synchronization, and some of it wrongly.
const phases = `
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static volatile int racy, guarded, flagged;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t bar;
static int turn;
static void *child(void *p) { flagged += *(volatile int *)p; memset(p, 1, 32); return p; }
static void *work(void *arg) {
	long me = (long)arg;
	for (int i = 0; i < 60; i++) {
		if (i % 7 == me) racy++;
		pthread_mutex_lock(&mu);
		guarded++;
		while (turn % 3 != me) pthread_cond_wait(&cv, &mu);
		turn++;
		pthread_cond_broadcast(&cv);
		pthread_mutex_unlock(&mu);
		if (i % 5 == 0) pthread_barrier_wait(&bar);
		char *block = calloc(1, 40);
		if (i % 20 == 3) {
			pthread_t t;
			pthread_create(&t, 0, child, block);
			pthread_join(t, 0);
		}
		racy += block[0];
		free(block);
	}
	return arg;
}
int main(void) {
	pthread_t t[3];
	pthread_barrier_init(&bar, 0, 3);
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	return 0;
}`

// found is what a trace's races are.
type found struct {
	list  map[string]uint64 // races, with the place of the first access
	seqs  map[string]uint64 // the event before the second one
	begin uint64            // of the stretch: its event
	last  uint64            // the last synchronization operation or system call
	after uint64            // the place of the first operation, or of a race's second access, after an event
}

func racesIn(t *testing.T, file []byte, after uint64) found {
	t.Helper()
	r, err := trace.NewReader("trace", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	f := found{list: map[string]uint64{}, seqs: map[string]uint64{}}
	for e, err := range trace.Get[event.Registers](r, trace.Key{Kind: trace.Registers}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		f.begin = e.Seq
	}
	for e, err := range trace.Get[event.Syscall](r, trace.Key{Kind: trace.Syscalls}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		f.last = max(f.last, e.Seq)
	}
	var x *stream.Reader
	x, err = stream.New(r, stream.Options{Order: races.HappensBefore, Repeats: true, Race: func(c *races.Race) {
		side := func(i *races.Instance) string { return fmt.Sprintf("%#x of %s", i.PC, x.ThreadAt(i.Thread).Name) }
		name := fmt.Sprintf("%v of %#x after event %d: %s, %s", c.Kind, c.Addr, x.LastEvent(), side(&c.First), side(&c.Second))
		f.list[name], f.seqs[name] = c.First.At, x.LastEvent()
		if f.after == 0 && x.LastEvent() > after {
			f.after = c.Second.At
		}
	}, Sync: func(_ int, at uint64, e *event.Sync) {
		f.last = max(f.last, e.Seq)
		if f.after == 0 && e.Seq > after {
			f.after = at
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.ReadAll(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStretchHasTheRacesOfTheRun: the races of a recorded stretch are those of the whole run whose accesses are both
// in it.
func TestStretchHasTheRacesOfTheRun(t *testing.T) {
	bin := gcctest.C(t, phases)
	for seed := uint64(1); seed <= 4; seed++ {
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.Seed, c.Stdout = []string{bin}, filepath.Dir(bin), seed, io.Discard
		c.Sched = sched.Options{Policy: sched.Random, Quantum: 300}
		compareStretches(t, c, recorder.Stretch{}, 0.5, 0.9)
		compareStretches(t, c, recorder.Stretch{}, 0.85, 0.95)
	}
}

// servers are scripts that start a server of Debian's, and the port at which 50 requests or more come; 0: no server.
var servers = map[string]struct {
	script string
	port   uint16
}{
	"memcached": {`memcached -u nobody -l 127.0.0.1 -t 4 & s=$!
		until memcping --servers=127.0.0.1; do sleep 0.1; done
		memcslap --servers=127.0.0.1 --concurrency=4 --execute-number=30; kill $s; wait $s`, 11211},
	"redis-server": {`redis-server --dir /tmp --save '' --io-threads 2 & s=$!
		until redis-cli ping; do sleep 0.1; done
		redis-benchmark -q -n 50 -c 5 -t set,get; redis-cli shutdown; wait $s`, 6379},
	"apache2": {`mkdir /tmp/web; echo hello > /tmp/web/index.html
		for l in 'ServerRoot /tmp' 'ServerName localhost' 'Listen 127.0.0.1:8080' 'User www-data' 'Group www-data' 'PidFile /tmp/pid' \
			'ErrorLog /tmp/log' 'LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so' \
			'LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so' 'DocumentRoot /tmp/web'; do echo "$l"; done > /tmp/conf
		apache2 -f /tmp/conf -DFOREGROUND & s=$!
		until curl -s http://127.0.0.1:8080/index.html; do sleep 0.1; done
		ab -q -n 100 -c 4 http://127.0.0.1:8080/index.html; kill -WINCH $s; wait $s`, 8080},
	"pbzip2": {"pbzip2 -c -p4 -b1 < $(command -v pbzip2) > /dev/null", 0},
}

// TestStretchesOfServers does the same for Debian's servers, from request to request, and pbzip2.
func TestStretchesOfServers(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip(err)
			}
			if name != "pbzip2" && !testsize.Long() {
				t.Skip("HEDDLE_LONG is not set")
			}
			c := machine.DefaultConfig()
			c.Args, c.Dir, c.Stdout, c.Stderr = []string{"sh", "-c", server.script}, os.TempDir(), io.Discard, io.Discard
			c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
			s := recorder.Stretch{}
			if server.port > 0 {
				s.From = recorder.Place{Kind: recorder.AtRequest, Port: server.port, N: 20}
				s.To = recorder.Place{Kind: recorder.AtRequest, Port: server.port, N: 50}
			}
			compareStretches(t, c, s, 0.1, 0.4)
		})
	}
}

// compareStretches compares a stretch, or the part of the run between two fractions of its instructions, with the run.
func compareStretches(t *testing.T, c machine.Config, s recorder.Stretch, from, to float64) {
	t.Helper()
	record := func(s recorder.Stretch) ([]byte, *machine.Result) {
		var file bytes.Buffer
		what := everything()
		what.To, what.Stretch = &file, s
		c.Record = &what
		r, err := machine.Run(context.Background(), c)
		if err != nil || r.Stretch != nil && r.Stretch.Why != "" {
			t.Fatalf("%+v, %v", r, err)
		}
		return file.Bytes(), r
	}
	file, run := record(recorder.Stretch{})
	if s.IsWhole() {
		n := float64(run.Instructions)
		s.From = recorder.Place{Kind: recorder.AtInstruction, N: uint64(from * n)}
		s.To = recorder.Place{Kind: recorder.AtInstruction, N: uint64(to * n)}
	}
	small, again := record(s)
	if again.Digest != run.Digest {
		t.Fatalf("%v: the run is another one", s)
	}
	part := racesIn(t, small, 0)
	whole := racesIn(t, file, part.begin)
	for name := range part.list {
		if _, ok := whole.list[name]; !ok {
			t.Errorf("%v: a race of the stretch alone: %s", s, name)
		}
	}
	inside := 0
	for name, first := range whole.list {
		if seq := whole.seqs[name]; first <= whole.after || seq >= part.last {
			continue
		}
		inside++
		if _, ok := part.list[name]; !ok {
			t.Errorf("%v: a race that the stretch lacks: %s", s, name)
		}
	}
	t.Logf("%v: %d races, %d of the run are inside; the run has %d", s, len(part.list), inside, len(whole.list))
}
