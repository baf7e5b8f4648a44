package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// compile compiles a program of testdata.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	return gcctest.File(t, filepath.Join("testdata", source), append([]string{"-g"}, flags...)...)
}

// record runs a program on two cores and returns the trace, and what was printed.
func record(t *testing.T, what machine.Record, args ...string) (path, out string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	what.To = f
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores, c.Record, c.Stdout = args, "/", 2, &what, &printed
	r, err := machine.Run(context.Background(), c)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name(), printed.String()
}

// everything is what heddle record --races records.
func everything() machine.Record {
	return machine.Record{Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
}

func analyse(t *testing.T, path string, o report.Options) *report.Report {
	t.Helper()
	in, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := report.Make("trace", in, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines are the lines of the program's source in races.
func lines(r *report.Report) (list []string) {
	for _, race := range r.Races {
		for _, a := range []report.Access{race.First, race.Second} {
			i := slices.IndexFunc(a.Stack, func(f report.Frame) bool { return path.Base(f.File) == "cases.c" })
			if i >= 0 {
				list = append(list, fmt.Sprint(a.Stack[i].Line))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var mark = regexp.MustCompile(`// ([a-z]+) (hb|schedule|both)$`)

// marked are the lines that the source says take part in races of a case, by mode.
func marked(t *testing.T) map[string]map[races.Order][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.c")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[races.Order][]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if m := regexp.MustCompile(`CASE\((\w+)\)[,;]?`).FindAllStringSubmatch(line, -1); m != nil {
			for _, c := range m {
				if all[c[1]] == nil {
					all[c[1]] = map[races.Order][]string{}
				}
			}
		}
		m := mark.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = map[races.Order][]string{}
		}
		at := fmt.Sprint(i + 1)
		if m[2] != "schedule" {
			all[m[1]][races.HappensBefore] = append(all[m[1]][races.HappensBefore], at)
		}
		if m[2] != "hb" {
			all[m[1]][races.ScheduleRelative] = append(all[m[1]][races.ScheduleRelative], at)
		}
	}
	delete(all, "name")
	for _, modes := range all {
		for _, list := range modes {
			slices.Sort(list)
		}
	}
	return all
}

// TestCases: the races of each case are those that its source says.
func TestCases(t *testing.T) {
	bin := compile(t, "cases.c")
	cases := marked(t)
	if len(cases) < 20 {
		t.Fatalf("cases %v", cases)
	}
	names := slices.Sorted(maps.Keys(cases))
	for _, name := range testsize.Sample(names, testsize.Pick(2, len(names), len(names)), 0) {
		path, _ := record(t, everything(), bin, name)
		for _, order := range []races.Order{races.HappensBefore, races.ScheduleRelative} {
			r := analyse(t, path, report.Options{Order: order, Benign: report.Mark})
			if got := lines(r); !slices.Equal(got, cases[name][order]) {
				var text strings.Builder
				_ = r.Text(&text)
				t.Errorf("%s, %s: lines %v, want %v\n%s", name, r.Mode, got, cases[name][order], text.String())
			}
		}
	}
}

// TestDescriptions: who, where and what, in both forms.
func TestDescriptions(t *testing.T) {
	bin := compile(t, "cases.c")
	path, _ := record(t, everything(), bin, "freed")
	r := analyse(t, path, report.Options{Order: races.HappensBefore, Benign: report.Mark})
	var again report.Report
	if err := json.Unmarshal(r.JSON(), &again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.JSON(), r.JSON()) {
		t.Error("the JSON form loses something")
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`race \d, once \(write-read\):\n  read of 1 byte in thread 2\n    #0 freed_2 testdata/cases.c:\d+ \(cases\+0x[0-9a-f]+\)\n    #1 run testdata/cases.c:\d+`,
		`  after free in thread 1\n    #0 freed_1 testdata/cases.c:\d+ `,
		`  address 0x[0-9a-f]+: byte 7 of a block of 3000 bytes, allocated by thread 0\n    #0 main testdata/cases.c:\d+ `,
		`  and freed by thread 1\n    #0 freed_1 `,
		`\nthread 2 is 1\.2, id 1002, made by thread 0\n(    #.*\n)*    #\d main testdata/cases.c:\d+ `,
		`\nthread 0 is 1, id 1000, the first of the run\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("the text has no %s:\n%s", want, text.String())
		}
	}
}

// TestBenign: a write that writes what was there already is kept, marked or left
// out.
func TestBenign(t *testing.T) {
	path, _ := record(t, everything(), compile(t, "cases.c"), "same")
	for _, c := range []struct {
		benign                  report.Benign
		dynamic, marked, pruned uint64
	}{{report.Keep, 1, 0, 0}, {report.Mark, 1, 1, 0}, {report.Prune, 0, 0, 1}} {
		r := analyse(t, path, report.Options{Order: races.HappensBefore, Benign: c.benign})
		if r.Dynamic != c.dynamic || r.Marked != c.marked || r.Pruned != c.pruned {
			t.Errorf("%s: %d races, %d marked, %d pruned", c.benign, r.Dynamic, r.Marked, r.Pruned)
		}
	}
}
