package sweep

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
)

const forShards = `
programs:
  - {name: wc, command: [wc, "-{flag}", text]}
  - {name: status, command: [sh, -c, "exit {threads}"]}
inputs: [{name: text, generate: text, size: 1K}]
grid: {seeds: 1-2, threads: [1, 2, 4], arguments: {flag: [c, l]}}
repetitions: 2
values: [{name: count, pattern: '^ *(\d+) text'}]
`

// TestShardsAreAPartition: whatever is stored, each run is in one shard, and each has its share.
func TestShardsAreAPartition(t *testing.T) {
	x := mustLoad(t, strings.Replace(forShards, "seeds: 1-2", "seeds: 1-40", 1))
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	total := int(x.Size())
	for _, of := range []int{1, 2, 3, 7, total, total + 5} {
		shardOf := map[int]int{}
		for number := 1; number <= of; number++ {
			chosen := plan.choose(Options{Shard: Shard{number, of}})
			if n := len(chosen); n != total/of && n != total/of+1 {
				t.Errorf("shard %d/%d has %d of %d runs", number, of, n, total)
			}
			for run := range chosen {
				if other, twice := shardOf[run]; twice {
					t.Errorf("run %d is in the shards %d and %d of %d", run, other, number, of)
				}
				shardOf[run] = number
			}
		}
		if len(shardOf) != total {
			t.Errorf("%d of %d runs are in one of %d shards", len(shardOf), total, of)
		}
	}
	// Each shard has runs of each program and number of threads.
	seen := map[string]bool{}
	for number := range plan.choose(Options{Shard: Shard{3, 4}}) {
		at := plan.Runs[(number-1)/2].Point
		seen[fmt.Sprint(at.Program, at.Threads)] = true
	}
	if len(seen) != 4 {
		t.Errorf("shard 3/4 has runs of %v", seen)
	}
}

// TestMergedShardsAreTheSweep: the table of merged shards is that of one sweep, also when some runs were in the
// experiment's store before, and merging again changes nothing.
func TestMergedShardsAreTheSweep(t *testing.T) {
	whole := mustLoad(t, forShards)
	if summary, _ := sweepAll(t, whole, false); summary.Failed > 0 {
		t.Fatal(summary)
	}
	want, err := whole.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	x := mustLoad(t, forShards)
	natives := 0
	if _, err := x.Sweep(t.Context(), Options{Runs: []Range{{3, 5}}}); err != nil {
		t.Fatal(err)
	}
	natives += countNatives(t, x.Store)
	stored := 3
	for _, number := range []int{2, 1, 3} {
		o := Options{Shard: Shard{number, 3}}
		for range 2 { // the second time does nothing
			summary, err := x.Sweep(t.Context(), o)
			if err != nil || summary.Err() != nil {
				t.Fatal(summary, err)
			}
			stored += summary.Ran
		}
		natives += countNatives(t, x.StorePath(o))
	}
	if stored != int(x.Size()) || natives != 5 {
		t.Errorf("%d runs were carried out, of %v, and %d native ones", stored, x.Size(), natives)
	}
	for i := range 2 {
		merged, err := x.Merge(Options{}, nil)
		if err != nil || len(merged.Conflicts) > 0 || merged.New != (1-i)*(stored-3) || merged.Equal != i*(stored-3) {
			t.Fatalf("merge %d: %+v, %v", i, merged, err)
		}
		if got, err := x.Table(Options{}, Selection{}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("merge %d: the table is\n%v, %v, want\n%v", i, got, err, want)
		}
	}
	if a, b := inStore(t, x, allResults), inStore(t, whole, allResults); !slices.Equal(a, b) {
		t.Errorf("the results are\n%v, want\n%v", a, b)
	}
	if summary, _ := sweepAll(t, x, false); summary.Ran != 0 {
		t.Errorf("after the merge: %+v", summary)
	}
}

