package vfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// replaceFile puts another file in the place of one, as package managers do.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// rewriteFile changes a file itself. Its time differs even where the host's clock is
// coarse.
func rewriteFile(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text)
	if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
}

// pagesOf is text of n pages, each of its own.
func pagesOf(letter byte, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(string(rune(letter))+string(rune('0'+i)), 2048))
	}
	return b.String()
}

// closeHandles makes the host open everything again.
func (h *Host) closeHandles() {
	h.files.closeAll()
	h.dirs.closeAll()
}

// TestHashIsOfWhatWasRead: a host file changes after a guest has read part of it. The
// guest either continues to read the old contents, and the manifest has its hash,
// or it gets an error and the run has a sentence that names the file. It is read to the
// end in any case if the file is small enough to be kept.
func TestHashIsOfWhatWasRead(t *testing.T) {
	old, other := pagesOf('a', 3)+"end", pagesOf('b', 3)+"end"
	half := old[:2*4096] + other[2*4096:]
	for _, test := range []struct {
		name   string
		change func(t *testing.T, fs *FS, path string)
		fails  bool // bytes that the guest has yet to read are gone
	}{
		{"nothing", func(*testing.T, *FS, string) {}, false},
		{"replaced", func(t *testing.T, _ *FS, path string) { replaceFile(t, path, other) }, false},
		{"removed", func(t *testing.T, _ *FS, path string) { _ = os.Remove(path) }, false},
		{"touched", func(t *testing.T, _ *FS, path string) { rewriteFile(t, path, old) }, false},
		{"longer", func(t *testing.T, _ *FS, path string) { rewriteFile(t, path, old+"more") }, false},
		{"rewritten", func(t *testing.T, _ *FS, path string) { rewriteFile(t, path, other) }, true},
		{"rewritten at the end", func(t *testing.T, _ *FS, path string) { rewriteFile(t, path, half) }, true},
		{"shorter", func(t *testing.T, _ *FS, path string) { rewriteFile(t, path, old[:5000]) }, true},
		{"replaced, opened again", func(t *testing.T, fs *FS, path string) {
			fs.host.closeHandles()
			replaceFile(t, path, other)
		}, true},
		{"replaced by the same, opened again", func(t *testing.T, fs *FS, path string) {
			fs.host.closeHandles()
			replaceFile(t, path, old)
		}, false},
		{"removed, opened again", func(t *testing.T, fs *FS, path string) {
			fs.host.closeHandles()
			_ = os.Remove(path)
		}, true},
	} {
		for kept, keep := range map[string]int64{"kept": int64(len(old)), "too large to be kept": int64(len(old)) - 1} {
			t.Run(test.name+", "+kept, func(t *testing.T) {
				host := t.TempDir()
				write(t, host+"/f", old)
				fs, err := New(Config{RAM: testRAM(t), Mounts: []Mount{{Host: host, Guest: "/m"}}})
				if err != nil {
					t.Fatal(err)
				}
				fs.host.keep = keep
				c := as(fs, 0, 0)
				f, errno := fs.Open(c, nil, "/m/f", unix.O_RDONLY, 0)
				ok(t, errno)
				got := make([]byte, len(old))
				n, errno := f.Read(c, got[:10])
				ok(t, errno)
				test.change(t, fs, host+"/f")
				for errno == 0 && n < len(old) {
					var more int
					more, errno = f.Read(c, got[n:min(n+3000, len(got))])
					n += more
				}
				if string(got[:n]) != old[:n] {
					t.Errorf("the guest has read bytes that are not the first ones")
				}
				inputs, err := fs.Inputs(true)
				if test.fails && kept != "kept" {
					if errno != unix.EIO || !errors.Is(err, errChanged) || !strings.Contains(err.Error(), host+"/f") {
						t.Errorf("read: %v, manifest: %v", errno, err)
					}
					return
				}
				want := []Input{{host + "/f", fmt.Sprintf("%x", sha256.Sum256([]byte(old)))}}
				if errno != 0 || err != nil || !slices.Equal(inputs, want) {
					t.Errorf("read: %v, manifest: %v, %v, want %v", errno, inputs, err, want)
				}
				f.Unref()
				if err := fs.Close(); err != nil {
					t.Errorf("Close says %v", err)
				}
			})
		}
	}
}

