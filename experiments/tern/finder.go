package tern

import (
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Lookup returns the entry of a cache that a run may follow, or nil. Damaged are the
// entries that were found damaged.
func Lookup(c *machine.Config, from *cache.Cache) (e *cache.Entry, damaged []error, err error) {
	sums := fileSums{}
	program := sums.of(ProgramFile(c))
	if program == "" {
		return nil, nil, nil
	}
	in := NewInput(c)
	defer in.Close()
	return from.Lookup(program, &in.Input, func(e *cache.Entry) bool { return environmentMismatch(c, e.File, sums.of) == "" })
}

// fileSums caches FileSHA256.
type fileSums map[string]string

func (f fileSums) of(path string) string {
	s, known := f[path]
	if !known {
		s = FileSHA256(path)
		f[path] = s
	}
	return s
}

// Finder finds entries of a cache for many runs. It reads the cache, and the files that are
// no input, once: they must not change meanwhile.
type Finder struct {
	// Damaged are entries that were found damaged.
	Damaged []error

	from  *cache.Cache
	trees map[string]*cache.Tree // by program
	sums  fileSums
}

// NewFinder makes a Finder.
func NewFinder(from *cache.Cache) *Finder {
	return &Finder{from: from, trees: map[string]*cache.Tree{}, sums: fileSums{}}
}

// Find returns the entry that a run may follow, or nil.
func (f *Finder) Find(c *machine.Config) (*cache.Entry, error) {
	t, err := f.programTree(f.sums.of(ProgramFile(c)))
	if t == nil || err != nil {
		return nil, err
	}
	in := NewInput(c)
	defer in.Close()
	return t.Find(&in.Input, func(e *cache.Entry) bool { return environmentMismatch(c, e.File, f.sums.of) == "" }), nil
}

// Reload has the cache read again after a change.
func (f *Finder) Reload() { clear(f.trees) }

// programTree returns the decision tree of a program, nil if it has no entries.
func (f *Finder) programTree(program string) (*cache.Tree, error) {
	t, known := f.trees[program]
	if known || program == "" {
		return t, nil
	}
	entries, damaged, err := f.from.Entries(program)
	f.Damaged = append(f.Damaged, damaged...)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		t = cache.NewTree(entries)
	}
	f.trees[program] = t
	return t, nil
}
