package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// branching takes two branches an iteration, one of which cannot be predicted, so
// that the trace is hard to compress.
const branching = `
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) {
	unsigned long n = strtoul(v[1], 0, 0), x = 88172645463325252ul, a = 0, b = 0;
	for (unsigned long i = 0; i < n; i++) {
		x ^= x << 13; x ^= x >> 7; x ^= x << 17;
		if (x & 1) a++; else __asm__ volatile("" : "+r"(b));
	}
	printf("%lu\n", a);
	return 0;
}`

// measuring runs a command and prints the most KiB of memory that it held after the
// command's output. Linux counts for a process also the memory of the one that started it:
// this program is small, the test is not.
const measuring = `
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int c, char **v) {
	struct rusage u;
	int status;
	pid_t child = fork();
	if (child == 0) {
		execv(v[1], v + 1);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &u) != child)
		return 126;
	printf("%ld\n", u.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}`

// heddleUsing runs a command of heddle in a process of its own and returns its
// output and the most memory that it held, in bytes.
func heddleUsing(t *testing.T, args ...string) (string, uint64) {
	t.Helper()
	path, err := exec.LookPath("heddle")
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	cmd := exec.Command(gcctest.C(t, measuring), append([]string{path}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("heddle %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	held, err := strconv.ParseUint(lines[last], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines[:last], "\n"), held << 10
}

// TestTracesAreLargerThanMemory records and decodes more branches than fit in
// the memory that both may hold: two billion in the large test size, otherwise a
// hundredth, and the bound lower.
func TestTracesAreLargerThanMemory(t *testing.T) {
	iterations := testsize.Pick[uint64](10_000_000, 10_000_000, 1_000_000_000)
	bound := testsize.Pick[uint64](150<<20, 150<<20, 500<<20)
	bin, path := gcctest.C(t, branching), filepath.Join(t.TempDir(), "trace")
	_, held := heddleUsing(t, "record", "-q", "-o", path, "--pt", "--cores", "1", "--", bin, strconv.FormatUint(iterations, 10))
	if held > bound {
		t.Errorf("recording held %d MiB, more than %d", held>>20, bound>>20)
	}
	out, decoding := heddleUsing(t, "trace", "flow", "--core", "0", "--count", path)
	if decoding > bound {
		t.Errorf("decoding held %d MiB, more than %d", decoding>>20, bound>>20)
	}
	// The loop has 13 instructions or more an iteration, by the source.
	if n, err := strconv.ParseUint(strings.TrimSpace(out), 10, 64); err != nil || n < 10*iterations {
		t.Errorf("%q instructions for %d iterations", out, iterations)
	}
	t.Logf("%d branches: recording held %d MiB, decoding %d MiB", 2*iterations, held>>20, decoding>>20)
}
