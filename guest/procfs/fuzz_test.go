package procfs

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/vfs"
)

// FuzzStore writes to the files that can be written. A write that succeeds leaves a valid value,
// which the file shows; one that fails leaves the file as it was.
func FuzzStore(f *testing.F) {
	paths := []string{
		"/proc/self/comm", "/proc/self/oom_score_adj", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/fs/lease-break-time",
	}
	for i, text := range []string{"name\n", "-1000", "3", "0x10\n", "", "\x00", "99999999999999999999"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		fs, k, c := setUp(t)
		root := *c
		root.Cred = vfs.NewCred(0, 0)
		path := paths[int(which)%len(paths)]
		before := cat(t, fs, &root, path)
		file, errno := fs.Open(&root, nil, path, unix.O_WRONLY|unix.O_TRUNC, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		n, errno := file.Write(&root, []byte(text))
		file.Unref()
		after := cat(t, fs, &root, path)
		switch {
		case errno != 0 && after != before:
			t.Errorf("%s is %q after a write that failed, was %q", path, after, before)
		case errno == 0 && n != len(text):
			t.Errorf("%d of %d bytes are written", n, len(text))
		}
		if path == "/proc/self/comm" {
			if len(after) > 16 {
				t.Errorf("the name %q is too long", after)
			}
			return
		}
		if _, err := strconv.Atoi(strings.TrimSpace(after)); err != nil {
			t.Errorf("%s is %q", path, after)
		}
		if s := k.processes[1].score; s < -1000 || s > 1000 {
			t.Errorf("the score is %d", s)
		}
		if k.scope < 0 || k.scope > strictestScope {
			t.Errorf("the scope is %d", k.scope)
		}
	})
}
