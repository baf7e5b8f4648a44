package machine_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// agreeing are real programs on which the interpreter of libVEX's code is held
// against the machine. DATA stands for a file.
func agreeing(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"pbzip2":  {"pbzip2", "-c", "-k", "-b1", "-p4", "DATA"},
		"pigz":    {"pigz", "-c", "-p", "4", "DATA"},
		"zstd":    {"zstd", "-c", "-T3", "-q", "DATA"},
		"xz":      {"xz", "-c", "-T2", "DATA"},
		"sort":    {"sort", "--parallel=4", "DATA"},
		"gawk":    {"gawk", `{ for (i = 1; i <= NF; i++) n[$i] += sqrt(i) / 3 } END { for (w in n) printf "%s %.6f\n", w, n[w] }`, "DATA"},
		"bash":    {"bash", "-c", `i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); a[$i]="x$((i * i))"; done; echo ${a[@]:5:9} ${#a[@]}`},
		"sqlite3": {"sqlite3", ":memory:", "create table t(a, b real); with recursive c(n) as (select 1 union all select n+1 from c where n < 4000) insert into t select n, sqrt(n)*1.5 from c; select sum(b), count(*), avg(a*b) from t where a % 3 = 1; select round(b, 2) from t order by -b limit 3;"},
		"python3": {"/usr/bin/python3", "-S", "-E", "-c", "import math, zlib\nprint(sum(math.sin(i) / (i + 1) for i in range(20000)), zlib.crc32(b'x' * 99999), sorted(str(i) for i in range(3000))[7], 3 ** 500 % 1000007)"},
		"perl":    {"perl", "-e", `my %h; for my $i (1 .. 4000) { $h{$i % 97} .= chr(65 + $i % 26); } print join(",", map { length($h{$_}) * 1.25 } sort keys %h), "\n"; print "match\n" if ("a" x 500 . "b") =~ /^(a+)+b$/;`},
		"kernel":  {machinetest.Compile(t, numbers, "-O2", "-lm")},
	}
}

// numbers computes with SSE in 32 and 64 bits, and with threads that race.
const numbers = `
#include <math.h>
#include <pthread.h>
#include <stdio.h>
static double a[64][64], b[64][64], c[64][64];
static float f[4096];
static volatile unsigned mix = 1;
static void *race(void *arg) {
	for (unsigned i = 0; i < 20000; i++) mix = mix * 1103515245 + 12345 + (unsigned)(long)arg;
	return 0;
}
int main(void) {
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, race, (void *)i);
	for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) { a[i][j] = sin(i + 1) / (j + 1); b[i][j] = exp(-i * 0.01) * cos(j); }
	for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) for (int k = 0; k < 64; k++) c[i][j] += a[i][k] * b[k][j];
	for (int i = 0; i < 4096; i++) f[i] = sqrtf(i) * 0.5f - logf(i + 1) / (float)(i % 7 + 1) + (float)(i & 1023) * 1e-30f;
	float s = 0;
	for (int i = 0; i < 4096; i++) s += f[i] > 3 ? f[i] : -f[i];
	double d = 0;
	for (int i = 0; i < 64; i++) d += c[i][63 - i] + floor(c[i][i] * 1000) + (long)(c[i][i] * 77);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	printf("%.17g %.9g %u\n", d, s, mix != 0);
	return 0;
}`

// TestIRAgreesWithTheMachine: on real programs the interpreter of libVEX's code
// reaches the machine's registers and memory after every block. The long form
// compares 50 million instructions.
func TestIRAgreesWithTheMachine(t *testing.T) {
	budget := testsize.Pick[uint64](100_000, 300_000, 6_000_000)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d of %x: some text that compresses, more or less\n", i*i%7919, i*2654435761)
	}
	if err := os.WriteFile(data, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	total := uint64(0)
	for name, args := range agreeing(t) {
		t.Run(name, func(t *testing.T) {
			for i, a := range args {
				args[i] = strings.ReplaceAll(a, "DATA", data)
			}
			c, _ := machinetest.Config(t, args...)
			c.Dir, c.MaxInstructions, c.Record = dir, budget, &machine.Record{To: io.Discard}
			l := newLockstep(t.Errorf)
			l.run(t, c)
			total += l.compared
			t.Log(l.summary())
			if l.compared*1000 < l.instructions*999 {
				t.Errorf("too few instructions are compared")
			}
		})
	}
	t.Logf("%d instructions compared", total)
}

// run runs a program to the end, or to the third disagreement.
func (l *lockstep) run(t *testing.T, c machine.Config) {
	t.Helper()
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer l.log.Close()
	if err := m.WatchMemory(l); err != nil {
		t.Fatal(err)
	}
	for !m.Done() && l.failures < 3 {
		m.Step()
	}
}

// A single wrong bit is found, with the instructions that caused it.
func TestDisagreementIsFound(t *testing.T) {
	c, _ := machinetest.Config(t, "true")
	c.Dir, c.MaxInstructions, c.Record = t.TempDir(), 20_000, &machine.Record{To: io.Discard}
	spoils := map[string]func(*vex.State){
		"r12 is":       func(s *vex.State) { s[vex.OffsetRAX+8*12] ^= 1 },
		"rip is":       func(s *vex.State) { s[vex.OffsetRIP+7] ^= 0x80 },
		"xmm15+8 is":   func(s *vex.State) { s[vex.OffsetXMM+32*15+15] ^= 0x10 },
		"rflags is":    func(s *vex.State) { s.SetRFLAGS(s.RFLAGS() ^ 1<<10) },
		"x87's top is": func(s *vex.State) { s[vex.OffsetFTop] ^= 1 },
	}
	for want, spoil := range spoils {
		var reports []string
		l := newLockstep(func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) })
		blocks := 0
		l.spoil = func(s *vex.State) {
			if blocks++; blocks == 700 {
				spoil(s)
			}
		}
		l.run(t, c)
		if len(reports) != 1 || !strings.Contains(reports[0], want) || !strings.Contains(reports[0], "\n\t0x") {
			t.Errorf("%s: %q", want, reports)
		}
	}
}
