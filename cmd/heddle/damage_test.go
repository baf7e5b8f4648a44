package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// failing has a race, takes input, and ends with a failed assertion.
const failing = `
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static volatile int n;
static void *add(void *arg) {
	for (int i = 0; i < 20; i++) n++;
	return arg;
}
int main(void) {
	pthread_t t;
	int c = getchar();
	pthread_create(&t, 0, add, 0);
	add(0);
	pthread_join(t, 0);
	printf("%c %d\n", c, n);
	fflush(stdout);
	assert(n == 0);
}`

// readers are the commands that read a trace. OUT is a file for output, which
// follows the command's own output; T is the trace.
var readers = map[string][]string{
	"info":       {"trace", "info", "T"},
	"check":      {"trace", "check", "T"},
	"dump":       {"trace", "dump", "T"},
	"events":     {"trace", "dump", "--events", "T"},
	"some":       {"trace", "dump", "--stream", "syscalls", "T"},
	"perfetto":   {"trace", "export", "T"},
	"file":       {"trace", "export", "-o", "OUT", "T"},
	"csv":        {"trace", "export", "--format", "csv", "--stream", "sync", "T"},
	"flow":       {"trace", "flow", "--thread", "1001", "T"},
	"count":      {"trace", "flow", "--core", "0", "--count", "T"},
	"races":      {"races", "T"},
	"racesfile":  {"races", "--json", "-o", "OUT", "T"},
	"replay":     {"replay", "T"},
	"record":     {"replay", "-q", "-o", "OUT", "T"},
	"schedule":   {"schedule", "compute", "-o", "OUT", "T"},
	"sync":       {"schedule", "compute", "--sync-only", "-o", "OUT", "T"},
	"minimize":   {"minimize", "-q", "--runs", "2", "-o", "OUT", "T"},
	"reproduce":  {"reproduce", "-o", "OUT", "T"},
	"checkpoint": {"reproduce", "--checkpoint", "last", "-o", "OUT", "T"},
	"profile":    {"reproduce", "--profile", "T", "-o", "OUT", "WHOLE"},
}

// rarely are those that take long: they get a few of the damaged traces, unless all are
// tried.
var rarely = []string{"minimize", "reproduce", "checkpoint", "profile"}

// reading carries out one of readers and returns all that came of it.
func reading(t *testing.T, command []string, path, whole string) (status int, printed, said string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args := slices.Clone(command)
	for i, arg := range args {
		switch arg {
		case "T":
			args[i] = path
		case "WHOLE":
			args[i] = whole
		case "OUT":
			args[i] = out
		}
	}
	var stdout, stderr bytes.Buffer
	status = Main(args, nil, &stdout, &stderr)
	text, err := os.ReadFile(out)
	if err == nil {
		stdout.Write(text)
	}
	return status, strings.ReplaceAll(stdout.String(), path, "T"), stderr.String()
}

// TestDamagedTraces: whatever byte of a trace is damaged, a command either acts as
// with the whole one, because it does not need the damaged part, or ends with
// status 125 and says where the damage is. The commands take the damaged traces in turn.
func TestDamagedTraces(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	input, whole := filepath.Join(dir, "input"), filepath.Join(dir, "whole.trace")
	if err := os.WriteFile(input, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var out, problems bytes.Buffer
	args := []string{"schedule", "record", "-o", whole, "--", gcctest.C(t, failing, "-g")}
	if status := Main(args, struct{ *bytes.Reader }{bytes.NewReader([]byte("x"))}, &out, &problems); status != 134 {
		t.Fatalf("status %d: %s", status, problems.String())
	}
	full := filepath.Join(dir, "full.trace")
	if status, _, said := reading(t, []string{"replay", "-q", "-o", full, "--all", "--memory=stored", "T"}, whole, ""); status != 134 {
		t.Fatalf("status %d: %s", status, said)
	}
	content, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		status  int
		printed string
	}
	undamaged := map[string]result{}
	for name, command := range readers {
		status, printed, said := reading(t, command, full, full)
		if status == 125 && name != "reproduce" && name != "checkpoint" && name != "profile" {
			t.Fatalf("%s of the whole trace: %s", name, said)
		}
		undamaged[name] = result{status, printed}
	}
	names := slices.Sorted(maps.Keys(readers))
	for turn, d := range damages(t, full, content) {
		path := filepath.Join(dir, "damaged.trace")
		if err := os.WriteFile(path, d.content, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range testsize.Sample(names, testsize.Pick(4, 8, len(names)), turn) {
			if slices.Contains(rarely, name) && !d.often && !testsize.Long() {
				continue
			}
			command := readers[name]
			status, printed, said := reading(t, command, path, full)
			same := undamaged[name] == result{status, printed}
			named := strings.Contains(said, "damaged at byte") || strings.Contains(said, "is cut at byte") || strings.Contains(said, "is not a trace") || strings.Contains(said, "format")
			if name == "check" && same || !same && (status != 125 || !named) {
				t.Errorf("%s, heddle %s: status %d (of the whole trace %d), it prints %d bytes (%d), and says %q",
					d.name, strings.Join(command, " "), status, undamaged[name].status, len(printed), len(undamaged[name].printed), said)
			}
		}
	}
}

type damaged struct {
	name    string
	content []byte
	often   bool
}

// damages are copies of a trace with a byte changed in its header, in each kind of chunk
// and in its index, and copies that are cut.
func damages(t *testing.T, path string, content []byte) (list []damaged) {
	t.Helper()
	flip := func(name string, at int64, often bool) {
		b := bytes.Clone(content)
		b[at] ^= 0x5a
		list = append(list, damaged{name, b, often})
	}
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	flip("header", 3, true)
	flip("version", 9, false)
	for _, key := range r.Streams() {
		chunks := r.Chunks(key)
		c := chunks[len(chunks)/2]
		often := slices.Contains([]trace.Kind{trace.Decisions, trace.PT, trace.SummaryK}, key.Kind)
		flip(string(key.Kind)+" head", c.Offset+10, false)
		flip(string(key.Kind)+" payload", c.Offset+c.Size()-12, often)
	}
	end := int64(len(content))
	flip("index", end-40, false)
	flip("trailer", end-3, true)
	for _, n := range []int64{0, 7, 30, end / 3, end / 2, end - 1} {
		list = append(list, damaged{"cut", content[:n], n == end/2})
	}
	return list
}