// TestChangedBeforeTheFirstByte: the size of a file, which the guest has seen, must be
// of the file that it reads, be the same as when it was opened.
func TestChangedBeforeTheFirstByte(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path, text string){"replaced": replaceFile, "rewritten": rewriteFile} {
		for kept, keep := range map[string]int64{"kept": 4, "too large to be kept": 3} {
			t.Run(name+", "+kept, func(t *testing.T) {
				host := t.TempDir()
				write(t, host+"/f", "text")
				fs, err := New(Config{RAM: testRAM(t), Mounts: []Mount{{Host: host, Guest: "/m"}}})
				if err != nil {
					t.Fatal(err)
				}
				fs.host.keep = keep
				c := as(fs, 0, 0)
				f, errno := fs.Open(c, nil, "/m/f", unix.O_RDONLY, 0)
				ok(t, errno)
				change(t, host+"/f", "TEXT")
				buf := make([]byte, 10)
				n, errno := f.Read(c, buf)
				inputs, err := fs.Inputs(true)
				f.Unref()
				closed := fs.Close()
				if name == "rewritten" && kept != "kept" {
					if errno != unix.EIO || !errors.Is(err, errChanged) || !errors.Is(closed, errChanged) {
						t.Errorf("read %d, %v; the manifest: %v; Close says %v", n, errno, err, closed)
					}
					return
				}
				want := []Input{{host + "/f", fmt.Sprintf("%x", sha256.Sum256([]byte("text")))}}
				if string(buf[:n]) != "text" || errno != 0 || err != nil || !slices.Equal(inputs, want) || closed != nil {
					t.Errorf("read %q, %v; the manifest: %v, %v; Close says %v", buf[:n], errno, inputs, err, closed)
				}
			})
		}
	}
}

// TestManyFilesAreReplaced: more files than handles are opened, then all are replaced.
func TestManyFilesAreReplaced(t *testing.T) {
	host := t.TempDir()
	path := func(i int) string { return fmt.Sprintf("/f%03d", i) }
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	var files []*File
	for i := range maxHostFiles + 10 {
		write(t, host+path(i), path(i))
		f, errno := fs.Open(c, nil, "/m"+path(i), unix.O_RDONLY, 0)
		ok(t, errno)
		files = append(files, f)
	}
	for i := range files {
		replaceFile(t, host+path(i), "another")
	}
	for i, f := range files {
		buf := make([]byte, 10)
		if n, errno := f.Read(c, buf); errno != 0 || string(buf[:n]) != path(i) {
			t.Errorf("%s is %q, %v", path(i), buf[:n], errno)
		}
		f.Unref()
	}
}

