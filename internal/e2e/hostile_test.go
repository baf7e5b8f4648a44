package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// secretText is a text that no guest may ever see.
const secretText = "the host's secret"

// escapes are the lines of testdata/escape.c that do not say ENOENT, which is
// the required result of every way to the secret.
var escapes = map[string]string{
	"long":                          "ENAMETOOLONG",
	"exe":                           "ENOTDIR",
	"home":                          "ENOENT",
	"write the secret":              "ENOENT",
	"unlink in the read-only mount": "ok",
	"rename in the read-only mount": "ok",
	"chmod in the read-only mount":  "ok",
	"the written file":              "opened, 8 bytes: changed",
	"connect to the host":           "ECONNREFUSED",
	"connect to the host's socket":  "ECONNREFUSED",
	"raw socket":                    "EPERM",
	"packet socket":                 "EAFNOSUPPORT",
	"block device":                  "EPERM",
	"mount":                         "EPERM",
	"ptrace":                        "EPERM",
	"memory of process 1":           "ESRCH",
	// Process 1 and the parent are the guest's own: they have no memory and run nothing.
	"heddle's environment": "opened, 0 bytes: ",
	"kill process 1":       "ok",
	"kill the parent":      "ok",
	"module":               "EPERM",
	"reboot":               "EPERM",
}

