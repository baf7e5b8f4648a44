package ownprogram

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	bin, lib := filepath.Join(root, "bin"), filepath.Join(root, "lib", "heddle")
	for _, dir := range []string{bin, lib, filepath.Join(bin, "folder")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(bin, "first"), filepath.Join(lib, "first"), filepath.Join(lib, "second")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"first": filepath.Join(bin, "first"), "second": filepath.Join(lib, "second"), "folder": "folder", "none": "none"} {
		if got := findFrom(bin, name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}
