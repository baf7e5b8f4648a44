package vfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// export writes to a folder by its path.
func export(fs *FS, dir string) error {
	to, err := OpenExport(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	return fs.Export(to)
}

func TestExport(t *testing.T) {
	host, rw := t.TempDir(), t.TempDir()
	write(t, host+"/d/low", "low")
	write(t, host+"/d/same", "same")
	write(t, host+"/gone", "gone")
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}, {Host: rw, Guest: "/rw", Writable: true}}})
	c := as(fs, uint32(os.Getuid()), uint32(os.Getgid()))
	c.Cred.FSUID, c.Cred.Effective = 0, AllCaps
	put(t, fs, c, "/m/d/low", "changed")
	put(t, fs, c, "/rw/written", "back")
	put(t, fs, c, "/dev/shm/object", "not a file")
	ok(t, fs.Mkdir(c, nil, "/tmp/dir", 0o750))
	put(t, fs, c, "/tmp/dir/f", "new")
	ok(t, fs.Link(c, nil, "/tmp/dir/f", nil, "/tmp/again", false))
	ok(t, fs.Symlink(c, "/m/d", nil, "/tmp/link"))
	ok(t, fs.Unlink(c, nil, "/m/gone"))
	ok(t, fs.Mkdir(c, nil, "/tmp/empty", 0o700))
	_, errno := fs.Mknod(c, nil, "/tmp/socket", unix.S_IFSOCK|0o600)
	ok(t, errno)

	left, err := fs.Left()
	if want := "/m/d/low /tmp/again /tmp/dir/f /tmp/link"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("left are %v, %v, want %s", left, err, want)
	}
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/export"
	if err := export(fs, dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/m/d/low": "changed", "/tmp/dir/f": "new", "/tmp/again": "new", "/.heddle-removed": "/m/gone\n",
	} {
		if got, err := os.ReadFile(dir + path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/tmp/dir", &st); err != nil || st.Mode != unix.S_IFDIR|0o750 {
		t.Errorf("the folder has mode %o, %v", st.Mode, err)
	}
	if err := unix.Stat(dir+"/tmp/again", &st); err != nil || st.Nlink != 2 {
		t.Errorf("the file has %d names, %v", st.Nlink, err)
	}
	for _, path := range []string{"/m/d/same", "/rw", "/tmp/socket", "/dev", "/.heddle-0"} {
		if _, err := os.Lstat(dir + path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is exported: %v", path, err)
		}
	}
	if err := export(fs, dir); err != nil {
		t.Errorf("a second export over the first: %v", err)
	}
}

// TestExportFollowsNoLink: links that are in the folder already do not lead the
// export out of it.
func TestExportFollowsNoLink(t *testing.T) {
	fs := newFS(t, Config{})
	c := as(fs, 0, 0)
	put(t, fs, c, "/tmp/f", "text")
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, dir+"/tmp"); err != nil {
		t.Fatal(err)
	}
	if err := export(fs, dir); !errors.Is(err, errExport) {
		t.Errorf("Export says %v", err)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
		t.Errorf("outside are %v, %v", list, err)
	}
}

