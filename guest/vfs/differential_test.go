package vfs

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// The host's kernel is the oracle: random calls are made on a folder of the
// host and, in the guest, on a copy of it, and must have the same results. Then
// the guest's changes are written to the copy, which must equal the folder.

// populate makes the folder that both sides begin with.
func populate(t *rapid.T, root string) {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(root, 0o777))
	for _, dir := range []string{"a", "b", "a/b", "a/b/c"} {
		must(os.Mkdir(root+"/"+dir, 0o777))
		must(os.Chmod(root+"/"+dir, 0o777))
	}
	must(os.WriteFile(root+"/f", []byte("a file of the host"), 0o644))
	must(os.WriteFile(root+"/a/f", bytes.Repeat([]byte("0123456789abcdef"), 700), 0o666))
	must(os.WriteFile(root+"/a/b/g", nil, 0o600))
	must(os.Chmod(root+"/a/f", 0o666))
	must(os.Link(root+"/a/f", root+"/b/g"))
	must(os.Symlink("a/b", root+"/l"))
	must(os.Symlink("../f", root+"/b/l"))
	must(os.Symlink("/a/../b/l/", root+"/b/c"))
	must(os.Symlink("nowhere", root+"/a/l"))
	must(unix.Chmod(root+"/b", 0o1777))
}

// step is one call on both sides.
type step struct {
	name string
	run  func(s calls) string
}

// pair is the two sides and the files opened on both.
type pair struct {
	t     *rapid.T
	sides [2]calls
	fds   [][2]int
}

func result(errno unix.Errno, format string, args ...any) string {
	if errno != 0 {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprintf(format, args...)
}

// check makes a call on both sides.
func (p *pair) check(s step) {
	want, got := s.run(p.sides[0]), s.run(p.sides[1])
	p.t.Logf("%s: %.80s", s.name, want)
	if got != want {
		p.t.Fatalf("%s, the host says %s: %s", got, want, s.name)
	}
}

// both makes a step of a call that needs a description.
func (p *pair) both(name string, fds [2]int, run func(s calls, fd int) string) {
	p.check(step{name, func(s calls) string {
		if s == p.sides[0] {
			return run(s, fds[0])
		}
		return run(s, fds[1])
	}})
}

// statText is the part of a stat that is compared.
func statText(st unix.Stat_t) string {
	size := st.Size
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		size = 0
	}
	return fmt.Sprintf("mode %o uid %d gid %d nlink %d size %d", st.Mode, st.Uid, st.Gid, st.Nlink, size)
}

// genPath makes paths in and around the folder.
func genPath(t *rapid.T) string {
	n := rapid.IntRange(1, 4).Draw(t, "parts")
	var parts []string
	for range n {
		parts = append(parts, rapid.SampledFrom([]string{"a", "b", "c", "f", "g", "l", "a", "b", "f", "..", "."}).Draw(t, "part"))
	}
	path := strings.Join(parts, rapid.SampledFrom([]string{"/", "/", "/", "//"}).Draw(t, "separator"))
	return rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "start") + path + rapid.SampledFrom([]string{"", "", "", "", "/"}).Draw(t, "end")
}

// genOddPath makes mostly genPath, and sometimes an invalid path.
func genOddPath(t *rapid.T) string {
	switch rapid.IntRange(0, 40).Draw(t, "odd") {
	case 0:
		return ""
	case 1:
		return "/"
	case 2:
		return strings.Repeat("n", 256)
	case 3:
		return "a/" + strings.Repeat("n", 255)
	case 4:
		return strings.Repeat("a/../", 900)
	}
	return genPath(t)
}

var genMode = rapid.SampledFrom([]uint32{0o644, 0o600, 0o755, 0o777, 0o000, 0o444, 0o200, 0o4755, 0o2775, 0o1777, 0o2755, 0o6711})

