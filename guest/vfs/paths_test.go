package vfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDefaultPaths: files that programs need are visible at the paths that the host's
// kernel would find it at, and nothing private is.
func TestDefaultPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/data", "mine")
	write(t, dir+"/../elsewhere", "not mine")
	fs := newFS(t, Config{Paths: DefaultPaths("bash", dir), Home: "/home/somebody", UID: 1000, GID: 1000})
	c := as(fs, 1000, 1000)
	for _, path := range []string{
		"/bin/sh", "/usr/bin/env", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "/etc/passwd",
		"/etc/nsswitch.conf", "/etc/ld.so.cache", dir + "/data", "/usr/share/zoneinfo", "/etc/localtime",
	} {
		if _, err := os.Stat(path); err != nil {
			continue // this host lacks it
		}
		d, errno := fs.Lookup(c, nil, path, true)
		if errno != 0 {
			t.Errorf("%s: %v", path, errno)
			continue
		}
		if want, err := filepath.EvalSymlinks(path); err == nil && d.Path() != want {
			t.Errorf("%s is %s, on the host %s", path, d.Path(), want)
		}
		if path[0] == '/' && d.Inode().IsRegular() {
			want, err := os.ReadFile(path)
			if err == nil && len(want) < 1<<16 && read(t, fs, c, path) != string(want) {
				t.Errorf("%s reads differently", path)
			}
		}
	}
	for _, path := range []string{
		"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/var/lib", "/var/log", "/srv",
		"/boot", "/home/nobody", "/proc", "/sys", "/dev/sda", "/dev/mem", "/dev/kmsg", dir + "/../elsewhere", "/mnt", "/opt",
	} {
		if _, errno := fs.Lookup(c, nil, path, true); errno != unix.ENOENT {
			t.Errorf("%s: %v, want ENOENT", path, errno)
		}
	}
	if got := names(t, fs, c, "/"); strings.Contains(got, "boot") || !strings.Contains(got, "tmp") {
		t.Errorf("the root holds %s", got)
	}
	for path, want := range map[string]uint32{
		"/tmp": 0o1777, "/var/tmp": 0o1777, "/dev/shm": 0o1777, "/run": 0o755, "/root": 0o700, "/home/somebody": 0o700, "/home": 0o755,
	} {
		d, errno := fs.Lookup(c, nil, path, true)
		if errno != 0 || d.Inode().Mode() != unix.S_IFDIR|want {
			t.Errorf("%s: %v, want a folder with mode %o", path, errno, want)
		}
	}
	put(t, fs, c, "/home/somebody/f", "x")
	put(t, fs, c, "/tmp/f", "x")
}

// TestLibrariesAreVisible: libraries that ldd lists are in the guest's tree.
func TestLibrariesAreVisible(t *testing.T) {
	out, err := exec.Command("ldd", "/bin/bash").Output()
	if err != nil {
		t.Skip(err)
	}
	fs := newFS(t, Config{Paths: DefaultPaths("/bin/bash", t.TempDir())})
	c := as(fs, 1000, 1000)
	found := 0
	for _, word := range strings.Fields(string(out)) {
		if word[0] != '/' {
			continue
		}
		found++
		if _, errno := fs.Lookup(c, nil, word, true); errno != 0 {
			t.Errorf("%s: %v", word, errno)
		}
	}
	if found == 0 {
		t.Error("ldd names no library")
	}
}