// TestCommitDetachesLinksFromOutside: a file of a writable mount that has
// another name outside of it changes in the mount alone.
func TestCommitDetachesLinksFromOutside(t *testing.T) {
	base := t.TempDir()
	write(t, base+"/outside", "shared")
	if err := os.Mkdir(base+"/rw", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(base+"/outside", base+"/rw/inside"); err != nil {
		t.Fatal(err)
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: base + "/rw", Guest: "/rw", Writable: true}}})
	c := as(fs, 0, 0)
	put(t, fs, c, "/rw/inside", "of the guest")
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/outside": "shared", "/rw/inside": "of the guest"} {
		if got, err := os.ReadFile(base + path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestCommitOfOneFile(t *testing.T) {
	base := t.TempDir()
	write(t, base+"/f", "the old text")
	fs := newFS(t, Config{Mounts: []Mount{{Host: base + "/f", Guest: "/x/f", Writable: true}}})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/x/f", unix.O_WRONLY, 0)
	ok(t, errno)
	_, errno = f.Pwrite(c, []byte("new"), 4)
	ok(t, errno)
	ok(t, f.Truncate(c, 9))
	f.Unref()
	if errno := fs.Unlink(c, nil, "/x/f"); errno != unix.EBUSY {
		t.Errorf("removing a mount: %v", errno)
	}
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(base + "/f"); err != nil || string(got) != "the new t" {
		t.Errorf("it reads %q, %v", got, err)
	}
	if list, err := os.ReadDir(base); err != nil || len(list) != 1 {
		t.Errorf("its folder holds %v, %v", list, err)
	}
}

// TestCommitMountInMount: files below another mount belong to that mount.
func TestCommitMountInMount(t *testing.T) {
	outer, inner := t.TempDir(), t.TempDir()
	fs := newFS(t, Config{Mounts: []Mount{{Host: outer, Guest: "/m", Writable: true}, {Host: inner, Guest: "/m/a/b"}}})
	c := as(fs, 0, 0)
	put(t, fs, c, "/m/a/b/stays", "x")
	put(t, fs, c, "/m/a/goes", "y")
	if errno := fs.Rename(c, nil, "/m/a/b", nil, "/m/c", 0); errno != unix.EBUSY {
		t.Errorf("renaming a mount: %v", errno)
	}
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(outer + "/a/goes"); err != nil || string(got) != "y" {
		t.Errorf("the outer file reads %q, %v", got, err)
	}
	if list, err := os.ReadDir(inner); err != nil || len(list) > 0 {
		t.Errorf("the inner folder holds %v, %v", list, err)
	}
	left, err := fs.Left()
	if err != nil || strings.Join(left, " ") != "/m/a/b/stays" {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestInputs(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/read", "this")
	write(t, host+"/empty", "")
	write(t, host+"/seen", "only its size")
	write(t, host+"/replaced", "never read")
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m", Writable: true}}})
	c := as(fs, 0, 0)
	read(t, fs, c, "/m/read")
	read(t, fs, c, "/m/empty")
	_, errno := fs.Lookup(c, nil, "/m/seen", true)
	ok(t, errno)
	put(t, fs, c, "/m/read", "changed")
	put(t, fs, c, "/m/replaced", "by this")
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	got, err := fs.Inputs(true)
	if err != nil {
		t.Fatal(err)
	}
	want := []Input{
		{host + "/empty", fmt.Sprintf("%x", sha256.Sum256(nil))},
		{host + "/read", fmt.Sprintf("%x", sha256.Sum256([]byte("this")))},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("inputs %v, want %v", got, want)
	}
}

func TestTimes(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/f", "x")
	stamp := time.Unix(1_234_567_890, 5)
	if err := os.Chtimes(host+"/f", stamp, stamp); err != nil {
		t.Fatal(err)
	}
	for _, hostTimes := range []bool{false, true} {
		fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}, HostTimes: hostTimes})
		c := as(fs, 0, 0)
		mtime := func(path string) int64 {
			d, errno := fs.Lookup(c, nil, path, true)
			ok(t, errno)
			st := d.Inode().Stat()
			return unix.TimespecToNsec(st.Mtim)
		}
		want := int64(epoch)
		if hostTimes {
			want = stamp.UnixNano()
		}
		if got := mtime("/m/f"); got != want {
			t.Errorf("HostTimes %v: %d, want %d", hostTimes, got, want)
		}
		put(t, fs, c, "/m/made", "1")
		put(t, fs, c, "/m/later", "2")
		if a, b, c := mtime("/m/f"), mtime("/m/made"), mtime("/m/later"); a >= b || b >= c {
			t.Errorf("the order of times is %d, %d, %d", a, b, c)
		}
	}
}

// TestCommitKeepsTimesOfGuest: with the host's times shown, times that the guest
// sets (touch, cp -p, tar) are written back.
func TestCommitKeepsTimesOfGuest(t *testing.T) {
	host := t.TempDir()
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m", Writable: true}}, HostTimes: true})
	c := as(fs, 0, 0)
	put(t, fs, c, "/m/f", "x")
	d, errno := fs.Lookup(c, nil, "/m/f", true)
	ok(t, errno)
	stamp := unix.Timespec{Sec: 1_000_000_000, Nsec: 7}
	ok(t, d.Inode().Utimens(c, stamp, stamp))
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(host+"/f", &st); err != nil || st.Mtim != stamp {
		t.Errorf("the file's time is %v, %v", st.Mtim, err)
	}
}

