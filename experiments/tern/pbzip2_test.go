package tern_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

func opened(t testing.TB) *cache.Cache {
	t.Helper()
	c, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// compressed runs a file under the schedule that admits it and compares with the native
// output.
func compressed(t *testing.T, c machine.Config, find *tern.Finder, file string) {
	t.Helper()
	e, err := find.Find(&c)
	if e == nil || err != nil {
		t.Errorf("%s: no schedule admits it: %v", file, err)
		return
	}
	r, out := enforced(t, c, &tern.Schedule{File: e.File})
	if !r.Schedule.Followed {
		t.Errorf("%s: %s", file, r.Schedule.Reason)
	}
	native := exec.Command(c.Args[0], slices.Concat(c.Args[1:len(c.Args)-1], []string{file})...)
	want, err := native.Output()
	if err != nil || out != string(want) {
		t.Errorf("%s: %d bytes, natively %d: %v", file, len(out), len(want), err)
	}
}

// Debian's pbzip2, unmodified: one schedule for each number of blocks serves files of other
// sizes and contents (TERN's table 1), since no precondition is about the file's bytes.
// Files of exactly two blocks have a schedule of their own: a read of zero bytes finds
// their end.
func TestPBZip2(t *testing.T) {
	testsize.SkipQuick(t)
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(51, 52))
	var files []string
	lengths := []int{1500, 900, 4000, 100_000, 150_000, 101_000, 199_999, 200_000, 200_000, 250_000}
	for i, n := range lengths {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte('a' + r.IntN(20))
		}
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	kinds := []int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3}
	sizes := []string{
		"0 < size(argv[5]) ∧ size(argv[5]) < 100001", "100000 <u size(argv[5]) ∧ size(argv[5]) <u 200000", "size(argv[5]) = 200000",
	}
	c := opened(t)
	w := tern.PBZip2(config(dir), files[:9], dir, "-b1", "-p2")
	w.Share = 1
	w.OnSchedule = func(i int, m *tern.Schedule, err error) {
		if err != nil {
			t.Fatal(err)
		}
		set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
		if err != nil {
			t.Fatal(err)
		}
		if text := set.String(); strings.Contains(text, "file(") || !strings.Contains(text, "size(argv[5])") {
			t.Errorf("the preconditions are about the file's bytes, or not about its size: %s", text)
		}
		readable(t, set.String(), sizes[kinds[i]])
		t.Logf("%d bytes: %d constraints, %d in the slice, %d terms: %s", lengths[i], m.Constraints, m.Kept, m.Terms, set)
	}
	reuse, _, err := w.Measure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if *reuse != (tern.Reuse{Inputs: 9, Sampled: 9, Recorded: 3, Schedules: 3, Hits: 9}) {
		t.Errorf("%+v", reuse)
	}
	find := tern.NewFinder(c)
	all := tern.PBZip2(config(dir), files, dir, "-b1", "-p2")
	for i, file := range files {
		with := all.Input(i)
		if kinds[i] == 3 {
			if e, _ := find.Find(&with); e != nil {
				t.Error("a file of three blocks is admitted")
			}
			continue
		}
		compressed(t, with, find, file)
	}
}

// readable checks that preconditions are in the form that a person would write: the
// options, the length of the file's name, and the bounds of the size for a number of
// blocks.
func readable(t *testing.T, text, sizes string) {
	t.Helper()
	for _, want := range []string{
		sizes, `argv[1] = "-c" ∧ argv[2] = "-k" ∧ argv[3] = "-b1" ∧ argv[4] = "-p2"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the preconditions: %s", want, text)
		}
	}
	if n := strings.Count(text, "∧"); n > 12 {
		t.Errorf("%d terms: %s", n+1, text)
	}
}

// usr returns random files of /usr.
func usr(t *testing.T, n int) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("/usr", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(2010, 10)).Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	return files[:min(n, len(files))]
}

// TERN's PBZip2-usr: 10,000 files of /usr, eight threads, 2 % of them memoized. The paper
// has a reuse rate of 96.2 %. It takes some minutes.
func TestPBZip2Usr(t *testing.T) {
	if !testsize.Long() {
		t.Skip("HEDDLE_LONG is not set")
	}
	const paper = 0.962
	for _, arguments := range [][]string{{"-p8"}, {"-p8", "-b1"}} {
		files, dir, c := usr(t, 10_000), t.TempDir(), opened(t)
		w := tern.PBZip2(config(dir), files, dir, arguments...)
		w.OnSchedule = func(i int, m *tern.Schedule, err error) {
			info, _ := os.Stat(files[i])
			if err != nil {
				t.Logf("%d bytes: %v", info.Size(), err)
				return
			}
			t.Logf("%d bytes: %d constraints, %d in the slice, %d terms", info.Size(), m.Constraints, m.Kept, m.Terms)
		}
		reuse, hits, err := w.Measure(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%q: %+v, rate %.1f %%", arguments, reuse, 100*reuse.Rate())
		if reuse.Rate() < paper {
			t.Errorf("the paper's rate is %.1f %%", 100*paper)
		}
		find, followed := tern.NewFinder(c), 0
		for i, hit := range hits {
			if info, err := os.Stat(files[i]); err == nil && hit && i%(len(hits)/100) == 0 && info.Size() < 1<<20 {
				compressed(t, w.Input(i), find, files[i])
				followed++
			}
		}
		t.Logf("%d hits followed their schedules", followed)
	}
}
