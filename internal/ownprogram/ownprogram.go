// Package ownprogram finds the programs that belong to heddle and that it starts.
package ownprogram

import (
	"os"
	"path/filepath"
)

// Find returns where a program is: in the folder of the running one, in ../lib/heddle beside that, or, of a name
// alone, where PATH says.
func Find(name string) string {
	if self, err := os.Executable(); err == nil {
		return findFrom(filepath.Dir(self), name)
	}
	return name
}

func findFrom(dir, name string) string {
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, "../lib/heddle", name)} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return name
}
