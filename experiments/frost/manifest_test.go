package frost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
)

// readsIfFirst is a program in which one thread reads a file unless another has been
// faster, which is a race, and that says whether it has.
const readsIfFirst = `
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int late, has_read;
static const char *file;
static void spend(int n) { for (volatile int i = 0; i < n; i++) ; }
static void *first(void *u) { spend(300); late = 1; return u; }
static void *second(void *u)
{
	char b[8];
	spend(300);
	if (!late) {
		int fd = open(file, O_RDONLY);
		has_read = read(fd, b, sizeof b) > 0;
		close(fd);
	}
	return u;
}
int main(int c, char **v)
{
	pthread_t t[2];
	file = v[1];
	int swap = atoi(v[2]);
	pthread_create(&t[0], 0, swap ? second : first, 0);
	pthread_create(&t[1], 0, swap ? first : second, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	puts(has_read ? "read" : "not read");
}`

// TestManifestIsOfCommittedEpochs: a file is an input if a committed replica has read it,
// and not if only abandoned replicas have.
func TestManifestIsOfCommittedEpochs(t *testing.T) {
	bin := gcctest.C(t, readsIfFirst, "-static")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("something\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 20 && len(seen) < 2; seed++ {
		x := try(t, options(), sched.Options{Policy: sched.Random, Quantum: 200}, seed, bin, file, fmt.Sprint(seed%2))
		listed := slices.ContainsFunc(x.Result.Inputs, func(i machine.Input) bool { return i.Path == file })
		if did := x.stdout == "read\n"; listed != did {
			t.Errorf("seed %d prints %q, the manifest has the file: %v", seed, x.stdout, listed)
		}
		if x.Races > 0 {
			seen[strings.TrimSpace(x.stdout)] = true
		}
	}
	if len(seen) < 2 {
		t.Errorf("of 20 runs with a race all ended as %v", seen)
	}
}
