package explore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/guest/programs/bugs"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
)

// TestMissesNothing: where a search finds a failure of one of the small programs with bugs, exploration does not
// verify the program, and it verifies no buggy form with an argument with which that can fail.
func TestMissesNothing(t *testing.T) {
	list, err := bugs.All()
	if err != nil {
		t.Fatal(err)
	}
	verified, whole := 0, true
	for i, p := range list {
		if testsize.Runs(1, 2, 3) < 3 && i%12 != 7 {
			continue
		}
		ran := false
		t.Run(p.Name, func(t *testing.T) {
			ran = true
			for _, buggy := range []bool{false, true} {
				program, err := p.Build(buggy, "-static")
				if err != nil {
					t.Fatal(err)
				}
				for n := 1; n <= testsize.Runs(1, 1, 2); n++ {
					for _, model := range memmodel.Models()[:testsize.Runs(1, 1, 3)] {
						if isVerified(t, program, buggy, n, model) {
							verified++
						}
					}
				}
			}
		})
		whole = whole && ran
	}
	if verified == 0 && whole {
		t.Error("no program was verified")
	}
}

// isVerified explores a program, and reports whether it is verified; then no search may find a failure.
func isVerified(t *testing.T, program string, buggy bool, n int, model memmodel.Model) bool {
	t.Helper()
	name := fmt.Sprintf("%d, buggy %v, %v", n, buggy, model)
	o := explore.Options{Model: model, Executions: testsize.Runs(1500, 1500, 6000), Workers: 2}
	r, err := exploreRun(t, o, program, fmt.Sprint(n))
	if err != nil {
		if !strings.Contains(err.Error(), "no second thread") {
			t.Errorf("%s: %v", name, err)
		}
		return false
	}
	t.Logf("%s: executions %d, all %v, failure %v", name, r.Executions, r.Complete, r.Found)
	if r.Found && !buggy {
		t.Errorf("%s: fails with %v", name, r.Failure)
	}
	if !r.Complete || r.Found {
		return false
	}
	if found := search(t, program, n, model); found != "" {
		t.Errorf("%s: verified, but a search finds %s", name, found)
	}
	return true
}

// search looks for a failure by a campaign, and returns it, or "".
func search(t *testing.T, program string, n int, model memmodel.Model) string {
	t.Helper()
	c := machine.DefaultConfig()
	c.Args = []string{program, fmt.Sprint(n)}
	r, err := find.Find(context.Background(), c, nil, find.Options{
		Schedules: testsize.Runs(100, 200, 5000), Models: []memmodel.Model{model}, Workers: 2, Trace: filepath.Join(t.TempDir(), "find.trace"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) == 0 {
		return ""
	}
	return fmt.Sprint(r.Failures[0].Failure)
}

const timed = `
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
static sem_t s;
static void *poster(void *a) { sem_post(&s); return a; }
int main(void) {
  pthread_t t;
  struct timespec until = {1 << 30, 0};
  sem_init(&s, 0, 0);
  pthread_create(&t, 0, poster, 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  puts(sem_timedwait(&s, &until) ? "timeout" : "posted");
  pthread_join(t, 0);
}`

// TestTimeout: a wait with a time limit ends by the limit in some executions, even if another thread ends it in
// those before.
func TestTimeout(t *testing.T) {
	r := exploreProgram(t, gcctest.C(t, timed, "-pthread"), explore.Options{Executions: 5000})
	texts := map[string]bool{}
	for _, o := range r.Outputs {
		texts[o.Text] = true
	}
	if !r.Complete || len(texts) != 2 || !texts["timeout\n"] || !texts["posted\n"] {
		t.Errorf("%+v", *r)
	}
}

// resultOf is what does not depend on interruptions.
func resultOf(r *explore.Report) string {
	return fmt.Sprint(r.Complete, r.Executions, r.Redundant, r.Outlasted, r.Outputs, r.OtherOutputs)
}

// TestKilled: an exploration that is killed again and again, at any time, has the result of one that is not.
func TestKilled(t *testing.T) {
	const variable = "HEDDLE_TEST_EXPLORED"
	if program := os.Getenv(variable); program != "" {
		explore.SetStateInterval(time.Millisecond)
		r := exploreProgram(t, program, explore.Options{Model: memmodel.TSO, State: "state", Workers: 2})
		if err := os.WriteFile("result", []byte(resultOf(r)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	program := freestanding(t, programText(classics["IRIW"]))
	want := resultOf(exploreProgram(t, program, explore.Options{Model: memmodel.TSO}))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(23, 2))
	killed := 0
	for run := 0; ; run++ {
		ctx, cancel := context.WithCancel(t.Context())
		c := exec.CommandContext(ctx, self, "-test.run=^TestKilled$")
		c.Dir, c.Env = dir, append(os.Environ(), variable+"="+program)
		if run < testsize.Runs(3, 6, 60) { // later ones end in any case
			time.AfterFunc(time.Duration(50+r.IntN(400))*time.Millisecond, cancel)
		}
		out, err := c.CombinedOutput()
		cancel()
		if err == nil {
			break
		}
		if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.Exited() {
			t.Fatalf("%v: %s", err, out)
		}
		killed++
	}
	got, err := os.ReadFile(filepath.Join(dir, "result"))
	if err != nil || string(got) != want {
		t.Errorf("killed %d times: %s, %v\nwant: %s", killed, got, err, want)
	}
}
