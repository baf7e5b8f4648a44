package machine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

// readerFunc is standard input that does something on the host when the program asks
// for it.
type readerFunc func()

// Read implements io.Reader.
func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

// TestHostFilesChangeDuringTheRun: a file of the host that a program has read is
// replaced or rewritten on the host before the program reads it again: it has the bytes
// and the hash that it had. Where those of a large file are gone, the run says so.
func TestHostFilesChangeDuringTheRun(t *testing.T) {
	for name, lines := range map[string]int{"small": 3000, "large": 700_000} {
		t.Run(name, func(t *testing.T) {
			was, becomes := strings.Repeat("before\n", lines), strings.Repeat("after.\n", lines)
			file := filepath.Join(t.TempDir(), "file")
			set := func(path, text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			start := func(change func()) (*machine.Result, string, error) {
				set(file, was)
				c, out := machinetest.Config(t, "/bin/cat", file, "-", file)
				c.Dir = filepath.Dir(file)
				c.Stdin = readerFunc(change)
				r, err := machine.Run(context.Background(), c)
				return r, out.String(), err
			}
			quiet, _, err := start(func() {})
			if err != nil {
				t.Fatal(err)
			}
			input := machine.Input{Path: file, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(was)))}
			same := func(change string, r *machine.Result, out string, err error) {
				t.Helper()
				if err != nil || out != was+was || !slices.Contains(r.Inputs, input) || r.Digest != quiet.Digest {
					t.Errorf("a file that is %s: %v, output of %d bytes", change, err, len(out))
				}
			}
			r, out, err := start(func() {
				set(file+".new", becomes)
				if err := os.Rename(file+".new", file); err != nil {
					t.Error(err)
				}
			})
			same("replaced", r, out, err)
			r, out, err = start(func() { set(file, becomes) })
			if name == "small" {
				same("rewritten", r, out, err)
				return
			}
			if want := "the host's file " + file + " changed while the guest could see it"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a file that is rewritten: %v, want %q", err, want)
			}
		})
	}
}

// programRoot returns a root with programs of the host's and the files that they read when they
// run a command, and the paths of all of them.
func programRoot(t *testing.T, programs []string, command ...string) (root string, files []string) {
	root = t.TempDir()
	copyIn := func(path string) {
		to := filepath.Join(root, path)
		data, err := os.ReadFile(path)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, to)
	}
	c, _ := machinetest.Config(t, command...)
	for _, in := range machinetest.Run(t, c).Inputs {
		copyIn(in.Path)
	}
	// The inputs' paths have no links in them.
	for _, path := range append(programs, "/lib64/ld-linux-x86-64.so.2") {
		copyIn(path)
	}
	if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	return root, files
}

// TestPackageIsInstalledDuringTheRun: the cache of the dynamic loader, libraries, programs
// and their configuration are replaced, rewritten or removed on the host. Files that
// the guest has opened before have their old contents when they are opened again, also in processes that start later.
func TestPackageIsInstalledDuringTheRun(t *testing.T) {
	for name, install := range map[string]func(path string) error{
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".dpkg-new", []byte("another"), 0o755), os.Rename(path+".dpkg-new", path))
		},
		"rewritten": func(path string) error { return os.WriteFile(path, []byte("another"), 0o755) },
		"removed":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			root, files := programRoot(t, []string{"/bin/sh", "/bin/cat"}, "/bin/sh", "-c", "cat /dev/null; true")
			files = append(files, filepath.Join(root, "etc/conf"))
			if err := os.WriteFile(filepath.Join(root, "etc/conf"), []byte("conf\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			start := func(change func()) *machine.Result {
				c, out := machinetest.Config(t, "/bin/sh", "-c", "/bin/cat /etc/conf; /bin/cat; exec /bin/cat /etc/conf")
				c.RootFS, c.Dir, c.Stdin = root, "/", readerFunc(change)
				r := machinetest.Run(t, c)
				if out.String() != "conf\nconf\n" || r.ExitCode != 0 {
					t.Errorf("%q, %+v", out, r)
				}
				return r
			}
			quiet := start(func() {})
			r := start(func() {
				for _, path := range files {
					if err := install(path); err != nil {
						t.Error(err)
					}
				}
			})
			if r.Digest != quiet.Digest || !slices.Equal(r.Inputs, quiet.Inputs) {
				t.Errorf("%+v, want %+v", r, quiet)
			}
		})
	}
}