// TestEscapes runs a program that tries to get outside of its root folder, and
// checks that it got ENOENT and the like, and that the host is as it was.
func TestEscapes(t *testing.T) {
	program := compile(t, "escape")
	base := t.TempDir()
	outside, inside, readOnly := filepath.Join(base, "outside"), filepath.Join(base, "inside"), filepath.Join(base, "ro")
	writeFile(t, filepath.Join(outside, "key"), []byte(secretText), 0o644)
	writeFile(t, filepath.Join(inside, "inside"), []byte("inside"), 0o644)
	writeFile(t, filepath.Join(readOnly, "file"), []byte("file"), 0o644)
	writeFile(t, filepath.Join(readOnly, "other"), []byte("other"), 0o644)
	key := filepath.Join(outside, "key")
	for name, text := range map[string]string{
		"absolute": key, "relative": "../outside/key", "folder": outside, "root": "/", "chain": "host-relative",
		"through-root": "/proc/self/root" + key, "through-fd": "/proc/self/fd/3", "dots": strings.Repeat("../", 100) + key[1:],
	} {
		if err := os.Symlink(text, filepath.Join(inside, "host-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	local, err := net.Listen("unix", filepath.Join(inside, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	before := listing(t, base)
	port := listener.Addr().(*net.TCPAddr).Port
	for _, flags := range [][]string{
		{"--quiet", "--mount", readOnly + ":/ro"},
		{"--quiet", "--mount", readOnly + ":/ro", "--mount", inside + ":/elsewhere"},
	} {
		o := run(t, inside, flags, program, "folder:"+outside, fmt.Sprint(port)) // a plain name would show the folder to it
		if o.status != 0 || o.stderr != "" {
			t.Fatalf("heddle %q: %v", flags, o)
		}
		if strings.Contains(o.stdout, secretText) {
			t.Fatalf("heddle %q: the secret was seen: %v", flags, o)
		}
		checkEscapes(t, o.stdout)
		if after := listing(t, base); after != before {
			t.Errorf("heddle %q: the host was changed:\nbefore:\n%s\nafter:\n%s", flags, before, after)
		}
	}
}

func checkEscapes(t *testing.T, stdout string) {
	t.Helper()
	seen := 0
	for _, line := range strings.FieldsFunc(stdout, func(r rune) bool { return r == '\n' }) {
		how, got, _ := strings.Cut(line, ": ")
		want, listed := escapes[how]
		if !listed {
			want = "ENOENT"
		} else {
			seen++
		}
		if got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
	if seen != len(escapes) {
		t.Errorf("%d of %d lines that are listed were printed:\n%s", seen, len(escapes), stdout)
	}
}

// Lines of testdata/wild.c whose results differ with the version of Linux, with
// the rights of the test's user, or for the reason given.
var wildExcused = []struct{ line, why string }{
	{`^futex/\d+ 0 top:`, "newer kernels take the last word before the end of user space for an address"},
	{`^(mmap|mremap)/\d+ \d null:`, "root may map page 0; a guest may not"},
	{`^mmap/\d+ 0 last:`, "Linux takes the fixed address -1 for an error number"},
	{`^read/\d+ 1 top:`, "the order of two errors of reading a folder"},
	{`^sendto/\d+ 1 \w+: EISCONN`, "the order of two errors of a connected stream"},
	{`^recvmmsg/\d+ 4 readonly:`, "the time that is left is not written back"},
	{`^sigaltstack/\d+ \d \w+: ENOMEM`, "the size is what earlier calls left, such as places in a folder, which are the file system's hashes"},
}

// TestWildPointers compares the results of calls with pointers to nowhere with those of
// Linux.
func TestWildPointers(t *testing.T) {
	program := compile(t, "wild")
	want := execute(t, t.TempDir(), nil, program)
	got := run(t, t.TempDir(), []string{"--quiet", "--max-memory", "128M"}, program)
	if want.status != 0 || got.status != 0 || got.stderr != "" {
		t.Fatalf("heddle: %v\nnative: %v", got, want)
	}
	a, b := strings.Split(want.stdout, "\n"), strings.Split(got.stdout, "\n")
	if len(a) != len(b) || len(a) < 3000 {
		t.Fatalf("%d lines natively, %d under heddle", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] && !excused(a[i]) {
			t.Errorf("native %s, heddle %s", a[i], b[i])
		}
	}
}

func excused(line string) bool {
	for _, e := range wildExcused {
		if regexp.MustCompile(e.line).MatchString(line) {
			return true
		}
	}
	return false
}

// everyCall lists the numbers of the calls that the machine answers.
func everyCall() []string {
	var all []string
	for _, s := range kernel.Syscalls() {
		if s.Support != kernel.Missing { // which stops the run
			all = append(all, fmt.Sprint(s.Number))
		}
	}
	return all
}

// hostile are the flags under which hostile programs run, and most is the host memory
// that heddle may take then: the guest's and 150 MB.
const (
	hostileMemory = 64 << 20
	most          = hostileMemory + 150<<20
)

func hostile(more ...string) []string {
	return append([]string{"--quiet", "--max-memory", "64M", "--max-instructions", "2000000000"}, more...)
}

// TestWildPointersEverywhere passes them in each argument of each call of the
// table. The results do not matter; heddle continues.
func TestWildPointersEverywhere(t *testing.T) {
	program := compile(t, "wild")
	o := run(t, t.TempDir(), hostile(), append([]string{program}, everyCall()...)...)
	if want := fmt.Sprintf("%d calls\n", len(everyCall())*198); o.status != 0 || !strings.HasSuffix(o.stdout, want) {
		t.Errorf("want the end %q, got %v", want, o)
	}
	if o.peak > most {
		t.Errorf("heddle took %d MB", o.peak>>20)
	}
}

// TestRandomArguments calls everything with arguments of rubbish.
func TestRandomArguments(t *testing.T) {
	program := compile(t, "fuzz")
	for seed := range testsize.Pick(2, 6, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			line := append([]string{program, fmt.Sprint(seed + 1), "1000"}, everyCall()...)
			o := run(t, t.TempDir(), hostile("--seed", fmt.Sprint(seed)), line...)
			if o.status != 0 || !strings.HasSuffix(o.stdout, "still there\n") {
				t.Errorf("%v", o)
			}
			if o.peak > most {
				t.Errorf("heddle took %d MB", o.peak>>20)
			}
		})
	}
}

// killed is the message about a program that used up the guest's memory.
const killed = "guest memory is used up; --max-memory allows more"

// hogs are the ways of testdata/hog.c with their ends: a line of output,
// or heddle's last message.
var hogs = []struct{ way, stdout, stderr string }{
	{"threads", `^\d{4,}, then EAGAIN$`, ""},
	{"forks", `^\d{3,}, then (ENOMEM|EAGAIN)$`, ""},
	{"bomb", `^0, then (ENOMEM|EAGAIN)$`, ""},
	{"zombies", `^\d{3,}, then (ENOMEM|EAGAIN)$`, ""},
	{"memory", "", killed},
	{"memory-by-read", "", killed},
	{"shared-memory", "", killed},
	{"populate", "", killed},
	{"huge", `(?s)^malloc 1 TiB: ENOMEM\n.*mmap 1 TiB: ENOMEM\n.*noreserve: ok\n.*sbrk 1 TiB: ENOMEM\n`, ""},
	{"overlap", `^many worked$`, ""},
	{"mappings", `^65\d{3}, then ENOMEM$`, ""},
	{"files", `^10000 of 10000\n\d{5,}, then ENFILE$`, ""},
	{"pipes", `^\d{3,}, then (ENFILE|ENOMEM)$`, ""},
	{"events", `^\d{5,}, then (ENFILE|ENOSPC)$`, ""},
	{"watches", `^\d{5,}, then ENOSPC$`, ""},
	{"tables", `dup2: ENOMEM\n\d+, then (ENOMEM|EAGAIN)$`, ""},
	{"sockets", `^\d{3,}, then (ENFILE|ENOBUFS)$`, ""},
	{"code", `^all right$`, ""},
	{"passing", `, then (ENFILE|ETOOMANYREFS)$|^done$`, ""},
	{"overlay", `^\d{2}, then ENOSPC$`, ""},
	{"names", `^\d{4,}, then ENOSPC$`, ""},
	{"folders", `^\d{4}, then ENAMETOOLONG$`, ""},
	{"sparse", `^ftruncate 1 EiB: 0\nfallocate 1 TiB: (ok|ENOSPC)\nsendfile: 1$`, ""},
	{"vectors", `^\d, then ENOSPC$`, ""},
	{"signals", `^\d{5,}, then EAGAIN$`, ""},
	{"timers", `^\d{5,}, then EAGAIN$`, ""},
	{"segments", `^\d{3,}, then (ENOMEM|ENOSPC)$`, ""},
	{"semaphores", `^\d{1,}, then (ENOMEM|ENOSPC)$`, ""},
	{"messages", `^\d{3,}, then (ENOMEM|ENOSPC)$`, ""},
	{"queues", `^\d{2,}, then (ENOMEM|EMFILE)$`, ""},
	{"terminals", `^\d{3,}, then (ENOSPC|ENFILE|ENOMEM)$`, ""},
	{"notices", `^overflow$`, ""},
	{"locks", `^\d{5,}, then ENOLCK$`, ""},
	{"misses", `^done$`, ""},
	{"arguments", `^arguments: E2BIG\nenvironment: E2BIG$`, ""},
	{"recursion", "", `killed by signal 11 (SIGSEGV)`},
}

// TestHogs asks for too much of everything: an errno comes back, or the program
// is killed and heddle says why, and heddle itself stays small.
func TestHogs(t *testing.T) {
	for _, h := range testsize.Sample(hogs, testsize.Pick(6, len(hogs), len(hogs)), 0) {
		t.Run(h.way, func(t *testing.T) {
			t.Parallel()
			program := compile(t, "hog")
			o := run(t, t.TempDir(), hostile(), program, h.way)
			out := strings.TrimSpace(o.stdout)
			if h.stderr == "" && (o.status != 0 || !regexp.MustCompile(h.stdout).MatchString(out)) {
				t.Errorf("want the output %s, got %v", h.stdout, o)
			}
			if h.stderr != "" && (o.status < 128 || !strings.Contains(o.stderr, h.stderr)) {
				t.Errorf("want the remark %s, got %v", h.stderr, o)
			}
			if o.peak > most {
				t.Errorf("heddle took %d MB of the host's memory", o.peak>>20)
			}
		})
	}
}

// shortages are ways of testdata/hog.c that fail for want of memory, with heddle's message.
var shortages = []struct{ way, stderr string }{
	{"memory", `heddle: killed by signal 9 \(SIGKILL\): \S+/hog \(process 1000\) was killed for a write at 0x[0-9a-f]+: ` + killed},
	{"promise", `heddle: \S+/hog \(process 1000\) was refused mmap\(NULL, 13743\d+, .*\) \(ENOMEM\): ` +
		`one request may be for 64 GiB at most, or for --max-memory if that is more`},
	{"descriptors", `heddle: \S+/hog \(process 1000\) was refused socket\(.*\) \(\w+\): ` +
		`what the kernel keeps for programs takes all that it may, an eighth of --max-memory`},
	{"disk", `heddle: \S+/hog \(process 1000\) was refused write\(.*\) \(ENOSPC\): ` + killed},
}

// TestShortageIsExplained: a run that fails says which request for memory was refused, or
// killed the program, and which option allows more.
func TestShortageIsExplained(t *testing.T) {
	for _, c := range shortages {
		o := run(t, t.TempDir(), hostile(), compile(t, "hog"), c.way)
		if o.status == 0 || !regexp.MustCompile(c.stderr).MatchString(o.stderr) {
			t.Errorf("%s: want the remark %s, got %v", c.way, c.stderr, o)
		}
	}
}

// TestHogsCoverTheirProgram checks that no way of the program is left out.
func TestHogsCoverTheirProgram(t *testing.T) {
	text, err := os.ReadFile("testdata/hog.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\{"([a-z-]+)", [a-z_]+\}`).FindAllStringSubmatch(string(text), -1) {
		hog := slices.ContainsFunc(hogs, func(h struct{ way, stdout, stderr string }) bool { return h.way == m[1] })
		if !hog && !slices.ContainsFunc(shortages, func(s struct{ way, stderr string }) bool { return s.way == m[1] }) {
			t.Errorf("the way %s is not tested", m[1])
		}
	}
}

// TestNameOfFirstProcess: a process is named for the path that was executed, not for the
// file that a link leads to.
func TestNameOfFirstProcess(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/bin/cat", dir+"/reader"); err != nil {
		t.Fatal(err)
	}
	if o := run(t, dir, hostile(), dir+"/reader", "/proc/self/comm"); o.stdout != "reader\n" {
		t.Errorf("want reader, got %v", o)
	}
}