func (p *pair) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"open":      p.open,
		"openAgain": p.open,
		"close": func(t *rapid.T) {
			if len(p.fds) == 0 {
				t.Skip()
			}
			p.drop(rapid.IntRange(0, len(p.fds)-1).Draw(t, "which"))
		},
		"read": p.onFD(func(t *rapid.T) (string, func(calls, int) string) {
			n, off := rapid.IntRange(0, 9000).Draw(t, "n"), genOffset(t)
			return fmt.Sprintf("read %d at %d", n, off), func(s calls, fd int) string {
				if st, _ := s.fstat(fd); st.Mode&unix.S_IFMT == unix.S_IFDIR && off == atPosition {
					return "" // the position may be one that cannot be read from
				}
				data, errno := s.read(fd, n, off)
				return result(errno, "%q", data)
			}
		}),
		"write": p.onFD(func(t *rapid.T) (string, func(calls, int) string) {
			data := bytes.Repeat([]byte(rapid.SampledFrom([]string{"", "x", "yz", "guest"}).Draw(t, "data")), rapid.SampledFrom([]int{1, 3, 2000}).Draw(t, "times"))
			off := genOffset(t)
			return fmt.Sprintf("write %d at %d", len(data), off), func(s calls, fd int) string {
				n, errno := s.write(fd, data, off)
				return result(errno, "%d", n)
			}
		}),
		"lseek": p.onFD(func(t *rapid.T) (string, func(calls, int) string) {
			off, whence := rapid.Int64Range(-10, 20000).Draw(t, "off"), rapid.IntRange(0, 5).Draw(t, "whence")
			return fmt.Sprintf("lseek %d %d", off, whence), func(s calls, fd int) string {
				if st, _ := s.fstat(fd); st.Mode&unix.S_IFMT == unix.S_IFDIR || whence == unix.SEEK_DATA || whence == unix.SEEK_HOLE {
					return "" // positions in folders and the size of holes are the file system's own
				}
				at, errno := s.lseek(fd, off, whence)
				return result(errno, "%d", at)
			}
		}),
		"ftruncate": p.onFD(func(t *rapid.T) (string, func(calls, int) string) {
			size := rapid.Int64Range(-1, 20000).Draw(t, "size")
			return fmt.Sprintf("ftruncate %d", size), func(s calls, fd int) string { return result(s.ftruncate(fd, size), "") }
		}),
		"fallocate": p.onFD(func(t *rapid.T) (string, func(calls, int) string) {
			mode := rapid.SampledFrom([]uint32{0, 1, 2, 3, 16, 17, 18, 0x100}).Draw(t, "mode")
			off, n := rapid.Int64Range(-1, 12000).Draw(t, "off"), rapid.Int64Range(0, 9000).Draw(t, "n")
			return fmt.Sprintf("fallocate %d %d %d", mode, off, n), func(s calls, fd int) string {
				return result(s.fallocate(fd, mode, off, n), "")
			}
		}),
		"fstat": p.onFD(func(*rapid.T) (string, func(calls, int) string) {
			return "fstat", func(s calls, fd int) string {
				st, errno := s.fstat(fd)
				return result(errno, "%s", statText(st))
			}
		}),
		"list": p.onFD(func(*rapid.T) (string, func(calls, int) string) {
			return "list", func(s calls, fd int) string {
				if st, _ := s.fstat(fd); st.Mode&unix.S_IFMT != unix.S_IFDIR {
					return ""
				}
				names, errno := s.list(fd)
				return result(errno, "%v", names)
			}
		}),
		"stat": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			follow := rapid.Bool().Draw(t, "follow")
			return fmt.Sprintf("stat %v", follow), func(s calls) string {
				st, errno := s.stat(path, follow)
				return result(errno, "%s", statText(st))
			}
		}),
		"mkdir": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			mode := genMode.Draw(t, "mode")
			return fmt.Sprintf("mkdir %o", mode), func(s calls) string { return result(s.mkdir(path, mode), "") }
		}),
		"rmdir": p.onPath(func(_ *rapid.T, path string) (string, func(calls) string) {
			return "rmdir", func(s calls) string { return result(s.rmdir(path), "") }
		}),
		"unlink": p.onPath(func(_ *rapid.T, path string) (string, func(calls) string) {
			return "unlink", func(s calls) string { return result(s.unlink(path), "") }
		}),
		"rename":      p.onPath(p.rename),
		"renameAgain": p.onPath(p.rename),
		"link": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			to, follow := genOddPath(t), rapid.Bool().Draw(t, "follow")
			return fmt.Sprintf("link to %q %v", to, follow), func(s calls) string { return result(s.link(path, to, follow), "") }
		}),
		"symlink": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			text := genOddPath(t)
			return fmt.Sprintf("symlink %q", text), func(s calls) string { return result(s.symlink(text, path), "") }
		}),
		"readlink": p.onPath(func(_ *rapid.T, path string) (string, func(calls) string) {
			return "readlink", func(s calls) string {
				text, errno := s.readlink(path)
				return result(errno, "%q", text)
			}
		}),
		"mknod": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			mode := rapid.SampledFrom([]uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFDIR, unix.S_IFLNK}).Draw(t, "type") | 0o640
			return fmt.Sprintf("mknod %o", mode), func(s calls) string { return result(s.mknod(path, mode), "") }
		}),
		"chmod": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			mode := genMode.Draw(t, "mode")
			return fmt.Sprintf("chmod %o", mode), func(s calls) string { return result(s.chmod(path, mode), "") }
		}),
		"chown": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			ids := rapid.SampledFrom([]uint32{0, 1000, 1001, KeepID, KeepID})
			uid, gid, follow := ids.Draw(t, "uid"), ids.Draw(t, "gid"), rapid.Bool().Draw(t, "follow")
			return fmt.Sprintf("chown %d %d %v", int32(uid), int32(gid), follow), func(s calls) string {
				return result(s.chown(path, uid, gid, follow), "")
			}
		}),
		"utimens": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			nsec := rapid.SampledFrom([]int64{0, 5, unix.UTIME_NOW, unix.UTIME_OMIT, 1e9, -1})
			a, m := nsec.Draw(t, "atime"), nsec.Draw(t, "mtime")
			return fmt.Sprintf("utimens %d %d", a, m), func(s calls) string {
				errno := s.utimens(path, unix.Timespec{Sec: 1e9, Nsec: a}, unix.Timespec{Sec: 1e9, Nsec: m})
				if st, e := s.stat(path, true); errno == 0 && e == 0 && m < 1e9 {
					return fmt.Sprint(st.Mtim)
				}
				return result(errno, "")
			}
		}),
		"truncate": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			size := rapid.Int64Range(-1, 20000).Draw(t, "size")
			return fmt.Sprintf("truncate %d", size), func(s calls) string { return result(s.truncate(path, size), "") }
		}),
		"access": p.onPath(func(t *rapid.T, path string) (string, func(calls) string) {
			mask := rapid.Uint32Range(0, 7).Draw(t, "mask")
			return fmt.Sprintf("access %d", mask), func(s calls) string { return result(s.access(path, mask), "") }
		}),
		"snapshot": func(*rapid.T) {
			// The guest continues from a copy of itself.
			old := p.sides[1].(*guest)
			p.sides[1] = deepcopy.Copy(deepcopy.New(), old)
			old.fs.ram.NextGeneration()
			deepcopy.Release(old)
		},
		"as": func(t *rapid.T) {
			uid := rapid.SampledFrom([]uint32{0, 1000, 1000, 1001}).Draw(t, "uid")
			for _, s := range p.sides {
				s.as(uid)
			}
		},
	}
}

