// Package ownprogram finds and runs the programs that belong to heddle and that it starts.
package ownprogram

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// Failure is what a program has written to standard error before it ended with another status than 0.
type Failure string

func (f Failure) Error() string { return string(f) }

// Run runs a program with a standard input and output. The error is a Failure if the program could be started.
func Run(from io.Reader, to io.Writer, name string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.Command(Find(name), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = from, to, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return Failure(strings.TrimSpace(stderr.String()))
	}
	return err
}
