package tern_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/gcctest"
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

// BenchmarkLookup is all of what a run with a cache does before the program starts: it opens the cache and searches it,
// for an input that no schedule admits.
func BenchmarkLookup(b *testing.B) {
	bin, dir := gcctest.File(b, "../concolicrun/testdata/divide.c"), b.TempDir()
	store := opened(b)
	for _, n := range []string{"2", "3", "4"} {
		path := filepath.Join(dir, "trace"+n)
		file, err := os.Create(path)
		if err == nil {
			_, err = tern.Record(b.Context(), config(dir, bin, n, n, "0"), file)
		}
		if err != nil {
			b.Fatal(err)
		}
		m, err := tern.Make(b.Context(), path, tern.Options{})
		if err == nil {
			_, err = store.Add(m.File)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	run := config(dir, bin, "5", "5", "0")
	for b.Loop() {
		from, err := cache.OpenExisting(filepath.Dir(store.Path()))
		if err != nil {
			b.Fatal(err)
		}
		if e, _, err := tern.Lookup(&run, from); e != nil || err != nil {
			b.Fatal(e, err)
		}
		from.Close()
	}
}
