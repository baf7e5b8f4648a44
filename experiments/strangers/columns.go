package strangers

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/internal/gcc"
)

// Column is an analysis that is run over all programs.
type Column struct {
	// Name is for filters and files, Title for tables.
	Name, Title string
	// About says what works means.
	About string
	// measure returns the figures of a program for which the analysis works, or a failure.
	measure func(s *session, ctx context.Context) (string, error)
}

// Columns are the analyses, in the order of the table.
func Columns() []Column {
	return []Column{
		{"run", "run", "`heddle run` on both inputs has the output and status of the host. Processor time of both.", (*session).measureRun},
		{"replay", "record, replay", "`heddle replay` of `heddle record` has the same output. Size of the trace, and processor time of both in plain runs.", (*session).measureReplay},
		{"races", "races", "`heddle races` reports on the whole run. Number of races, and processor time in plain runs.", (*session).measureRaces},
		{"schedule", "schedule, 20 runs", "A hybrid schedule is made, of a run with another seed if not of the first, and 20 runs under it, with other seeds, numbers of cores and delays, have the same output and the same final state. Number of operations and constraints, and virtual time in plain runs.", (*session).measureSchedule},
		{"memoize", "memoize, 5 inputs", "A schedule with preconditions is made; the same input is a hit, and so is at least one of five inputs of the same size from other seeds (weaker: the same input alone); all outputs are those of the host. Number of hits, and the processor time for making it.", (*session).measureMemoize},
		{"frost", "Frost", "`heddle frost run` ends with the output of the host. Verdict, number of epochs, and processor time in plain runs.", (*session).measureFrost},
		{"minimize", "minimize", "`heddle find` finds the injected failure, and `heddle minimize` a shorter schedule that fails in the same way. Context switches before and after, and the processor time of the latter.", (*session).measureMinimize},
		{"reproduce", "reproduce", "From branches and context switches of the failing run `heddle reproduce` computes a schedule under which the injected failure happens. Processor time.", (*session).measureReproduce},
	}
}

// measureRun runs the program on both inputs.
func (s *session) measureRun(ctx context.Context) (string, error) {
	_, sum, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	large, err := s.makeInputs(ctx, s.program.Large, 1)
	if err != nil {
		return "", err
	}
	p, err := s.heddleRun(ctx, run{command: []string{"run", "-q"}, in: large})
	if err == nil {
		err = s.expectNative(ctx, "the large input", p, large)
	}
	return fmt.Sprintf("%d threads; %s, %s (%s natively)", sum.Threads, seconds(s.plain), seconds(p.spent), seconds(large.native)), err
}

// measureReplay records a run and repeats it.
func (s *session) measureReplay(ctx context.Context) (string, error) {
	in, _, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	trace := filepath.Join(s.dir, "run.trace")
	recorded, first, err := s.summarized(ctx, run{command: []string{"record", "-q", "-o", trace}, in: in})
	if err == nil {
		err = s.expectNative(ctx, "record", recorded, in)
	}
	if err != nil {
		return "", err
	}
	replayed, second, err := s.summarized(ctx, run{command: []string{"replay", trace}})
	if err == nil {
		err = s.expectNative(ctx, "replay", replayed, in)
	}
	if err != nil {
		return "", err
	}
	if first.Digest != second.Digest {
		return "", defect("the replay has another digest")
	}
	info, err := os.Stat(trace)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.0f KB; %s, %s", float64(info.Size())/1024, s.ratio(recorded.spent), s.ratio(replayed.spent)), nil
}

// measureRaces looks for data races.
func (s *session) measureRaces(ctx context.Context) (string, error) {
	in, _, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	report := filepath.Join(s.dir, "races.json")
	p, err := s.heddleRun(ctx, run{command: []string{"races", "-q", "--json", "-o", report}, in: in})
	if err == nil {
		err = s.expectNative(ctx, "races", p, in)
	}
	if err != nil {
		return "", err
	}
	var r struct{ Static, Dynamic int }
	if err := readJSON(report, &r); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d races; %s", r.Static, s.ratio(p.spent)), nil
}

// scheduleSeeds is how many seeds are tried for a run of which a schedule can be made.
const scheduleSeeds = 2

// makeSchedule makes a hybrid schedule of a run with the first seed for which that is possible.
func (s *session) makeSchedule(ctx context.Context, in *inputs, schedule string) error {
	trace := filepath.Join(s.dir, "run.trace")
	for seed := 1; seed <= scheduleSeeds; seed++ {
		p, err := s.heddleRun(ctx, run{command: []string{"schedule", "record", "-q", "-o", trace}, flags: []string{"--seed", fmt.Sprint(seed)}, in: in})
		if err == nil {
			err = s.expectNative(ctx, "schedule record", p, in)
		}
		if err != nil {
			return err
		}
		_, err = s.heddleRun(ctx, run{command: []string{"schedule", "compute", "-o", schedule, trace}})
		if f, ok := err.(failure); !ok || f.State != Refused || seed == scheduleSeeds {
			return err
		}
	}
	return nil
}