// tree describes all files below a folder: path, mode, and content or target.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", path, info.Mode())
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %q", text)
			b.WriteByte('\n')
			return err
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&b, " -> %s\n", target)
			return err
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// swap moves a file of the host away and puts a link to another place there.
func swap(t *testing.T, path, target string) {
	t.Helper()
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// TestCommitFollowsNoLink puts a link in the place of each component of a path that is
// written back. The mount is top/a/b, outside is a copy of top.
func TestCommitFollowsNoLink(t *testing.T) {
	for _, test := range []struct {
		swapped, links string // below top, and below outside
		early          bool   // before the guest does anything
		want           error
		changed        string // below top: where the file is that the guest changed
	}{
		{"", "", false, nil, "a/b/c/f"},
		{"a", "a", true, errMoved, "a.moved/b/c/f"},
		{"a", "a", false, errMoved, "a.moved/b/c/f"},
		{"a/b", "a/b", true, errMoved, "a/b.moved/c/f"},
		{"a/b", "a/b", false, errMoved, "a/b.moved/c/f"},
		{"a/b/c", "a/b/c", false, errCommit, ""},
		{"a/b/c/f", "a/b/c/f", false, nil, "a/b/c/f"},
		{"a/b/c/chmod", "a/b/c/chmod", false, errCommit, ""},
		{"a/b/c/gone", "a/b/c/gone", false, nil, "a/b/c/f"},
		{"a/b/d", "a/b/c", false, nil, "a/b/c/f"},
	} {
		t.Run(fmt.Sprintf("%s early=%v", test.swapped, test.early), func(t *testing.T) {
			top, outside := t.TempDir(), t.TempDir()
			for _, dir := range []string{top, outside} {
				for _, name := range []string{"f", "gone", "chmod"} {
					write(t, filepath.Join(dir, "a/b/c", name), "old")
				}
				write(t, filepath.Join(dir, "a/b/d/gone"), "old")
			}
			before := tree(t, outside)
			swapNow := func() {
				if test.swapped != "" {
					swap(t, filepath.Join(top, test.swapped), filepath.Join(outside, test.links))
				}
			}
			fs := newFS(t, Config{Mounts: []Mount{{Host: filepath.Join(top, "a/b"), Guest: "/m", Writable: true}}})
			c := as(fs, uint32(os.Getuid()), uint32(os.Getgid()))
			c.Cred.FSUID, c.Cred.Effective = 0, AllCaps
			if test.early {
				swapNow()
			}
			put(t, fs, c, "/m/c/f", "new")
			put(t, fs, c, "/m/c/made", "new")
			ok(t, fs.Unlink(c, nil, "/m/c/gone"))
			for path, mode := range map[string]uint32{"/m/c/chmod": 0o600, "/m/c": 0o700} {
				d, errno := fs.Lookup(c, nil, path, false)
				ok(t, errno)
				ok(t, d.Inode().Chmod(c, mode))
			}
			ok(t, fs.Unlink(c, nil, "/m/d/gone"))
			ok(t, fs.Rmdir(c, nil, "/m/d"))
			if !test.early {
				swapNow()
			}
			if err := fs.Commit(); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if after := tree(t, outside); after != before {
				t.Errorf("outside was\n%s\nand is\n%s", before, after)
			}
			if test.changed == "" {
				return
			}
			if text, err := os.ReadFile(filepath.Join(top, test.changed)); string(text) != "new" {
				t.Errorf("the file has %q, %v", text, err)
			}
		})
	}
}

// TestCommitOfFileFollowsNoLink is the same for a mount that is one file.
func TestCommitOfFileFollowsNoLink(t *testing.T) {
	for _, swapped := range []string{"a", "a/f"} {
		top, outside := t.TempDir(), t.TempDir()
		for _, dir := range []string{top, outside} {
			write(t, filepath.Join(dir, "a/f"), "old")
		}
		before := tree(t, outside)
		fs := newFS(t, Config{Mounts: []Mount{{Host: filepath.Join(top, "a/f"), Guest: "/f", Writable: true}}})
		c := as(fs, 0, 0)
		put(t, fs, c, "/f", "new")
		swap(t, filepath.Join(top, swapped), filepath.Join(outside, swapped))
		if err := fs.Commit(); !errors.Is(err, errMoved) {
			t.Error(err)
		}
		if after := tree(t, outside); after != before {
			t.Errorf("outside was\n%s\nand is\n%s", before, after)
		}
		moved := strings.Replace(filepath.Join(top, "a/f"), swapped, swapped+".moved", 1)
		if text, err := os.ReadFile(moved); string(text) != "new" {
			t.Errorf("the file has %q, %v", text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "old")
	fs := newFS(t, Config{Mounts: []Mount{{Host: path, Guest: "/f", Writable: true}}})
	put(t, fs, as(fs, 0, 0), "/f", "new")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := fs.Commit(); !errors.Is(err, errCommit) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("of a file that is gone: %v", err)
	}
}

// TestExportStaysInItsFolder: a link that is put in the folder's place during the run
// leads nowhere.
func TestExportStaysInItsFolder(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	fs := newFS(t, Config{})
	put(t, fs, as(fs, 0, 0), "/tmp/f", "text")
	to, err := OpenExport(filepath.Join(top, "export"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	swap(t, filepath.Join(top, "export"), outside)
	if err := fs.Export(to); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, outside); strings.Count(got, "\n") != 1 {
		t.Errorf("outside is\n%s", got)
	}
	if text, err := os.ReadFile(filepath.Join(top, "export.moved/tmp/f")); string(text) != "text" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestFewDescriptors: the host's limit bounds no guest.
func TestFewDescriptors(t *testing.T) {
	host := t.TempDir()
	const files = 60
	for i := range files {
		write(t, filepath.Join(host, fmt.Sprint(i), "deep/er/f"), fmt.Sprint(i))
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	}()
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m", Writable: true}}})
	c := as(fs, 0, 0)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)) + 8, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	var kept []*File
	for i := range files {
		f, errno := fs.Open(c, nil, fmt.Sprintf("/m/%d/deep/er/f", i), unix.O_RDWR, 0)
		ok(t, errno)
		kept = append(kept, f)
	}
	for i, f := range kept {
		b := make([]byte, 10)
		n, errno := f.Read(c, b)
		if ok(t, errno); string(b[:n]) != fmt.Sprint(i) {
			t.Errorf("file %d has %q", i, b[:n])
		}
		_, errno = f.Write(c, []byte("x"))
		ok(t, errno)
		f.Unref()
	}
	if err := fs.Commit(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(host, "7/deep/er/f")); string(text) != "7x" {
		t.Errorf("%q, %v", text, err)
	}
}
