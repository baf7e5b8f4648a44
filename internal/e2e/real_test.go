package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// real are Debian's programs, each doing something whose output does not
// depend on the schedule.
var real = []struct {
	name    string
	command []string
}{
	{"ls", []string{"ls", "-laR", "--time-style=+", "tree"}},
	{"sort", []string{"sort", "--parallel=4", "million"}},
	{"sha256sum", []string{"sha256sum", "text", "noise", "words"}},
	{"cp", shell(`cp -r tree cp-tree && cp -p text cp-text && diff -r tree cp-tree && cmp text cp-text && ls -R cp-tree`)},
	{"grep", []string{"grep", "-rn", "needle", "tree"}},
	{"grep-none", []string{"grep", "-rc", "no such line", "text"}},
	{"find", []string{"find", "tree", "-type", "f", "-size", "-2k", "-name", "*.txt"}},
	{"gawk", []string{"gawk", `{ n[$1 % 97]++; s += $1 } END { for (i = 0; i < 97; i++) printf "%d ", n[i]; print s }`, "numbers"}},
	{"perl", []string{"perl", "-ne", `$c{$1}++ while /(\w+)/g; END { print "$_ $c{$_}\n" for sort keys %c }`, "words"}},
	{"sqlite3", shell(`sqlite3 sqlite.db < script.sql && sqlite3 sqlite.db 'select count(*), sum(length(v)) from t'`)},
	{"python3-threading", python(`
import threading, queue
q, results, lock = queue.Queue(), [], threading.Lock()
def work():
    while (i := q.get()) is not None:
        with lock: results.append(i * i)
ts = [threading.Thread(target=work) for _ in range(8)]
for t in ts: t.start()
for i in range(200): q.put(i)
for t in ts: q.put(None)
for t in ts: t.join()
print(sorted(results))`)},
	{"python3-futures", python(`
from concurrent.futures import ThreadPoolExecutor, as_completed
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda x: x * x, range(50))))
    print(sum(f.result() for f in as_completed([pool.submit(pow, 3, i, 1009) for i in range(50)])))`)},
	{"python3-multiprocessing", python(`
import multiprocessing as m
def f(x): return x * x
def put(q, i): q.put((i, f(i)))
if __name__ == "__main__":
    with m.Pool(3) as pool: print(pool.map(f, range(20)))
    q = m.Queue()
    ps = [m.Process(target=put, args=(q, i)) for i in range(3)]
    for p in ps: p.start()
    print(sorted(q.get() for p in ps))
    for p in ps: p.join()
    print([p.exitcode for p in ps])`)},
	{"python3-hashlib", python(`
import hashlib, threading
data = open("noise", "rb").read()
for n in sorted(hashlib.algorithms_guaranteed):
    h = hashlib.new(n, data)
    print(n, h.hexdigest(16) if n.startswith("shake") else h.hexdigest())
out = [None] * 4
def work(i): out[i] = hashlib.sha256(data * (i + 1)).hexdigest()
ts = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in ts: t.start()
for t in ts: t.join()
print(out)`)},
	{"python3-fails", python(`import sys; print("out"); sys.exit(3)`)},
	{"bash-pipelines", []string{"bash", "-c", `tr ' ' '\n' < words | sort | uniq -c | sort -k1,1nr -k2 | head -5
set -o pipefail; false | cat; echo "status $? ${PIPESTATUS[*]}"; yes | head -n 3; (exit 7)`}},
	{"bash-subshells", []string{"bash", "-c", `x=1; (x=2; (x=3; echo "in $x"); echo "mid $x"); echo "out $x $(echo $(( $(wc -l < words) * 2 )))"
diff <(sort words) <(sort -r words | sort) && echo equal; cat <<< here; trap 'echo trapped $?' EXIT; kill -TERM $$ & wait; exit 5`}},
	{"bash-background", []string{"bash", "-c", `for i in 1 2 3 4; do (sleep 0.0$i; echo job $i > bg-$i; exit $i) & p[i]=$!; done
for i in 4 3 2 1; do wait ${p[i]}; echo "$i ended with $?"; done; cat bg-?; sleep 100 & kill -KILL $!; wait $! 2> /dev/null; echo $?`}},
	{"make", shell(`make -s -j4 -C project && project/prog`)},
	{"gzip", shell(`gzip -nc text | tee gzip.gz && gzip -dc gzip.gz | cmp - text`)},
	{"bzip2", shell(`bzip2 -c text | tee bzip2.bz2 && bzip2 -dc bzip2.bz2 | cmp - text`)},
	{"xz", shell(`xz -T4 -2 --block-size=64KiB -c text | tee xz.xz && xz -T4 -dc xz.xz | cmp - text`)},
	{"zstd", shell(`zstd -q -T4 -B65536 -c text | tee zstd.zst && zstd -q -dc zstd.zst | cmp - text`)},
	{"pbzip2", shell(`pbzip2 -p8 -b1 -c text | tee pbzip2.bz2 && pbzip2 -p8 -dc pbzip2.bz2 | cmp - text`)},
	{"pigz", shell(`pigz -n -p8 -b 32 -c text | tee pigz.gz && pigz -p8 -dc pigz.gz | cmp - text`)},
	{"lbzip2", shell(`lbzip2 -n8 -1 -c text | tee lbzip2.bz2 && lbzip2 -n8 -dc lbzip2.bz2 | cmp - text`)},
	{"plzip", shell(`plzip -n8 -1 -B 64KiB -c text | tee plzip.lz && plzip -n8 -dc plzip.lz | cmp - text`)},
	{"damaged-input", shell(`head -c 1000 text | gzip -c | head -c 300 > cut.gz; gzip -dc cut.gz | wc -c; printf junk > junk.bz2; bzip2 -dc junk.bz2`)},
}

