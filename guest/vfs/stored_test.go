package vfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A file system with the files that another one has read shows them, with their bytes and attributes, whether the host
// has another file there, or none. Others are the host's. A folder that was listed has the names that it had.
func TestStoredFiles(t *testing.T) {
	host, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/m/a/1": pagesOf('a', 3), "/m/a/2": "two", "/m/a/empty": "", "/m/4": "four"}
	for path, text := range want {
		write(t, host+path[2:], text)
	}
	write(t, host+"/a/unread", "as it was")
	write(t, host+"/a/gone", "not read")
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(os.Chmod(host+"/a/1", 0o751))
	config := Config{Mounts: []Mount{{Host: host, Guest: "/m"}}}
	check := func(fs *FS) (stored []StoredFile, attributes []unix.Stat_t) {
		t.Helper()
		c := as(fs, 0, 0)
		for _, path := range slices.Sorted(maps.Keys(want)) { // inodes are numbered in the order of their use
			text := want[path]
			if got := read(t, fs, c, path); got != text {
				t.Errorf("%s has %d bytes %.20q, want %d", path, len(got), got, len(text))
			}
		}
		if got := names(t, fs, c, "/m/a"); got != "1 2 empty gone unread" {
			t.Errorf("the folder holds %q", got)
		}
		fs.EachRead(func(f StoredFile, size int64, read func([]byte, int64) bool) bool {
			f.Data = make([]byte, size)
			if f.IsFolder() != (f.Path == host+"/a") {
				t.Errorf("%s has the mode %o", f.Path, f.Mode)
			}
			if size > 0 && !read(f.Data, 0) {
				t.Errorf("%s cannot be read again", f.Path)
			}
			stored = append(stored, f)
			return true
		})
		for _, path := range []string{"/m/a", "/m/a/gone", "/m/a/1"} {
			d, errno := fs.Lookup(c, nil, path, true)
			if errno != 0 {
				t.Fatal(path, errno)
			}
			attributes = append(attributes, d.Inode().Stat())
		}
		return stored, attributes
	}
	stored, before := check(newFS(t, config))
	if len(stored) != len(want)+1 {
		t.Errorf("%d files were read", len(stored))
	}
	ok(os.Remove(host + "/a/1"))
	ok(os.Remove(host + "/a/empty"))
	replaceFile(t, host+"/a/2", "another")
	rewriteFile(t, host+"/4", "another")
	ok(os.Remove(host + "/a/gone"))
	write(t, host+"/a/later", "new")
	ok(os.Mkdir(host+"/a/folder", 0o700))
	config.Stored = stored
	fs := newFS(t, config)
	if _, after := check(fs); !slices.Equal(after, before) {
		t.Errorf("%+v\nwas %+v", after, before)
	}
	if got := read(t, fs, as(fs, 0, 0), "/m/a/unread"); got != "as it was" {
		t.Errorf("a file of the host has %q", got)
	}
	for _, name := range []string{"none", "later", "folder"} {
		if _, errno := fs.Lookup(as(fs, 0, 0), nil, "/m/a/"+name, true); errno != unix.ENOENT {
			t.Error(name, errno)
		}
	}
	for n := range stored {
		if stored[n].IsFolder() {
			for cut := range stored[n].Data {
				part := stored[n]
				part.Data = part.Data[:cut]
				if d, err := readFolder(&part); err == nil && len(d.children) == 5 {
					t.Errorf("%d of %d bytes of the listing are enough", cut, len(stored[n].Data))
				}
			}
		}
	}
}
