package tern_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
)

// BenchmarkFind decides new files by pbzip2's preconditions: the cache and the libraries
// have been read, the file is opened.
func BenchmarkFind(b *testing.B) {
	dir := b.TempDir()
	var files []string
	for i, n := range []int64{150_000, 140_000} {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
			b.Fatal(err)
		}
		files = append(files, name)
	}
	c := opened(b)
	w := tern.PBZip2(config(dir), files, dir, "-b1", "-p2")
	w.Share = 1
	if _, _, err := w.Measure(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	find := tern.NewFinder(c)
	for b.Loop() {
		run := w.Input(1)
		if e, err := find.Find(&run); e == nil || err != nil {
			b.Fatal(e, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/check")
}