// TestLinkIsReplaced: a link of the host is another one when the guest reads it than
// when it was found.
func TestLinkIsReplaced(t *testing.T) {
	host := t.TempDir()
	if err := os.Symlink("f", host+"/link"); err != nil {
		t.Fatal(err)
	}
	fs, err := New(Config{RAM: testRAM(t), Mounts: []Mount{{Host: host, Guest: "/m"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := as(fs, 0, 0)
	d, errno := fs.Lookup(c, nil, "/m/link", false)
	ok(t, errno)
	if err := errors.Join(os.Symlink("other", host+"/new"), os.Rename(host+"/new", host+"/link")); err != nil {
		t.Fatal(err)
	}
	if to, errno := d.Inode().linkText(c); errno != unix.EIO {
		t.Errorf("the link leads to %q, %v", to, errno)
	}
	if err := fs.Close(); !errors.Is(err, errChanged) {
		t.Errorf("Close says %v", err)
	}
}

// TestFilesThatAreNoInput: the guest has found a file, and asked for nothing in it.
func TestFilesThatAreNoInput(t *testing.T) {
	host := t.TempDir()
	write(t, host+"/f", "text")
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/m/f", unix.O_RDONLY, 0)
	ok(t, errno)
	rewriteFile(t, host+"/f", "other text")
	f.Unref()
	if inputs, err := fs.Inputs(true); err != nil || len(inputs) != 0 {
		t.Errorf("the manifest: %v, %v", inputs, err)
	}
}

// TestCopiesReadTheSameBytes: copies of a file system share the hashes, also when
// one of them alone reads again.
func TestCopiesReadTheSameBytes(t *testing.T) {
	host := t.TempDir()
	old := pagesOf('a', 2)
	write(t, host+"/f", old)
	fs := newFS(t, Config{Mounts: []Mount{{Host: host, Guest: "/m"}}})
	c := as(fs, 0, 0)
	f, errno := fs.Open(c, nil, "/m/f", unix.O_RDONLY, 0)
	ok(t, errno)
	buf := make([]byte, 5)
	_, errno = f.Read(c, buf)
	ok(t, errno)
	fs.ram.NextGeneration()
	copied := deepcopy.Copy(deepcopy.New(), f)
	replaceFile(t, host+"/f", pagesOf('b', 2))
	for _, g := range []*File{f, copied} {
		rest := make([]byte, len(old))
		n, errno := g.Read(c, rest)
		if errno != 0 || string(rest[:n]) != old[5:] {
			t.Errorf("read %d bytes, %v", n, errno)
		}
		inputs, err := g.Inode().fs.Inputs(true)
		if want := []Input{{host + "/f", fmt.Sprintf("%x", sha256.Sum256([]byte(old)))}}; err != nil || !slices.Equal(inputs, want) {
			t.Errorf("the manifest: %v, %v, want %v", inputs, err, want)
		}
	}
}

// TestStdinFileIsHashedAsRead: likewise for standard input from a file.
func TestStdinFileIsHashedAsRead(t *testing.T) {
	for _, pages := range []int{2, maxKeptFile/4096 + 1} {
		old := pagesOf('a', pages)
		for _, test := range []struct {
			name   string
			change func(t *testing.T, path string)
			fails  bool
		}{
			{"replaced", func(t *testing.T, path string) { replaceFile(t, path, "x") }, false},
			{"longer", func(t *testing.T, path string) { rewriteFile(t, path, old+"more") }, false},
			{"rewritten", func(t *testing.T, path string) { rewriteFile(t, path, pagesOf('b', pages)) }, true},
			{"shorter", func(t *testing.T, path string) { rewriteFile(t, path, "x") }, true},
		} {
			t.Run(fmt.Sprintf("%s, %d pages", test.name, pages), func(t *testing.T) {
				path := t.TempDir() + "/in"
				write(t, path, old)
				in, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				fs := newFS(t, Config{})
				c := as(fs, 0, 0)
				data, err := NewStdin(in)
				if err != nil {
					t.Fatal(err)
				}
				f := fs.OpenStdin(data)
				got := make([]byte, len(old))
				n, errno := f.Read(c, got[:1])
				ok(t, errno)
				test.change(t, path)
				more, errno := f.Read(c, got[n:])
				inputs, err := fs.Inputs(true)
				if test.fails && pages > 2 {
					if errno != unix.EIO && n+more == len(old) || string(got[:n+more]) != old[:n+more] || !errors.Is(err, errChanged) || !strings.Contains(err.Error(), path) {
						t.Errorf("read %d, %v; the manifest: %v", more, errno, err)
					}
					return
				}
				want := []Input{{"-", fmt.Sprintf("%x", sha256.Sum256([]byte(old)))}}
				if errno != 0 || string(got) != old || err != nil || !slices.Equal(inputs, want) {
					t.Errorf("read %d, %v; the manifest: %v, %v, want %v", more, errno, inputs, err, want)
				}
			})
		}
	}
}

// TestPiecesOfAFile reads every piece of a file by its checksums.
func TestPiecesOfAFile(t *testing.T) {
	text := pagesOf('a', 3) + "end"
	r := strings.NewReader(text)
	c, err := readContents(r, int64(len(text)))
	if err != nil || c.sha256 != fmt.Sprintf("%x", sha256.Sum256([]byte(text))) {
		t.Fatalf("hash %s, %v", c.sha256, err)
	}
	marks := []int{0, 1, 4095, 4096, 4097, 8191, 8192, 12287, 12288, 12289, 12291, 12292, 20000}
	for _, from := range marks {
		for _, to := range marks {
			if to < from {
				continue
			}
			got := []byte(strings.Repeat("x", to-from))
			want := make([]byte, to-from)
			copy(want, text[min(from, len(text)):])
			if err := c.readAt(r, got, int64(from)); err != nil || string(got) != string(want) {
				t.Errorf("bytes %d to %d: %v", from, to, err)
			}
		}
	}
	if _, err := readContents(r, int64(len(text))+1); !errors.Is(err, errOtherBytes) {
		t.Errorf("a file that is too short: %v", err)
	}
}
