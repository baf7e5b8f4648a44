package heddle_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle"
)

// readerFunc is standard input that does something on the host when the program asks
// for it.
type readerFunc func()

// Read implements io.Reader.
func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

// TestHostFilesChangeDuringTheRun: a file of the host that a program has read is
// replaced on the host before the program reads it again: it has the bytes and the hash
// that it had. Where it is rewritten instead, the bytes are gone, and the run says so.
func TestHostFilesChangeDuringTheRun(t *testing.T) {
	was, becomes := strings.Repeat("before\n", 3000), strings.Repeat("after.\n", 3000)
	file := filepath.Join(t.TempDir(), "file")
	set := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	start := func(change func()) (*heddle.Result, string, error) {
		set(file, was)
		c, out := config(t, "/bin/cat", file, "-", file)
		c.Dir = filepath.Dir(file)
		c.Stdin = readerFunc(change)
		r, err := heddle.Run(context.Background(), c)
		return r, out.String(), err
	}
	input := heddle.Input{Path: file, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(was)))}

	quiet, _, err := start(func() {})
	if err != nil {
		t.Fatal(err)
	}
	r, out, err := start(func() {
		set(file+".new", becomes)
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	})
	if err != nil || out != was+was || !slices.Contains(r.Inputs, input) || r.Digest != quiet.Digest {
		t.Errorf("a file that is replaced: %v, output of %d bytes, %+v", err, len(out), r)
	}
	_, _, err = start(func() { set(file, becomes) })
	if want := "the host's file " + file + " changed while the guest could see it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a file that is rewritten: %v, want %q", err, want)
	}
}
