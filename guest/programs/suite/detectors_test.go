package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// limit is the longest time that a run of the buggy form may take.
func (p Program) limit() time.Duration {
	if slices.Contains(p.Outcomes, Hang) || slices.Contains(p.Outcomes, Deadlock) {
		return hangLimit
	}
	return timeLimit
}

// A detector is a tool that reports races.
type detector struct {
	name string
	// variant is how programs must be compiled for it.
	variant Variant
	// command returns the command that runs a program with reports in a file.
	command func(log string) []string
	env     func(log string) []string
	// access matches the line before the stack of an access that takes part in
	// a race, or of a lock acquisition that breaks the order.
	access *regexp.Regexp
	// frame matches a line of a stack, with file and line.
	frame *regexp.Regexp
	// report matches any report.
	report *regexp.Regexp
	// again asks for another run after one that reported too little.
	again bool
}

var detectors = []detector{
	{
		name:    "helgrind",
		variant: Variant{Debug: true},
		command: func(log string) []string {
			return []string{"valgrind", "--tool=helgrind", "--fair-sched=yes", "--free-is-write=yes", "--log-file=" + log}
		},
		access: regexp.MustCompile(`Possible data race during|This conflicts with a previous|` +
			`Observed \(incorrect\) order is|followed by a later acquisition|Required order was established|` +
			`associated lock is not held`),
		frame:  regexp.MustCompile(`==\d+== +(?:at|by) 0x[0-9A-F]+: .*\((?:[^ ]*/)?([a-z0-9-]+\.[ch]):(\d+)\)`),
		report: regexp.MustCompile(`ERROR SUMMARY: [1-9]`),
	},
	{
		name:    "drd",
		variant: Variant{Debug: true},
		command: func(log string) []string {
			return []string{"valgrind", "--tool=drd", "--fair-sched=yes", "--free-is-write=yes", "--log-file=" + log}
		},
		access: regexp.MustCompile(`Conflicting (?:load|store) by|Probably a race condition`),
		frame:  regexp.MustCompile(`==\d+== +(?:at|by) 0x[0-9A-F]+: .*\((?:[^ ]*/)?([a-z0-9-]+\.[ch]):(\d+)\)`),
		report: regexp.MustCompile(`ERROR SUMMARY: [1-9]`),
	},
	{
		name:    "tsan",
		variant: Variant{Sanitize: true},
		// The sanitizer's shadow memory does not bear random addresses.
		command: func(string) []string { return []string{"setarch", "x86_64", "-R"} },
		env: func(log string) []string {
			return []string{"TSAN_OPTIONS=log_path=" + log + " history_size=7 suppress_equal_addresses=0 second_deadlock_stack=1"}
		},
		access: regexp.MustCompile(`(?i)^ +(?:previous )?(?:atomic )?(?:read|write) of size|acquired here while holding|previously acquired by the same thread here`),
		frame:  regexp.MustCompile(`^ +#\d+ .* (?:[^ ]*/)?([a-z0-9-]+\.[ch]):(\d+)`),
		report: regexp.MustCompile(`WARNING: ThreadSanitizer`),
	},
}

// watch runs a build under the detector and returns the result and the detector's
// log.
func (d detector) watch(t *testing.T, limit time.Duration, bin string, args []string) (result, string) {
	t.Helper()
	key := fmt.Sprintf("%s %s %q", d.name, bin, args)
	if !d.again {
		if w, ok := watches.Load(key); ok {
			return w.(watched).result, w.(watched).log
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	// The C library frees the stacks of ended threads when it has many of them,
	// in an arbitrary thread, under locks of its own that valgrind does not see.
	// So it may keep all of them.
	env := []string{"GLIBC_TUNABLES=glibc.pthread.stack_cache_size=4000000000"}
	if d.env != nil {
		env = append(env, d.env(log)...)
	}
	command := append(append(d.command(log), bin), args...)
	r := run(t, limit, env, command...)
	files, err := filepath.Glob(log + "*")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range files {
		part, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(part)
	}
	watches.Store(key, watched{r, text.String()})
	return r, text.String()
}

// watches are the runs under detectors so far: several tests use the same ones.
var watches sync.Map

type watched struct {
	result result
	log    string
}

// anyFrame matches a line of a stack of any detector, with a place or without.
var anyFrame = regexp.MustCompile(`(?:==\d+== +(?:at|by) 0x|^ +#\d+ )`)

// lines finds the lines of the program that a log names as taking part in a
// race: of each access, the innermost that lies in the suite.
func (d detector) lines(p Program, log string) []string {
	var found []string
	wanted, inStack := false, false
	for line := range strings.Lines(log) {
		m := d.frame.FindStringSubmatch(line)
		isFrame := m != nil || anyFrame.MatchString(line)
		switch {
		case d.access.MatchString(line):
			wanted, inStack = true, false
		case !isFrame && inStack:
			wanted, inStack = false, false
		case isFrame:
			inStack = true
			if wanted && m != nil && m[1] == p.Name+".c" {
				found = append(found, m[1]+":"+m[2])
				wanted = false
			}
		}
	}
	slices.SortFunc(found, byLine)
	return slices.Compact(found)
}

func byLine(a, b string) int {
	_, lineA, _ := strings.Cut(a, ":")
	_, lineB, _ := strings.Cut(b, ":")
	x, _ := strconv.Atoi(lineA)
	y, _ := strconv.Atoi(lineB)
	return x - y
}

// TestFixedFormsAreClean runs the fixed forms under the detectors in turn.
func TestFixedFormsAreClean(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		oneOfThree(t, p)
		some := testsize.Sample(detectors, testsize.Pick(1, 1, 3), turn(p))
		if p.Kind == Memory {
			some = detectors
		}
		for _, d := range some {
			if p.Kind == Memory && d.name != "tsan" {
				continue // the others know nothing of C11's atomic accesses
			}
			v := d.variant
			v.Form = Fixed
			r, log := d.watch(t, timeLimit, build(t, p, v), p.CommandLine(p.Arguments.Test, 4))
			if r.status != 0 || r.timedOut {
				t.Errorf("%s: %v\n%s", d.name, r, log)
			}
			if d.report.MatchString(log) || d.report.MatchString(r.stderr) {
				t.Errorf("%s reports:\n%s%s", d.name, log, r.stderr)
			}
		}
	})
}