func (p *pair) rename(t *rapid.T, path string) (string, func(calls) string) {
	to, flags := genOddPath(t), rapid.SampledFrom([]uint32{0, 0, 0, 1, 2, 3, 8}).Draw(t, "flags")
	return fmt.Sprintf("rename to %q %d", to, flags), func(s calls) string { return result(s.rename(path, to, flags), "") }
}

func genOffset(t *rapid.T) int64 {
	if rapid.Bool().Draw(t, "at position") {
		return atPosition
	}
	return rapid.Int64Range(0, 12000).Draw(t, "offset")
}

// onFD makes an action on a random open description.
func (p *pair) onFD(gen func(*rapid.T) (string, func(calls, int) string)) func(*rapid.T) {
	return func(t *rapid.T) {
		if len(p.fds) == 0 {
			t.Skip()
		}
		fds := rapid.SampledFrom(p.fds).Draw(t, "fd")
		name, run := gen(t)
		p.both(name, fds, run)
	}
}

// onPath makes an action on a random path.
func (p *pair) onPath(gen func(*rapid.T, string) (string, func(calls) string)) func(*rapid.T) {
	return func(t *rapid.T) {
		path := genOddPath(t)
		name, run := gen(t, path)
		p.check(step{fmt.Sprintf("%s %q", name, path), run})
	}
}

