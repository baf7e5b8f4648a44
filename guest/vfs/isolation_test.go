package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoEscape lays traps in a mounted folder; nothing outside of it may be
// seen or changed.
func TestNoEscape(t *testing.T) {
	base := t.TempDir()
	secret := base + "/secret"
	write(t, secret+"/key", "SECRET")
	host := base + "/data"
	write(t, host+"/sub/file", "visible")
	for link, text := range map[string]string{
		"abs": secret + "/key", "absdir": secret, "rel": "../secret/key", "reldir": "../secret", "root": "/",
		"sub/up": "../../secret/key", "many": strings.Repeat("../", 40) + strings.TrimPrefix(secret, "/") + "/key",
		"proc": "/proc/self/root" + secret + "/key", "fd": "/proc/self/fd/3", "cwd": "/proc/self/cwd/../secret/key",
	} {
		if err := os.Symlink(text, host+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/data", Writable: true}}, Paths: []string{host}})
	c := as(fs, 0, 0)
	for _, path := range []string{
		"/data/abs", "/data/absdir/key", "/data/rel", "/data/reldir/key", "/data/sub/up", "/data/many", "/data/proc",
		"/data/fd", "/data/cwd", "/data/root" + secret + "/key", "/data/../secret/key", "/data/sub/../../secret/key",
		secret, secret + "/key", filepath.Dir(secret) + "/./secret/key", host + "/rel", host + "/../secret/key",
		"/etc/shadow", "/home", "/boot", "/var/log", "/root/.ssh", "/data/.." + secret + "/key",
	} {
		if f, errno := fs.Open(c, nil, path, unix.O_RDONLY, 0); errno != unix.ENOENT {
			t.Errorf("%s: %v, want ENOENT", path, errno)
			if errno == 0 {
				f.Unref()
			}
		}
	}
	put(t, fs, c, "/data/sub/up2", "x")
	for _, path := range []string{"/data/abs", "/data/rel", "/data/many", "/data/sub/up"} {
		// The link's own folder may exist in the guest: then the file is made there.
		f, errno := fs.Open(c, nil, path, unix.O_WRONLY|unix.O_CREAT, 0o600)
		if errno == 0 {
			_, _ = f.Write(c, []byte("of the guest"))
			f.Unref()
		}
	}
	ok(t, fs.Rename(c, nil, "/data/absdir", nil, "/data/sub/moved", 0))
	ok(t, fs.Unlink(c, nil, "/data/reldir"))
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(secret + "/key"); err != nil || string(data) != "SECRET" {
		t.Errorf("the secret became %q, %v", data, err)
	}
	if list, err := os.ReadDir(secret); err != nil || len(list) != 1 {
		t.Errorf("the secret folder holds %v, %v", list, err)
	}
}

// TestHostCannotBeSwapped replaces folders and files of the host by links while
// the guest runs: the guest gets an error, not the targets of the links, and Close
// reports the change.
func TestHostCannotBeSwapped(t *testing.T) {
	for _, test := range []struct {
		name, path string
		swap       func(t *testing.T, host, secret string)
	}{
		{"folder", "/m/d/f", func(t *testing.T, host, secret string) { swapLink(t, host+"/d", secret) }},
		{"file", "/m/d/f", func(t *testing.T, host, secret string) { swapLink(t, host+"/d/f", secret+"/f") }},
		{"content", "/m/d/f", func(t *testing.T, host, _ string) { write(t, host+"/d/f", "something else") }},
		{"pipe", "/m/d/f", func(t *testing.T, host, _ string) {
			if err := errors.Join(os.Remove(host+"/d/f"), unix.Mkfifo(host+"/d/f", 0o666)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			host, secret := t.TempDir(), t.TempDir()
			write(t, host+"/d/f", "text")
			write(t, secret+"/f", "SECRET")
			fs, err := New(Config{RAM: testRAM(t), Mounts: []Mount{{Host: host, Guest: "/m"}}})
			if err != nil {
				t.Fatal(err)
			}
			c := as(fs, 0, 0)
			_, errno := fs.Lookup(c, nil, test.path, true)
			ok(t, errno)
			fs.host.dirs.closeAll()
			test.swap(t, host, secret)
			if _, errno := fs.Open(c, nil, test.path, unix.O_RDONLY, 0); errno != unix.EIO {
				t.Errorf("open: %v, want EIO", errno)
			}
			if err := fs.Close(); !errors.Is(err, errChanged) {
				t.Errorf("Close says %v", err)
			}
		})
	}
}

func swapLink(t *testing.T, path, to string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

// TestSpecialFilesOfHost: pipes and sockets of the host are the guest's own
// objects, and opening one never touches the host's.
func TestSpecialFilesOfHost(t *testing.T) {
	host := t.TempDir()
	if err := unix.Mkfifo(host+"/pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(host+"/socket", unix.S_IFSOCK|0o666, 0); err != nil {
		t.Fatal(err)
	}
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/m/pipe", unix.O_RDONLY, 0)
	if errno != 0 || f.Impl != nil || f.Inode().Object != nil {
		t.Errorf("pipe: %v", errno)
	}
	f.Unref()
	if _, errno := fs.Open(c, nil, "/m/socket", unix.O_RDWR, 0); errno != unix.ENXIO {
		t.Errorf("socket: %v", errno)
	}
	if os.Getuid() == 0 {
		if err := unix.Mknod(host+"/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Skip(err)
		}
		if _, errno := fs.Open(c, nil, "/m/zero", unix.O_RDONLY, 0); errno != unix.EACCES {
			t.Errorf("a device of the host: %v", errno)
		}
	}
}

// TestWritesStay: without :rw nothing of the host changes, whatever the guest
// does and however the run ends.
func TestWritesStay(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/d/f", "text")
	write(t, host+"/g", "more")
	before := hostTree(t, host)
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	put(t, fs, c, "/m/d/f", "changed")
	put(t, fs, c, "/m/new", "made")
	ok(t, fs.Unlink(c, nil, "/m/g"))
	ok(t, fs.Rename(c, nil, "/m/d", nil, "/m/e", 0))
	ok(t, fs.Symlink(c, "/m/e", nil, "/m/link"))
	d, errno := fs.Lookup(c, nil, "/m/e/f", true)
	ok(t, errno)
	ok(t, d.Inode().Chmod(c, 0o777))
	if err := fs.Commit(); err != nil {
		t.Fatal(err)
	}
	if after := hostTree(t, host); after != before {
		t.Errorf("the host's folder became\n%s, was\n%s", after, before)
	}
	left, err := fs.Left()
	if want := "/m/e/f /m/link /m/new"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("left are %v, %v, want %s", left, err, want)
	}
}

func TestMountErrors(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/d/f", "text")
	for _, test := range []struct {
		cfg  Config
		want error
	}{
		{Config{Mounts: []Mount{{Host: host + "/none", Guest: "/m"}}}, errMountOpen},
		{Config{Mounts: []Mount{{Host: host, Guest: "m"}}}, errMountPath},
		{Config{Mounts: []Mount{{Host: "/dev/null", Guest: "/m"}}}, errMountKind},
		{Config{Mounts: []Mount{{Host: host + "/d/f", Guest: "/"}}}, errMountKind},
		{Config{Mounts: []Mount{{Host: host, Guest: "/proc/x"}}}, errMountOwn},
		{Config{Mounts: []Mount{{Host: host, Guest: "/dev"}}}, errMountOwn},
		{Config{Mounts: []Mount{{host, "/a", true}, {host + "/d", "/b", true}}}, errMountOverlap},
		{Config{Mounts: []Mount{{host + "/d", "/a", true}, {host, "/b", true}}}, errMountOverlap},
		{Config{Mounts: []Mount{{host, "/a", true}, {host, "/b", false}}}, nil},
		{Config{RootFS: host + "/none"}, errRoot},
		{Config{RootFS: host + "/d/f"}, errRoot},
	} {
		test.cfg.RAM = testRAM(t)
		fs, err := New(test.cfg)
		if (test.want == nil) != (err == nil) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%+v: %v, want %v", test.cfg.Mounts, err, test.want)
		}
		if fs != nil {
			_ = fs.Close()
		}
	}
}
