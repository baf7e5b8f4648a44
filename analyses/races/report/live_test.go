package report_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// liveProgram has races of all kinds, on words and parts of words, with blocks, processes and calls.
const liveProgram = `
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[64];
static double numbers[32];
static volatile int shared;
static int *block;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static void add(int i) { shared += i; numbers[i % 32] += i; }
static void *work(void *arg) {
	for (int i = 0; i < 500; i++) {
		add(i);
		memset(bytes + i % 50, i, 1 + i % 13);
		if (i % 50 == 0) { pthread_mutex_lock(&mu); free(malloc(i)); block[i % 8]++; pthread_mutex_unlock(&mu); }
		if (i % 99 == 0) block[1] = i;
	}
	return arg;
}
int main(void) {
	pthread_t t[3];
	block = calloc(8, sizeof *block);
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
	pid_t child = fork();
	if (child == 0) { add(1); _exit(0); }
	waitpid(child, 0, 0);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	if (write(1, bytes, sizeof bytes) != sizeof bytes) return 1;
	free(block);
	return 0;
}`

// TestLiveReports: the report of a run that is analysed while it takes place is that of its trace, on each
// engine, in both orders.
func TestLiveReports(t *testing.T) {
	bin := gcctest.C(t, liveProgram)
	programs := [][]string{{bin}, {"/bin/sh", "-c", "echo a | cat"}}
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		for _, args := range programs {
			for _, order := range []races.Order{races.HappensBefore, races.ScheduleRelative} {
				o := report.Options{Order: order, Benign: report.Mark, Library: true}
				live := report.NewLive("run", o)
				run := func(r machine.Record) {
					c := machine.DefaultConfig()
					c.Engine, c.Args, c.Dir, c.Cores, c.Record, c.Stdout = engine, args, filepath.Dir(bin), 4, &r, io.Discard
					if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
						t.Fatalf("%+v, %v", r, err)
					}
				}
				what := everything()
				what.Listener = live
				run(what)
				got, err := live.Report()
				if err != nil {
					t.Fatal(err)
				}
				live.Close()
				var stored bytes.Buffer
				what = everything()
				what.To = &stored
				run(what)
				in, err := trace.NewReader("run", bytes.NewReader(stored.Bytes()), int64(stored.Len()))
				if err != nil {
					t.Fatal(err)
				}
				want, err := report.Make("run", in, o)
				if err != nil {
					t.Fatal(err)
				}
				if args[0] == bin && want.Static == 0 {
					t.Error("no races")
				}
				if !bytes.Equal(got.JSON(), want.JSON()) {
					t.Errorf("engine %v, %v, order %d: the report is\n%s\nof the trace it is\n%s", engine, args, order, got.JSON(), want.JSON())
				}
			}
		}
	}
}