// allResults reads every column of the results that is not time.
const allResults = `SELECT concat_ws(' ', program, arguments, threads, seed, repetition, outcome, exit_code, failure_class,
	instructions, cycles, digest, schedule_digest, key) FROM results ORDER BY slot, repetition`

func countNatives(t *testing.T, path string) int {
	t.Helper()
	s, err := store.OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Natives()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// invented is a store with an invented result of every run that a function keeps, as large as usual.
func invented(t testing.TB, x *Experiment, path string, keep func(i int) bool, change func(i int, r *store.Record)) {
	t.Helper()
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.PutBuild(plan.build, "test"); err != nil {
		t.Fatal(err)
	}
	calls := map[string]uint64{}
	var files []machine.Input
	for i := range 20 {
		calls[fmt.Sprint("call", i)] = uint64(i)
	}
	for i := range 6 {
		files = append(files, machine.Input{Path: fmt.Sprintf("/no/such/library/%d.so", i)})
	}
	for i, run := range plan.Runs {
		if !keep(i) {
			continue
		}
		r := store.Record{
			Slot: run.slot, Repetition: 1, Key: run.Key, Labels: pointLabels(run.Point), Manifest: digestJSON(files),
			Report: store.Report{Stdout: output.Sum{SHA256: strings.Repeat("5", 64), Bytes: 7}, Result: &machine.Result{
				Outcome: "exit", Cycles: uint64(1000 + i%97), Instructions: uint64(i), Syscalls: calls, Inputs: files,
				Digest: fmt.Sprintf("%032x", i), ScheduleDigest: fmt.Sprintf("%032x", i%3), StateDigest: fmt.Sprintf("%032x", i%5),
				OutputDigest: strings.Repeat("a", 32), StdoutDigest: strings.Repeat("b", 32), Engine: "engine 1.2.3", CPU: "x86-64-v2",
			}},
		}
		if change != nil {
			change(i, &r)
		}
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
}

func everyOther(rest int) func(int) bool { return func(i int) bool { return i%2 == rest } }

func all(int) bool { return true }

// TestMergesThatAreRefused: the sentence says why, and nothing is taken over.
func TestMergesThatAreRefused(t *testing.T) {
	x := mustLoad(t, "programs: [{name: a, command: [echo]}]\ngrid: {seeds: 1-200}\nnative: false\n")
	dir := t.TempDir()
	invented(t, x, x.Store, everyOther(0), nil)
	good := filepath.Join(dir, "good.sqlite")
	invented(t, x, good, everyOther(1), nil)
	at := func(name string, change func(x *Experiment)) string {
		y := *x
		y.Store = filepath.Join(dir, name)
		invented(t, x, y.Store, everyOther(1), nil)
		change(&y)
		return y.Store
	}
	query := func(text string) func(*Experiment) {
		return func(y *Experiment) { inStore(t, y, text+" RETURNING ''") }
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	before := inStore(t, x, allResults)
	for name, c := range map[string]struct {
		path string
		want string
	}{
		"damaged row":      {at("damaged", query("UPDATE runs SET cycles = 5 WHERE seed = '100'")), "is damaged"},
		"another build":    {at("build", func(y *Experiment) { otherBuild(t, y) }), "has results of another heddle: v1 (SHA-256 123456789abc), and this is SHA-256 "},
		"another program":  {at("program", func(y *Experiment) { otherKey(t, y) }), "has results of another version of the experiment; the first: a cores=4 policy=timed seed=2"},
		"no database":      {text, "cannot use the result store"},
		"no file":          {filepath.Join(dir, "none"), "there is no result store"},
		"another grid":     {at("grid", query("UPDATE runs SET slot = 'x' || slot")), "has no run of the experiment"},
		"itself":           {x.Store, "would be merged into itself"},
		"a damaged native": {at("native", query("INSERT INTO native VALUES ('key', '{}', 'wrong')")), "row key of the table native"},
	} {
		_, err := x.Merge(Options{}, []string{good, c.path})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if after := inStore(t, x, allResults); !slices.Equal(before, after) {
			t.Errorf("%s: %d results before, %d after", name, len(before), len(after))
		}
	}
	if merged, err := x.Merge(Options{}, []string{good}); err != nil || merged.New != 100 {
		t.Errorf("the good one: %+v, %v", merged, err)
	}
}

// rekey changes the keys of the results in a store.
func rekey(t *testing.T, x *Experiment, build, version string) {
	t.Helper()
	s, err := store.Open(x.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var records []store.Record
	for r, err := range s.Runs() {
		if err != nil {
			t.Fatal(err)
		}
		r.Key = "other" + r.Key
		records = append(records, r)
	}
	for _, r := range records {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if build != "" {
		if err := s.PutBuild(build, version); err != nil {
			t.Fatal(err)
		}
	}
}

func otherBuild(t *testing.T, x *Experiment) { rekey(t, x, "123456789abcdef", "v1") }
func otherKey(t *testing.T, x *Experiment)   { rekey(t, x, "", "") }

// TestMergeReportsUnequalRuns: a run that two stores share and that is not equal is an error of the sweep
// and of later tables; the others are taken over.
func TestMergeReportsUnequalRuns(t *testing.T) {
	x := mustLoad(t, "programs: [{name: a, command: [echo]}]\ngrid: {seeds: 1-10}\nnative: false\n")
	invented(t, x, x.Store, everyOther(0), nil)
	other := filepath.Join(t.TempDir(), "other")
	invented(t, x, other, all, func(i int, r *store.Record) {
		switch i {
		case 4:
			r.Report.Result.Digest = "another"
		case 2: // read another libc: no conflict
			r.Manifest, r.Report.Result.Digest = "other files", "another"
		case 5:
			r.Failure, r.Report = "crashed", store.Report{}
		case 6:
			r.Failure, r.Report = "crashed, but there is a result", store.Report{}
		}
	})
	for i := range 2 {
		merged, err := x.Merge(Options{}, []string{other})
		want := store.Merged{New: 4 * (1 - i), Equal: 4 + 4*i, Failed: 2, OtherFiles: 1, Conflicts: []string{"a cores=4 policy=timed seed=5"}}
		if err != nil || !reflect.DeepEqual(merged, want) {
			t.Errorf("merge %d: %+v, %v, want %+v", i, merged, err, want)
		}
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil || table.Rows[0][table.Find("runs")] != "9" {
		t.Fatalf("%v, %v", table, err)
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "NOT REPEATABLE: 1 runs") || !strings.Contains(notes, "seed=6: crashed") {
		t.Error(notes)
	}
}

// TestMergeOnAFullDisk: a limit on the size of files is a full disk.
func TestMergeOnAFullDisk(t *testing.T) {
	x := mustLoad(t, "programs: [{name: a, command: [echo]}]\ngrid: {seeds: 1-600}\nnative: false\n")
	invented(t, x, x.Store, func(i int) bool { return i < 10 }, nil)
	other := filepath.Join(t.TempDir(), "other")
	invented(t, x, other, all, nil)
	before := inStore(t, x, allResults)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 19, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := x.Merge(Options{}, []string{other})
	if e := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); e != nil {
		t.Fatal(e)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be merged into "+x.Store+", which is as it was before: ") {
		t.Errorf("it is %v", err)
	}
	if after := inStore(t, x, allResults); !slices.Equal(before, after) {
		t.Errorf("%d results before, %d after", len(before), len(after))
	}
	if merged, err := x.Merge(Options{}, []string{other}); err != nil || merged.New != 590 {
		t.Errorf("with room: %+v, %v", merged, err)
	}
}

func TestShardTexts(t *testing.T) {
	for text, want := range map[string]Shard{"1/1": {1, 1}, "3/8": {3, 8}, "0/1": {}, "2/1": {}, "x": {}, "1/": {}, "1/100001": {}, "-1/2": {}} {
		var s Shard
		err := s.UnmarshalText([]byte(text))
		if (err == nil) != (want.Of > 0) || err == nil && (s != want || s.String() != text) {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
}

func TestValues(t *testing.T) {
	const text = "time: 1.5 s\ntime: 2.5e0 s\nrate 7\ntime: x\n"
	for _, c := range []struct {
		v    Value
		want float64
	}{
		{Value{Pattern: `^time: ([0-9.e]+)`}, 1.5},
		{Value{Pattern: `^time: ([0-9.e]+)`, Pick: "last"}, 2.5},
		{Value{Pattern: `^time: ([0-9.e]+)`, Pick: "sum"}, 4},
		{Value{Pattern: `^time: ([0-9.e]+)`, Pick: "mean"}, 2},
		{Value{Pattern: `^time: ([0-9.e]+)`, Pick: "max"}, 2.5},
		{Value{Pattern: `^time: ([0-9.e]+)`, Pick: "min"}, 1.5},
		{Value{Pattern: `^time`, Pick: "count"}, 3},
		{Value{Pattern: `nothing`, Pick: "count"}, 0},
		{Value{Pattern: `\d$`}, 7},
		{Value{Pattern: `^time: (.*)$`, Pick: "last"}, math.NaN()},
		{Value{Pattern: `nothing`}, math.NaN()},
	} {
		c.v.completeFields()
		pattern, err := c.v.compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.v.parse(pattern, []byte(text)); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %v", c.v, got)
		}
	}
}

// TestValuesOfRuns: values that are asked for later are those of runs that are carried out again, and patterns
// can be changed without that.
func TestValuesOfRuns(t *testing.T) {
	const one = "programs: [{name: a, command: [sh, -c, 'echo one 1; echo two 2 >&2']}]\nnative: false\n"
	x := mustLoad(t, one)
	sweepAll(t, x, false)
	y := mustLoad(t, one+"values: [{name: n, pattern: 'one (.)', unit: MB/s}, {name: m, pattern: 'two (.)', from: stderr}]\n")
	y.Store = x.Store
	values := func() string {
		table, err := y.Table(Options{}, Selection{Measures: []string{"n", "m"}})
		if err != nil {
			t.Fatal(err)
		}
		return table.Head[table.Find("n")].Name + " " + table.Rows[0][table.Find("n")] + " " + table.Rows[0][table.Find("m")]
	}
	if got := values(); got != "n [MB/s] - -" {
		t.Error(got)
	}
	if summary, _ := sweepAll(t, y, false); summary.Ran != 1 || values() != "n [MB/s] 1 2" {
		t.Error(summary, values())
	}
	y.Values[0].Pattern = "[a-z]+ (1)"
	if summary, _ := sweepAll(t, y, false); summary.Ran != 0 || values() != "n [MB/s] 1 2" {
		t.Error(summary, values())
	}
}

// TestSelections: filters, statistics and ratios of invented results.
func TestSelections(t *testing.T) {
	x := mustLoad(t, "programs: [{name: a, command: [echo]}, {name: b, command: [echo, '{threads}']}]\ngrid: {seeds: 1-3, policy: [timed, rr], threads: [1, 2, 4]}\nnative: false\n")
	// Rows a timed, a rr, b timed 1 2 4, b rr 1 2 4, of three runs each.
	invented(t, x, x.Store, func(i int) bool { return i != 5 }, func(i int, r *store.Record) {
		r.Report.Result.Cycles = uint64(100*(i/3+1) + 10*(i%3))
	})
	cells := func(s Selection, keys ...string) (lines []string) {
		table, err := x.Table(Options{}, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows {
			var line []string
			for _, key := range keys {
				line = append(line, row[table.Find(key)])
			}
			lines = append(lines, strings.Join(line, " "))
		}
		return lines
	}
	for _, c := range []struct {
		s    Selection
		keys string
		want []string
	}{
		{Selection{Where: []string{"program=b policy!=rr", "threads>=2"}}, "program policy threads cycles", []string{"b timed 2 410", "b timed 4 510"}},
		{Selection{Where: []string{"program=a"}, Statistics: []string{"median", "sd", "min", "max", "q1"}}, "cycles_median cycles_sd cycles_min cycles_max cycles_q1", []string{"110 10 100 120 105", "205 7 200 210 202"}},
		// t(0.975, 2) is 4.302653, so the interval of 110 with a deviation of 10 is 110 ± 24.84.
		{Selection{Where: []string{"program=a policy=timed"}, Statistics: []string{"ci"}}, "cycles_low cycles_high", []string{"85 135"}},
		{Selection{Where: []string{"program=b threads<4"}, Base: "policy=timed"}, "policy threads cycles_ratio", []string{"timed 1 1.000", "timed 2 1.000", "rr 1 1.968", "rr 2 1.732"}},
		{Selection{Where: []string{"program=a"}, Base: "program=b"}, "cycles_ratio", []string{"-", "-"}},
	} {
		if got := cells(c.s, strings.Fields(c.keys)...); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
	for want, s := range map[string]Selection{
		"where": {Where: []string{"threads"}}, "a value that a row": {Base: "policy=pct"}, "number": {Where: []string{"threads<x"}}, "base": {Base: "policy!=rr"},
		"confidence": {Confidence: 1}, "statistic": {Statistics: []string{"mode"}}, "measure": {Measures: []string{"speed"}},
	} {
		if _, err := x.Table(Options{}, s); !errors.Is(err, errChoice) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestSeveralTables(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, grid := range map[string]string{"one": "policy: [rr]", "two": "model: [tso]"} {
		path := filepath.Join(dir, name+".yaml")
		text := "programs: [{name: a, command: [echo]}]\nnative: false\nstore: " + name + ".sqlite\ngrid: {" + grid + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		invented(t, x, x.Store, all, nil)
		paths = append(paths, path)
	}
	slices.Sort(paths)
	table, err := Tables(paths, Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table.Write(&b, "csv"); err != nil {
		t.Fatal(err)
	}
	want := `experiment,program,policy,model,cores,threads,runs,speedup,cycles,instructions,context_switches,distinct_schedules,identical_to_native
one,a,rr,-,4,-,1,-,1000,0,0,1,-
two,a,timed,tso,4,-,1,-,1000,0,0,1,-
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if _, err := Tables(paths, Options{Store: "x"}, Selection{}); !errors.Is(err, errStoreOfSeveral) {
		t.Error(err)
	}
}

// many is an experiment of 100,000 runs.
const many = `
programs: [{name: a, command: [echo, "{threads}"]}]
grid: {threads: [1, 2, 4, 8], seeds: 1-5000, policy: [timed, rr, random, pct, kendo]}
native: false
`

// processorSeconds is the processor time of this process.
func processorSeconds(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkTableOf100000Runs(b *testing.B) {
	x := mustLoad(b, many)
	invented(b, x, x.Store, all, nil)
	began := processorSeconds(b)
	for b.Loop() {
		if _, err := x.Table(Options{}, Selection{Statistics: []string{"mean", "median", "ci"}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processorSeconds(b)-began)/float64(b.N), "processor-s/op")
}

func BenchmarkMergeOf100000Runs(b *testing.B) {
	x := mustLoad(b, many)
	shards := []string{filepath.Join(b.TempDir(), "0"), filepath.Join(b.TempDir(), "1")}
	for i, path := range shards {
		invented(b, x, path, everyOther(i), nil)
	}
	began := processorSeconds(b)
	for b.Loop() {
		x.Store = filepath.Join(b.TempDir(), "merged.sqlite")
		merged, err := x.Merge(Options{}, shards)
		if err != nil || merged.New != 100_000 {
			b.Fatal(merged, err)
		}
	}
	b.ReportMetric((processorSeconds(b)-began)/float64(b.N), "processor-s/op")
}
