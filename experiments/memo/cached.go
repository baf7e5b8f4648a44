package memo

import (
	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/cache"
)

// Look is the entry of a cache that a run may follow, or nil. Damaged are entries that
// were found damaged on the way.
func Look(c *heddle.Config, from *cache.Cache) (e *cache.Entry, damaged []error, err error) {
	program := Sum(ProgramFile(c))
	if program == "" {
		return nil, nil, nil
	}
	entries, damaged, err := from.Entries(program)
	if err != nil || len(entries) == 0 {
		return nil, damaged, err
	}
	in := NewInput(c)
	defer in.Close()
	return cache.NewTree(entries).Find(&in.Input, func(e *cache.Entry) bool { return surroundings(c, e.File) == "" }), damaged, nil
}