// TestProgramBehindLinks: a program that is reached through links outside of
// the default folders is visible with all of them.
func TestProgramBehindLinks(t *testing.T) {
	base := t.TempDir()
	write(t, base+"/opt/v2/bin/prog", "program")
	for link, text := range map[string]string{"opt/current": "v2", "prog": base + "/opt/current/bin/../bin/prog"} {
		if err := os.Symlink(text, base+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	write(t, base+"/opt/v2/secret", "private")
	work := t.TempDir()
	fs := newFS(t, Config{Paths: DefaultPaths(base+"/prog", work)})
	c := as(fs, 0, 0)
	if got := read(t, fs, c, base+"/prog"); got != "program" {
		t.Errorf("it reads %q", got)
	}
	if got := names(t, fs, c, base+"/opt/v2"); got != "bin" {
		t.Errorf("beside it are %q", got)
	}
}

// TestNamedPaths: what arguments name is visible, and nothing beside it.
func TestNamedPaths(t *testing.T) {
	base, work := t.TempDir(), t.TempDir()
	write(t, base+"/in", "named")
	write(t, base+"/other", "private")
	write(t, base+"/data/deep", "in a folder")
	relative, err := filepath.Rel(work, base+"/data")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"if=" + base + "/in", "/", "/etc", "/tmp", "/proc/self", filepath.Dir(work), work, "in", relative, relative, "/usr/bin/env", base + "/none", "s/a/b/"}
	paths := NamedPaths(args, work, "/home/somebody")
	if want := []string{base + "/in", base + "/data"}; !slices.Equal(paths, want) {
		t.Fatalf("the arguments name %q, not %q", paths, want)
	}
	fs := newFS(t, Config{Paths: append(DefaultPaths("sh", work), paths...)})
	c := as(fs, 0, 0)
	if got := read(t, fs, c, base+"/in") + read(t, fs, c, base+"/data/deep"); got != "namedin a folder" {
		t.Errorf("they have %q", got)
	}
	if got := names(t, fs, c, base); got != "data in" {
		t.Errorf("their folder has %q", got)
	}
	if _, errno := fs.Lookup(c, nil, base+"/other", true); errno != unix.ENOENT || !slices.Equal(fs.Unseen(), []string{base + "/other"}) {
		t.Errorf("a file beside them: %v; not seen: %q", errno, fs.Unseen())
	}
}

func TestRootFS(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/etc/passwd", "of the tree")
	if err := os.Symlink("/etc", root+"/conf"); err != nil {
		t.Fatal(err)
	}
	write(t, root+"/proc/fake", "never seen")
	extra := t.TempDir()
	write(t, extra+"/f", "mounted")
	fs := newFS(t, Config{RootFS: root, Mounts: []Mount{{Host: extra, Guest: "/conf/extra"}}})
	c := as(fs, 0, 0)
	if got := read(t, fs, c, "/conf/passwd"); got != "of the tree" {
		t.Errorf("passwd reads %q", got)
	}
	if got := read(t, fs, c, "/etc/extra/f"); got != "mounted" {
		t.Errorf("the mount reads %q", got)
	}
	if got := names(t, fs, c, "/"); got != "conf dev etc proc root run tmp var" {
		t.Errorf("the root holds %q", got)
	}
	if got := names(t, fs, c, "/etc"); got != "extra passwd" {
		t.Errorf("/etc holds %q", got)
	}
}

// TestMountOrder: later mounts cover earlier ones; a mount at the root keeps
// the guest's own folders.
func TestMountOrder(t *testing.T) {
	var dirs []string
	for _, name := range []string{"one", "two", "three"} {
		dir := t.TempDir()
		write(t, dir+"/"+name, name)
		dirs = append(dirs, dir)
	}
	fs := newFS(t, Config{Paths: []string{"/bin"}, Mounts: []Mount{
		{Host: dirs[0], Guest: "/a/b"}, {Host: dirs[1], Guest: "/a/b"}, {Host: dirs[0], Guest: "/x/y/"}, {Host: dirs[2], Guest: "//x"},
	}})
	c := as(fs, 0, 0)
	if got := names(t, fs, c, "/a/b"); got != "two" {
		t.Errorf("/a/b holds %q", got)
	}
	if got := names(t, fs, c, "/x"); got != "three" {
		t.Errorf("/x holds %q", got)
	}
	fs = newFS(t, Config{Paths: []string{"/bin"}, Mounts: []Mount{{Host: dirs[0], Guest: "/a"}, {Host: dirs[1], Guest: "/"}}})
	c = as(fs, 0, 0)
	if got := names(t, fs, c, "/"); got != "dev root run tmp two var" {
		t.Errorf("the root holds %q", got)
	}
	var paths []string
	for _, m := range fs.Mounts() {
		paths = append(paths, m.Path)
	}
	slices.Sort(paths)
	if got := strings.Join(paths, " "); got != "/ /dev /dev/mqueue /dev/pts /dev/shm" {
		t.Errorf("mount table %q", got)
	}
}