func (p *pair) open(t *rapid.T) {
	path := genOddPath(t)
	flags := rapid.SampledFrom([]int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, 3}).Draw(t, "access")
	for _, f := range []int{
		unix.O_CREAT, unix.O_CREAT, unix.O_EXCL, unix.O_TRUNC, unix.O_APPEND, unix.O_DIRECTORY, unix.O_NOFOLLOW, unix.O_PATH,
		unix.O_TMPFILE, unix.O_NOATIME,
	} {
		if rapid.IntRange(0, 4).Draw(t, "flag") == 0 {
			flags |= f
		}
	}
	mode := genMode.Draw(t, "mode")
	var fds [2]int
	var texts [2]string
	for i, s := range p.sides {
		var errno unix.Errno
		if fifoAt(s, path, flags) {
			texts[i] = "pipe"
			continue
		}
		fds[i], errno = s.open(path, flags, mode)
		texts[i] = result(errno, "ok")
	}
	p.t.Logf("open %q %#o %o: %s", path, flags, mode, texts[0])
	if texts[0] != texts[1] {
		p.t.Fatalf("open %q %#o %o: %s, the host says %s", path, flags, mode, texts[1], texts[0])
	}
	if texts[0] == "ok" {
		p.fds = append(p.fds, fds)
		if len(p.fds) > 8 {
			p.drop(0)
		}
	}
}

// fifoAt reports whether a call would open a pipe, which the kernel has to finish.
func fifoAt(s calls, path string, flags int) bool {
	st, errno := s.stat(path, flags&unix.O_NOFOLLOW == 0)
	return errno == 0 && st.Mode&unix.S_IFMT == unix.S_IFIFO && flags&unix.O_PATH == 0
}

func (p *pair) drop(i int) {
	for side, s := range p.sides {
		s.close(p.fds[i][side])
	}
	p.fds = append(p.fds[:i:i], p.fds[i+1:]...)
}

func (p *pair) dropAll() {
	for len(p.fds) > 0 {
		p.drop(0)
	}
}

// difference lists the lines that only one of two texts has.
func difference(got, want string) string {
	gots, wants := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	var b strings.Builder
	for _, l := range gots {
		if !slices.Contains(wants, l) {
			b.WriteString("guest: " + l)
		}
	}
	for _, l := range wants {
		if !slices.Contains(gots, l) {
			b.WriteString("host:  " + l)
		}
	}
	return b.String()
}

// setting reports whether the host has fs.protected_NAME on.
func setting(name string) bool {
	text, err := os.ReadFile("/proc/sys/fs/protected_" + name)
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

func TestAgainstHost(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("comparing with the host's kernel needs root, for chroot and setfsuid")
	}
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer ram.Close()
	rapid.Check(t, func(t *rapid.T) {
		dirs := [2]string{}
		for i := range dirs {
			dir, err := os.MkdirTemp("", "vfs")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			populate(t, dir)
			dirs[i] = dir
		}
		fs, err := New(Config{RAM: ram, Mounts: []Mount{{Host: dirs[1], Guest: "/m", Writable: true}}, FileTimeNS: epoch})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = fs.Close() }()
		fs.Clock = &tick{epoch}
		fs.protectedHardlinks, fs.protectedSymlinks = setting("hardlinks"), setting("symlinks")
		host, err := newNative(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer host.stop()
		g := newGuest(fs, "/m")
		p := &pair{t: t, sides: [2]calls{host, g}}
		defer p.dropAll()
		for range 4 {
			t.Repeat(p.actions())
		}
		p.dropAll()
		fs = p.sides[1].(*guest).fs
		if err := fs.Commit(); err != nil {
			t.Fatal(err)
		}
		if want, got := hostTree(t, dirs[0]), hostTree(t, dirs[1]); got != want {
			t.Fatalf("after Commit the copy differs:\n%s", difference(got, want))
		}
		if err := fs.Close(); err != nil {
			t.Fatal(err)
		}
		deepcopy.Release(p.sides[1])
		if used := ram.Used(); used != 0 {
			t.Fatalf("%d pages are never released", used)
		}
	})
}