// shell is a command of sh, which fails when a part of a pipeline does not.
func shell(script string) []string { return []string{"sh", "-c", script} }

// python runs Debian's interpreter, whatever else is in the PATH.
func python(script string) []string { return []string{"/usr/bin/python3", "-c", script} }

// configurations are the machines on which the programs run, some in turn. One of them has a
// processor of level x86-64-v3, on hosts that have it.
func configurations(turn int) [][]string {
	var all [][]string
	for seed := 1; seed <= 2; seed++ {
		for _, cores := range []int{1, 4, 8} {
			all = append(all, []string{"--cores", fmt.Sprint(cores), "--seed", fmt.Sprint(seed)})
		}
	}
	list := testsize.Sample(all, 1, turn)
	if turn%testsize.Pick(6, 3, 1) == 0 && engines.Check(engines.Auto, arch.V3) == nil {
		list = append(list, []string{"--cores", "4", "--engine", engines.Auto, "--cpu", arch.V3.String()})
	}
	return list
}

// realInputs makes the files that the programs work on, always the same.
func realInputs(t *testing.T, dir string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	file := func(name string, content string) { writeFile(t, filepath.Join(dir, name), []byte(content), 0o644) }
	lines := func(n, below int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintln(&b, r.IntN(below))
		}
		return b.String()
	}
	file("million", lines(1_000_000, 10_000_000))
	file("numbers", lines(20_000, 1_000_000))
	vocabulary := strings.Fields(`thread core step quantum block order epoch replica slice trace run seed outcome divergence`)
	text := func(size int) string {
		var b strings.Builder
		for b.Len() < size {
			fmt.Fprintf(&b, "%s%s", vocabulary[r.IntN(len(vocabulary))], []string{" ", " ", " ", "\n"}[r.IntN(4)])
		}
		return b.String() + "\n"
	}
	file("words", text(20_000))
	noise := make([]byte, 50_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	file("noise", string(noise))
	// Part compresses well and part does not.
	file("text", text(150_000)+string(noise)+text(100_000))
	for i := range 40 {
		content := text(100 + 100*i)
		if i%7 == 3 {
			content += "a needle in line\n" + text(50)
		}
		file(fmt.Sprintf("tree/d%d/e%d/file-%02d.%s", i%3, i%5, i, []string{"txt", "log"}[i%2]), content)
	}
	if err := os.Symlink("d0", filepath.Join(dir, "tree/link")); err != nil {
		t.Fatal(err)
	}
	file("script.sql", `create table t(k integer primary key, v text, n integer);
with recursive c(x) as (select 1 union all select x+1 from c where x < 500)
insert into t select x, 'value ' || (x * 7919 % 1000), x % 13 from c;
create index i on t(n);
select n, count(*), max(v) from t group by n order by n;
begin; update t set v = v || '!' where n = 3; delete from t where k % 11 = 0; commit;
select * from t where n = 3 order by k limit 5;
`)
	project(t, filepath.Join(dir, "project"))
}

// project is a set of C files with a makefile.
func project(t *testing.T, dir string) {
	t.Helper()
	objects, calls, protos := "", "0", ""
	for i := range 5 {
		source := fmt.Sprintf("#include <string.h>\nint f%d(const char *s) { int h = %d; for (size_t i = 0; i < strlen(s); i++) h = h * 31 + s[i]; return h; }\n", i, i)
		writeFile(t, filepath.Join(dir, fmt.Sprintf("f%d.c", i)), []byte(source), 0o644)
		objects += fmt.Sprintf(" f%d.o", i)
		calls += fmt.Sprintf(" ^ f%d(\"some text\")", i)
		protos += fmt.Sprintf("int f%d(const char *);\n", i)
	}
	main := "#include <stdio.h>\n" + protos + "int main(void) { printf(\"%d\\n\", " + calls + "); return 4; }\n"
	writeFile(t, filepath.Join(dir, "main.c"), []byte(main), 0o644)
	makefile := "prog: main.o" + objects + "\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -O1 -Wall -c -o $@ $<\n"
	writeFile(t, filepath.Join(dir, "Makefile"), []byte(makefile), 0o644)
}

// TestRealPrograms compares Debian's programs on heddle with the same programs
// on the host's kernel, and checks that they leave the host as it was.
func TestRealPrograms(t *testing.T) {
	host, guest := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "work")
	realInputs(t, host)
	realInputs(t, guest)
	before := listing(t, guest)
	t.Run("programs", func(t *testing.T) {
		for i, p := range testsize.Sample(real, testsize.Pick(6, len(real), len(real)), 1) {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				want := execute(t, host, nil, p.command...)
				want.stdout = ordered(p.name, want.stdout)
				for _, flags := range configurations(i) {
					got := run(t, guest, append(flags, "--quiet"), p.command...)
					got.stdout = ordered(p.name, got.stdout)
					got.stderr, _, _ = strings.Cut(got.stderr, "heddle: killed by signal")
					if got.stdout != want.stdout || got.status != want.status || got.stderr != want.stderr {
						t.Errorf("heddle %v:\n%v\n\nnative:\n%v", flags, got, want)
					}
				}
			})
		}
	})
	if after := listing(t, guest); after != before {
		t.Errorf("the host's folder was changed:\nbefore:\n%s\nafter:\n%s", shorten(before), shorten(after))
	}
}

// ordered sorts the lines of the programs that print files in the order of the
// folder, which differs between file systems.
func ordered(name, stdout string) string {
	if name != "find" && name != "grep" {
		return stdout
	}
	lines := strings.SplitAfter(stdout, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// listing describes the files below a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	script := `find . -printf '%p %y %m %s %T@ %n %l\n' | sort; find . -type f -print0 | sort -z | xargs -0 -r sha256sum`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}
