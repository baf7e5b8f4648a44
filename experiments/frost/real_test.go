package frost_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

const (
	threadsOfPython = `
import threading
d, l = {}, threading.Lock()
def f(n):
    s = sum(i * n for i in range(300))
    with l: d[n] = s
ts = [threading.Thread(target=f, args=(i,)) for i in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(sorted(d.items()))
`
	queries = `
create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 300) insert into t select x, x * x % 97 from c;
select b, count(*), sum(a) from t group by b order by 2 desc, 1 limit 5;
`
)

// TestRealProgramsAreClean: Debian's programs, which have no data race that shows,
// print under Frost the same as natively, nothing lost or doubled, and no
// replica differs.
func TestRealProgramsAreClean(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	var text strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&text, "%d %d\n", i, i*i%10_007)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"/usr/bin/pbzip2", "-c", "-k", "-p4", "-b1", file},
		{"/usr/bin/pigz", "-c", "-k", "-n", "-m", "-p4", file},
		{"/usr/bin/zstd", "-q", "-c", "-T4", file},
		{"/usr/bin/python3", "-S", "-E", "-c", threadsOfPython},
		{"/usr/bin/sqlite3", ":memory:", queries},
	}
	for _, command := range testsize.Sample(commands, testsize.Pick(2, len(commands), len(commands)), 0) {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			t.Parallel()
			want, err := exec.Command(command[0], command[1:]...).Output()
			if err != nil {
				t.Fatalf("%q: %v", command, err)
			}
			for seed := 1; seed <= trials(1, 20); seed++ {
				x := try(t, frost.DefaultOptions(), sched.Options{}, uint64(seed), command...)
				if x.Verdict != frost.Clean || x.Harmless > 0 || x.Result.ExitCode != 0 {
					t.Errorf("seed %d: %s", seed, x.text())
				}
				if x.stdout != string(want) {
					t.Errorf("seed %d: %d bytes of output, natively %d, or others", seed, len(x.stdout), len(want))
				}
			}
		})
	}
}

// broadcasts is a program in which threads wait on a condition for each number that the
// main thread puts, and wake each other before those of the last time have continued.
const broadcasts = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static long put, taken, sum, rounds;
static void *take(void *u)
{
	for (;;) {
		pthread_mutex_lock(&m);
		while (taken == put && put < rounds) pthread_cond_wait(&more, &m);
		long i = taken < put ? taken++ : -1;
		if (i >= 0) sum += i;
		pthread_mutex_unlock(&m);
		if (i < 0) return u;
		for (volatile int k = 0; k < 30 * (i % 7); k++) ;
	}
}
int main(int c, char **v)
{
	pthread_t t[4];
	rounds = atoi(v[1]);
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, take, 0);
	for (long i = 0; i < rounds; i++) {
		pthread_mutex_lock(&m);
		put++;
		pthread_cond_broadcast(&more);
		pthread_mutex_unlock(&m);
		for (volatile int k = 0; k < 100 * (i % 5); k++) ;
	}
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%ld\n", sum);
}
`

// TestConditionsAreClean: whoever wakes threads that wait on a condition may have to wait
// until those of the last time have noticed, and continues in all replicas.
func TestConditionsAreClean(t *testing.T) {
	bin := gcctest.C(t, broadcasts, "-static")
	o := options()
	o.Epoch, o.Growth = 0.02, 0
	for seed := 1; seed <= trials(4, 100); seed++ {
		x := try(t, o, sched.Options{Policy: sched.Random, Quantum: 200}, uint64(seed), bin, "100")
		if x.Verdict != frost.Clean || x.Harmless > 0 || x.stdout != "4950\n" {
			t.Errorf("seed %d prints %q: %s", seed, x.stdout, x.text())
		}
	}
}

// files is a program whose threads write and read files of their own and one together, and ask for the
// sizes of each other's.
const files = `
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int shared;
static void *work(void *u)
{
	long id = (long)u, sum = 0;
	char name[16], other[16], b[64];
	sprintf(name, "f%ld", id);
	sprintf(other, "f%ld", (id + 1) % 4);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 60; i++) {
		sprintf(b, "%ld %d %ld\n", id, i, sum);
		write(fd, b, 20);
		pread(fd, b, 10, i);
		sum += b[3];
		if (i % 5 == 0) pwrite(shared, b, 8, 8 * ((i + id) % 7));
		pread(shared, b, 8, 8 * (i % 7));
		sum = sum * 3 + b[1];
		struct stat s = {0};
		if (i % 8 == 0 && stat(other, &s) == 0) sum += s.st_size;
		if (i % 16 == 0 && fstat(shared, &s) == 0) sum += s.st_size;
		memset(&s, 0, sizeof s); // it has times
		__asm__ volatile("" : : "r"(&s) : "memory");
	}
	close(fd);
	return (void *)sum;
}
int main(void)
{
	pthread_t t[4];
	shared = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *sum;
		pthread_join(t[i], &sum);
		printf("%ld\n", (long)sum);
	}
	return 0;
}
`

// TestFilesAreClean: calls that act on different files have no order, and all replicas read and count the same.
func TestFilesAreClean(t *testing.T) {
	bin := gcctest.C(t, files)
	o := options()
	o.Epoch, o.Growth = 0.05, 0
	different := map[string]bool{}
	for seed := 1; seed <= trials(4, 100) || len(different) < 2 && seed <= 100; seed++ {
		x := try(t, o, sched.Options{Policy: sched.Random, Quantum: 300}, uint64(seed), bin)
		if x.Verdict != frost.Clean || x.Harmless > 0 {
			t.Errorf("seed %d: %s", seed, x.text())
		}
		different[x.stdout] = true
	}
	if len(different) < 2 {
		t.Error("the program prints the same in all interleavings: its threads do not act at the same time")
	}
}
