package sweep

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// tableText is the table of an experiment whose runs are stored.
func tableText(t *testing.T, x *Experiment) string {
	t.Helper()
	var out strings.Builder
	table, err := x.Table(Options{}, Selection{})
	if err == nil {
		err = table.Write(&out, "csv")
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestFilter: a program whose output has the time is as natively after a filter; another filter is another experiment.
func TestFilter(t *testing.T) {
	for filter, want := range map[string]string{
		"":                                       "no (0 of 1)",
		"filter: [{delete: '^[0-9]+$'}]":         "yes",
		"filter: [{replace: '[0-9]+', with: N}]": "yes",
		"filter: [{command: [grep, result]}]":    "yes",
		"filter: [{delete: result}]":             "no (0 of 1)",
	} {
		x := mustLoad(t, "programs: [{name: p, command: [sh, -c, 'date +%s%N; echo result']}]\n"+filter+"\n")
		summary, _ := sweepAll(t, x, false)
		if text := tableText(t, x); summary.Err() != nil || !strings.HasSuffix(strings.TrimSpace(text), want) {
			t.Errorf("%q: %+v\n%s", filter, summary, text)
		}
	}
	x := mustLoad(t, "programs: [{name: p, command: [echo, x]}]\nfilter: [{command: ['false']}]\n")
	if summary, _ := sweepAll(t, x, false); summary.Failed != 1 || !strings.Contains(summary.FirstFailure, `["false"]`) {
		t.Errorf("a filter that fails: %+v", summary)
	}
}

// TestRegion: the speed-up of the parallel part is about the number of threads, and that of the whole run is not: three
// quarters of it have one thread.
func TestRegion(t *testing.T) {
	bin := gcctest.C(t, `
#include <pthread.h>
#include <stdlib.h>
static long share;
static void work(long n) { for (volatile long i = 0; i < n; i++); }
static void *thread(void *p) { work(share); return p; }
int main(int c, char **v) {
  pthread_t t[8];
  int n = atoi(v[1]);
  work(600000);
  share = 400000 / n;
  for (int i = 0; i < n; i++) pthread_create(&t[i], 0, thread, 0);
  for (int i = 0; i < n; i++) pthread_join(t[i], 0);
  work(600000);
}`)
	const file = "programs: [{name: p, command: [PROGRAM, '{threads}']}]\ngrid: {threads: [1, 4]}\nmachine: {mounts: ['DIR:DIR'] REGION}\n"
	of := func(region string) string {
		x := mustLoad(t, strings.NewReplacer("PROGRAM", bin, "DIR", filepath.Dir(bin), "REGION", region).Replace(file))
		summary, _ := sweepAll(t, x, false)
		if err := summary.Err(); err != nil {
			t.Fatal(err, summary.FirstFailure)
		}
		lines := strings.Split(strings.TrimSpace(tableText(t, x)), "\n")
		return strings.Split(lines[2], ",")[5]
	}
	if whole := of(""); whole < "1.1" || whole > "1.4" {
		t.Errorf("the speed-up of the whole run is %s; by Amdahl's law 1.23", whole)
	}
	if parallel := of(", region: auto"); parallel < "3.5" || parallel > "4.0" {
		t.Errorf("the speed-up of the parallel part is %s, and there are four threads", parallel)
	}
}
