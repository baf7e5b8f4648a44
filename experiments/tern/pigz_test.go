package tern_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// TestPigz: the schedule of Debian's pigz on a file admits other files of the same size, as the results of zlib's functions
// decide nothing about it, and these are compressed as natively under other seeds.
func TestPigz(t *testing.T) {
	const pigz = "/usr/bin/pigz"
	if _, err := os.Stat(pigz); err != nil {
		t.Skip("pigz is not installed")
	}
	dir, r := t.TempDir(), rand.New(rand.NewPCG(61, 62))
	in := func(name string, size, letters int) machine.Config {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte('a' + r.IntN(letters))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return config(dir, pigz, "-n", "-p2", "-k", "-c", filepath.Join(dir, name))
	}
	m, err := tern.Make(t.Context(), record(t, in("a", 3000, 20)), tern.Options{Budget: tern.DefaultBudget()})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Pinned) > 0 || m.AssumedTerms == 0 || slices.ContainsFunc(m.File.Preconditions, func(s string) bool { return strings.Contains(s, "file(") }) {
		t.Errorf("pinned %q, %d terms left out: %q", m.Pinned, m.AssumedTerms, m.File.Preconditions)
	}
	for i, other := range []struct {
		size, letters int
		admitted      bool
	}{{3000, 2, true}, {3000, 26, true}, {3001, 20, false}} {
		c := in(string(rune('b'+i)), other.size, other.letters)
		if why := tern.Admits(&c, m.File); (why == "") != other.admitted {
			t.Errorf("%+v: %q", other, why)
			continue
		}
		if !other.admitted {
			continue
		}
		c.Seed = uint64(7 + i)
		follows(t, c, m)
	}
}
