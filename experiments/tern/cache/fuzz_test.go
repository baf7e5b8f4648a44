package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern/cache"
)

// FuzzPack: a pack with any content is opened or refused, and every entry that is found in it is a
// whole schedule. The seeds are a pack and damaged copies of it.
func FuzzPack(f *testing.F) {
	dir := f.TempDir()
	c, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range []string{"a", "a", "b"} {
		if _, err := c.Add(file(name, i+1, below('f'))); err != nil {
			f.Fatal(err)
		}
	}
	path := filepath.Join(dir, "pack")
	if _, err := c.Pack(path, ""); err != nil {
		f.Fatal(err)
	}
	if err := c.Close(); err != nil {
		f.Fatal(err)
	}
	pack, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack, 0)
	f.Add(pack[:len(pack)/2], 0)
	f.Add(pack, len(pack)-100)
	f.Add(pack, 100)
	f.Add([]byte("SQLite format 3\x00"), 0)
	f.Fuzz(func(t *testing.T, content []byte, flip int) {
		content = append([]byte(nil), content...)
		if flip > 0 && flip < len(content) {
			content[flip] ^= 0x55
		}
		path := filepath.Join(t.TempDir(), "pack")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := cache.OpenExisting(path)
		if err != nil {
			return
		}
		defer p.Close()
		entries, _, err := p.Entries("")
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.File == nil || e.File.Schedule == nil || len(e.Name) < 12 {
				t.Errorf("%+v", e)
			}
		}
	})
}
