package infile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadStarting(t *testing.T) {
	long := "schedule " + strings.Repeat("line\n", 100_000)
	for _, test := range []struct{ name, content, want string }{
		{"that starts so", long, long},
		{"that starts in another way", strings.Repeat("x", 100_000), strings.Repeat("x", beginning)},
		{"that ends in the start", "sched", "sched"},
		{"that is empty", "", ""},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadStarting(path, "schedule "); err != nil || got != test.want {
			t.Errorf("a file %s: %d bytes and %v, want %d bytes", test.name, len(got), err, len(test.want))
		}
	}
}

func TestFilesThatAreNotRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, largest+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSmall(large); !errors.Is(err, ErrLarge) {
		t.Errorf("a large file: %v", err)
	}
	if err := os.Truncate(large, largest); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadSmall(large); err != nil || len(text) != largest {
		t.Errorf("the largest file: %d bytes and %v", len(text), err)
	}
	var of *fs.PathError
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := ReadSmall(path); !errors.As(err, &of) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := ReadStarting(path, "x"); !errors.As(err, &of) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
