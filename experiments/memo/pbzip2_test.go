package memo_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/memo"
)

// Debian's pbzip2, as it is: the schedule of one file serves others of other sizes and
// contents (TERN's table 1), since no precondition is about the file's bytes; a file of
// two blocks it does not serve.
func TestPBZip2(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(51, 52))
	sizes := map[string]int{"a": 1500, "b": 900, "c": 4000, "d": 120_000}
	for name, n := range sizes {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte('a' + r.IntN(20))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string) []string { return []string{"pbzip2", "-c", "-k", "-b1", "-p2", name} }
	m := memoize(t, config(dir, command("a")...), memo.Options{})
	set, err := preconditions.Parse(m.File.Preconditions, symbolic.NewPool())
	if err != nil {
		t.Fatal(err)
	}
	if text := set.String(); strings.Contains(text, "file(") || !strings.Contains(text, "size(argv[5])") {
		t.Error("the preconditions are about the file's bytes, or not about its size")
	}
	t.Logf("%d constraints, %d in the slice, %d terms", m.Constraints, m.Kept, m.Terms)
	for name := range sizes {
		c := config(dir, command(name)...)
		if why := memo.Admits(&c, m.File); (why == "") != (name != "d") {
			t.Errorf("%s: %.300q", name, why)
			continue
		}
		if name == "d" {
			continue
		}
		result, out := enforced(t, c, m)
		if !result.Schedule.Followed {
			t.Errorf("%s: %s", name, result.Schedule.Reason)
		}
		unpack := exec.Command("bunzip2", "-c")
		unpack.Stdin = strings.NewReader(out)
		back, err := unpack.Output()
		if want, _ := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(back, want) {
			t.Errorf("%s does not come out as it was: %v", name, err)
		}
	}
}