// measureSchedule makes a hybrid schedule and enforces it.
func (s *session) measureSchedule(ctx context.Context) (string, error) {
	in, plain, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	schedule := filepath.Join(s.dir, "run.schedule")
	if err := s.makeSchedule(ctx, in, schedule); err != nil {
		return "", err
	}
	var first *summary
	var cycles uint64
	for i := range s.corpus.Enforced {
		flags := []string{
			"--enforce", schedule, "--seed", fmt.Sprint(100 + i), "--cores", fmt.Sprint(1 + i%8), "--inject-delays", fmt.Sprint(0.05 * float64(i%3)),
		}
		p, sum, err := s.summarized(ctx, run{command: []string{"run", "-q"}, flags: flags, in: in})
		what := fmt.Sprintf("enforced run %d of %d", i+1, s.corpus.Enforced)
		if f, ok := err.(failure); ok && f.State == Refused {
			return "", defect("%s: %s", what, f.Text)
		}
		if err == nil {
			err = s.expectNative(ctx, what, p, in)
		}
		if err != nil {
			return "", err
		}
		if first == nil {
			first = sum
		}
		if sum.Schedule == nil || !sum.Schedule.Followed {
			return "", defect("%s has left the schedule", what)
		}
		if sum.StateDigest != first.StateDigest {
			return "", defect("%s has another final state than the first", what)
		}
		cycles += sum.Cycles
	}
	times := float64(cycles) / float64(s.corpus.Enforced) / float64(max(plain.Cycles, 1))
	return fmt.Sprintf("%d operations, %d constraints; %.1fx", first.Schedule.Operations, first.Schedule.Constraints, times), nil
}

// measureMemoize makes a schedule with preconditions and runs the program on other inputs.
func (s *session) measureMemoize(ctx context.Context) (string, error) {
	in, _, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(s.dir, "cache")
	made, sum, err := s.summarized(ctx, run{command: []string{"run", "-q"}, flags: []string{"--cache", cache, "--memoize", "online"}, in: in})
	if err == nil {
		err = s.expectNative(ctx, "memoized run", made, in)
	}
	if err != nil {
		return "", err
	}
	notice := sentence(made.stderr)
	if sum.CacheEntry == "" {
		return "", failure{Refused, notice}
	}
	follow := func(in *inputs, what string) (hit bool, err error) {
		p, sum, err := s.summarized(ctx, run{command: []string{"run", "-q"}, flags: []string{"--cache", cache}, in: in})
		if f, ok := err.(failure); ok && f.State == Refused {
			return false, defect("%s: %s", what, f.Text)
		}
		if err != nil {
			return false, err
		}
		return sum.Cache == "hit", s.expectNative(ctx, what, p, in)
	}
	hit, err := follow(in, "the memoized input")
	if err != nil {
		return "", err
	}
	if !hit {
		return "", defect("the memoized input is no hit: %s", sentence(made.stderr))
	}
	hits := 0
	for i := range s.corpus.Others {
		other, err := s.makeInputs(ctx, s.program.Small, 2+i)
		if err != nil {
			return "", err
		}
		hit, err := follow(other, fmt.Sprintf("input %d of %d", i+1, s.corpus.Others))
		if err != nil {
			return "", err
		}
		if hit {
			hits++
		}
	}
	if hits == 0 {
		text := fmt.Sprintf("the schedule admits its own input and none of %d others", s.corpus.Others)
		if notice != noSentence {
			text += ": " + notice
		}
		return "", failure{Weaker, text}
	}
	return fmt.Sprintf("%d of %d hits; %s", hits, s.corpus.Others, seconds(made.spent)), nil
}

// measureFrost runs the program under Frost.
func (s *session) measureFrost(ctx context.Context) (string, error) {
	in, _, err := s.plainRun(ctx)
	if err != nil {
		return "", err
	}
	report := filepath.Join(s.dir, "frost.json")
	p, err := s.heddleRun(ctx, run{command: []string{"frost", "run", "-q", "--report", report}, in: in})
	if err != nil {
		return "", err
	}
	var r struct {
		Verdict   string
		Committed int
		Races     int
	}
	if err := readJSON(report, &r); err != nil {
		return "", defect("no report: status %d: %s", p.status, sentence(p.stderr))
	}
	if r.Verdict == "survived" && p.status == 121 {
		p.status = in.status // Frost's own status says that there was a race
	}
	if err := s.expectNative(ctx, "frost run", p, in); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s, %d epochs", r.Verdict, r.Committed)
	if r.Races > 0 {
		text += fmt.Sprintf(", %d with a race", r.Races)
	}
	return text + "; " + s.ratio(p.spent), nil
}