// TestBuggyFormsAreReported runs the buggy forms under all detectors, until
// together they have named every line of program.yaml. None may name another but Race.Also.
func TestBuggyFormsAreReported(t *testing.T) {
	testsize.SkipQuick(t)
	eachBug(t, func(t *testing.T, p Program) {
		oneOfThree(t, p)
		var named, also, found []string
		for _, r := range p.Races {
			named, also = append(named, r.Lines...), append(also, r.Also...)
		}
		slices.SortFunc(named, byLine)
		named = slices.Compact(named)
		for try := range 4 {
			arguments := p.Arguments.Test
			if try > 0 {
				arguments = p.Trigger()
			}
			for _, d := range detectors {
				v := d.variant
				v.Form, v.Delays, d.again = Buggy, try%2 == 1, try > 1
				_, log := d.watch(t, p.limit(), build(t, p, v), p.CommandLine(arguments, 4))
				lines := d.lines(p, log)
				t.Logf("%s: %v", d.name, lines)
				for _, line := range lines {
					if !slices.Contains(named, line) && !slices.Contains(also, line) {
						t.Errorf("%s names %s, program.yaml does not:\n%s", d.name, line, log)
					}
				}
				found = append(found, lines...)
			}
			if missing := without(named, found); len(missing) == 0 || t.Failed() {
				return
			}
		}
		t.Errorf("no detector names %v", without(named, found))
	})
}

func without(all, known []string) []string {
	var rest []string
	for _, line := range all {
		if !slices.Contains(known, line) {
			rest = append(rest, line)
		}
	}
	return rest
}

// TestDetectorLines checks how logs are read, on excerpts of real ones.
func TestDetectorLines(t *testing.T) {
	p := Program{Name: "some-bug"}
	for i, log := range []string{
		`==12== Possible data race during read of size 8 at 0x10C058 by thread #1
==12== Locks held: none
==12==    at 0x484A: memcpy (vg_replace_strmem.c:1)
==12==    by 0x1093: use (some-bug.c:8)
==12==    by 0x1094: main (some-bug.c:90)
==12== 
==12== This conflicts with a previous write of size 8 by thread #2
==12== Locks held: none
==12==    at 0x1095: set (some-bug.c:12)
==12==  Address 0x10c058 is 0 bytes inside data symbol "x"
==12== Thread #2 was created
==12==    at 0x1096: main (some-bug.c:77)
`,
		`==12== Conflicting store by thread 1 at 0x0010c058 size 8
==12==    at 0x1095: set (some-bug.c:12)
==12== Other segment start (thread 2)
==12==    at 0x1095: other (some-bug.c:99)
==12== Conflicting load by thread 1 at 0x0010c058 size 8
==12==    at 0x1095: use (some-bug.c:8)
`,
		`WARNING: ThreadSanitizer: data race (pid=12)
  Write of size 8 at 0x5555 by main thread:
    #0 set some-bug/some-bug.c:12 (some-bug+0x1) (BuildId: 01)
    #1 main some-bug/some-bug.c:90 (some-bug+0x2)

  Previous read of size 8 at 0x5555 by thread T1:
    #0 free <null> (libtsan.so.2+0x1)
    #1 use some-bug/some-bug.c:8 (some-bug+0x3)

  Thread T1 created at:
    #0 main some-bug/some-bug.c:77 (some-bug+0x4)
`,
	} {
		got := fmt.Sprint(detectors[i].lines(p, log))
		if got != "[some-bug.c:8 some-bug.c:12]" {
			t.Errorf("%s: %s", detectors[i].name, got)
		}
	}
}