//go:embed preload/injected.c
var injectedSource []byte

// injected is the folder with the library that injects a failure.
func injected() (string, error) {
	file, err := gcc.Build{
		Cache: "strangers", Name: "injected.so", Label: "injected",
		Args:    []string{"-g", "-O1", "-shared", "-fPIC", "injected.c"},
		Sources: []gcc.Source{{Path: "injected.c", Text: injectedSource}},
	}.Make()
	return filepath.Dir(file), err
}

// schedulesTried is how many schedules `heddle find` tries for the injected failure.
const schedulesTried = 500

// findInjected searches for a run of the small input in which the injected failure happens.
func (s *session) findInjected(ctx context.Context) (trace string, err error) {
	in, err := s.makeInputs(ctx, s.program.Small, 1)
	if err != nil {
		return "", err
	}
	folder, err := injected()
	if err != nil {
		return "", err
	}
	trace = filepath.Join(s.dir, "failing.trace")
	p, err := s.heddleRun(ctx, run{command: []string{"find", "-q", "-o", trace}, in: in, flags: []string{
		"--schedules", fmt.Sprint(schedulesTried), "--workers", "1", "--model", "sc", "--any-output",
		"--mount", folder + ":" + guestInjected, "--env", "LD_PRELOAD=" + guestInjected + "/injected.so",
	}})
	if err != nil {
		return "", err
	}
	if p.status != 1 {
		return "", failure{Refused, fmt.Sprintf("heddle find finds no failure in %d schedules", schedulesTried)}
	}
	if !strings.Contains(string(p.stdout), "failure: assertion") {
		return "", defect("heddle find: %s", firstLines(p.stdout))
	}
	return trace, nil
}

// nothingLeftOut is in the report of `heddle minimize` on a run that it could not shorten.
var nothingLeftOut = regexp.MustCompile(`(?m)^.*nothing is left out$`)

var switches = regexp.MustCompile(`(?m)^context switches +(\d+) +(\d+)`)

// measureMinimize shortens the schedule of an injected failure.
func (s *session) measureMinimize(ctx context.Context) (string, error) {
	trace, err := s.findInjected(ctx)
	if err != nil {
		return "", err
	}
	short := filepath.Join(s.dir, "short.trace")
	p, err := s.heddleRun(ctx, run{command: []string{"minimize", "-q", "--runs", "200", "-o", short, trace}})
	if err != nil {
		return "", err
	}
	m := switches.FindSubmatch(p.stdout)
	if p.status != 0 || m == nil {
		return "", defect("minimize: status %d: %s", p.status, firstLines(append(p.stdout, p.stderr...)))
	}
	if text := nothingLeftOut.Find(p.stdout); text != nil {
		return "", failure{Refused, string(text)}
	}
	replayed, err := s.heddleRun(ctx, run{command: []string{"replay", short}})
	if err != nil {
		return "", err
	}
	if replayed.status != 128+6 {
		return "", defect("the shortest run ends with status %d", replayed.status)
	}
	return fmt.Sprintf("%s to %s switches; %s", m[1], m[2], seconds(p.spent)), nil
}

// busyHost is how many times a process's processor time may be the time that it lasts.
const busyHost = 10

// measureReproduce computes a schedule for an injected failure from branches.
func (s *session) measureReproduce(ctx context.Context) (string, error) {
	trace, err := s.findInjected(ctx)
	if err != nil {
		return "", err
	}
	branches, schedule := filepath.Join(s.dir, "branches.trace"), filepath.Join(s.dir, "failing.schedule")
	if p, err := s.heddleRun(ctx, run{command: []string{"replay", "--pt", "-o", branches, trace}}); err != nil || p.status != 128+6 {
		return "", orDefect(err, "the replay with branches ends with status %d", p.status)
	}
	// The cell has a limit of processor time, and this one is the clock's: on a busy host the former is reached.
	timeout := time.Duration(busyHost*s.corpus.Limits.Seconds) * time.Second
	p, err := s.heddleRun(ctx, run{command: []string{"reproduce", "--timeout", timeout.String(), "-o", schedule, branches}})
	if err != nil {
		return "", err
	}
	if p.status != 0 && p.status != 128+6 {
		return "", defect("reproduce: status %d: %s", p.status, sentence(p.stderr))
	}
	again, err := s.heddleRun(ctx, run{command: []string{"replay", "--schedule", schedule, branches}})
	if err != nil {
		return "", err
	}
	if again.status != 128+6 {
		return "", defect("the run under the schedule ends with status %d", again.status)
	}
	return seconds(p.spent), nil
}

// orDefect is the error, or a defect in place of nil.
func orDefect(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return defect(format, args...)
}
