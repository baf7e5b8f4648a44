package syncops_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
)

// void are the operations whose functions have no result, or one that the test
// programs do not show.
var void = []event.SyncOp{
	event.OpC11CallOnce, event.OpC11CndDestroy, event.OpC11MtxDestroy, event.OpC11TssDelete, event.OpSemOpen,
}

// said is an operation in the words of the test programs (selflog.h), or
// empty.
func said(e event.Sync) string {
	switch {
	case e.Effects&event.Inner != 0, e.Op == event.OpThreadStart, e.Op == event.OpThreadExit:
		return ""
	case e.Op == event.OpKeyDestructor:
		if e.Phase == event.Enter {
			return fmt.Sprintf("%v %d", e.Op, e.Value)
		}
	case e.Op == event.OpBarrierWait, e.Op == event.OpTestCancel:
		if e.Phase == event.Enter {
			return e.Op.String()
		}
	case e.Phase == event.Whole:
		return e.Op.String()
	case e.Phase == event.Unwound:
		return e.Op.String() + " unwound"
	case e.Phase == event.Return && slices.Contains(void, e.Op):
		return e.Op.String()
	case e.Phase == event.Return:
		return fmt.Sprintf("%v %d", e.Op, e.Result)
	}
	return ""
}

// sayings are the recorded operations by thread, threads numbered in the order
// in which the first one made them.
func (r *recording) sayings(t *testing.T, own func(e event.Sync) bool) string {
	byThread := map[int][]string{}
	for _, e := range r.syncs {
		number := 0
		name := r.threads[e.Thread]
		if !own(e) {
			continue
		}
		if name != "1" {
			n, err := strconv.Atoi(strings.TrimPrefix(name, "1."))
			if err != nil {
				t.Fatalf("thread %d is called %q", e.Thread, name)
			}
			number = n
		}
		if line := said(e); line != "" {
			byThread[number] = append(byThread[number], fmt.Sprintf("%d %s\n", number, line))
		}
	}
	var threads []int
	for n := range byThread {
		threads = append(threads, n)
	}
	sort.Ints(threads)
	var b strings.Builder
	for _, n := range threads {
		b.WriteString(strings.Join(byThread[n], ""))
	}
	return b.String()
}

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q; before it %q", i+1, a[i], b[i], a[max(0, i-3):i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// ownCode returns the predicate of the program's own calls: of a static program's, calls
// from functions of its source. The C library's calls cannot be distinguished by
// their file there.
func (r *recording) ownCode(t *testing.T, bin string) func(e event.Sync) bool {
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	needed, _ := f.ImportedLibraries()
	sort.Slice(symbols, func(i, j int) bool { return symbols[i].Value < symbols[j].Value })
	return func(e event.Sync) bool {
		if len(needed) > 0 {
			return !strings.Contains(r.objects[e.Object].Name, "libgcc") // which unwinds at pthread_exit
		}
		link, name := uint64(e.PC)-r.bias(bin), ""
		for _, s := range symbols {
			if s.Value <= link && link < s.Value+s.Size {
				name = s.Name
			}
		}
		return slices.Contains(ownFunctions, name) || strings.HasPrefix(name, "start_thread") || name == "__nptl_deallocate_tsd"
	}
}

// bias is by how much the program was moved, from the address of an object in it.
func (r *recording) bias(bin string) uint64 {
	for _, o := range r.objects {
		if at, ok := strings.CutPrefix(o.Name, "1:"+filepath.Base(bin)+"+"); ok {
			if n, err := strconv.ParseUint(at, 0, 64); err == nil {
				return uint64(o.Addr) - n
			}
		}
	}
	return 0
}

// ownFunctions are those of the test programs.
var ownFunctions = []string{
	"main", "mutexes", "conditions", "rwlocks", "spins", "semaphores", "initialise", "onces", "c11", "last", "worker",
	"c11_worker", "canceled",
}

// TestOperationsAreThoseCalled compares the recording with the program's own log of
// its calls.
func TestOperationsAreThoseCalled(t *testing.T) {
	for name, flags := range map[string][]string{
		"dynamic": nil, "static": {"-static"}, "static-pie": {"-static-pie"}, "no-pie": {"-no-pie"},
		"now": {"-Wl,-z,now"}, "no plt": {"-fno-plt"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := build(t, "all.c", flags...)
			for cores := 1; cores <= 4; cores += 3 {
				c := config(bin)
				c.Cores, c.Seed = cores, uint64(cores)
				r := record(t, c, machine.SyncRecord{})
				if got := r.sayings(t, r.ownCode(t, bin)); got != r.out {
					t.Errorf("%d cores: %s", cores, firstDifference(got, r.out))
				}
				r.nested(t)
			}
		})
	}
}

// functionNames are the functions that operations come from, where they are not
// "pthread_" and the operation's name.
var functionNames = map[string]string{"tryjoin": "pthread_tryjoin_np", "timedjoin": "pthread_timedjoin_np"}

func functionOf(op event.SyncOp) string {
	name := op.String()
	for _, prefix := range []string{"sem_", "mtx_", "cnd_", "thrd_", "tss_", "call_once"} {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	if special, ok := functionNames[name]; ok {
		return special
	}
	return "pthread_" + name
}

// called counts the program's calls of each function.
func (r *recording) called() map[string]int {
	counts := map[string]int{}
	for _, e := range r.syncs {
		if e.Effects&event.Inner == 0 && (e.Phase == event.Enter || e.Phase == event.Whole) {
			counts[functionOf(e.Op)]++
		}
	}
	return counts
}

// interposed are the counts that testdata/interpose.c printed.
func interposed(out string) map[string]int {
	counts := map[string]int{}
	for _, line := range strings.Split(out, "\n") {
		var name string
		var n int
		if _, err := fmt.Sscanf(line, "COUNT %s %d", &name, &n); err == nil {
			counts[name] += n
		}
	}
	return counts
}

const threadsScript = `
import threading, queue, concurrent.futures
q, done = queue.Queue(), []
lock = threading.Lock()
def work(n):
    while True:
        item = q.get()
        if item is None:
            break
        with lock:
            done.append(item * n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for t in threads: t.start()
for i in range(20): q.put(i)
for t in threads: q.put(None)
for t in threads: t.join()
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(len(done), sum(pool.map(lambda x: x * x, range(30))))
`

// TestCountsAreThoseOfAnInterposer compares with a library that counts the calls
// from within the same run: real programs, whose counts depend on the
// interleaving.
func TestCountsAreThoseOfAnInterposer(t *testing.T) {
	library := build(t, "interpose.c", "-shared", "-fPIC", "-ldl")
	input := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(input, bytes.Repeat([]byte("what is compressed "), 40_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"all":      {build(t, "all.c")},
		"standard": {build(t, "standard.cc")},
		"pbzip2":   {"/usr/bin/pbzip2", "-f", "-k", "-b1", "-p4", input},
		"python3":  {"/usr/bin/python3", "-c", threadsScript},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "python3" {
				t.Skip("-short: a long run")
			}
			c := config(args...)
			c.Dir = filepath.Dir(input)
			c.Env = append(c.Env, "LD_PRELOAD="+library)
			for _, f := range []string{library, args[0]} {
				c.Mounts = append(c.Mounts, machine.Mount{Host: filepath.Dir(f), Guest: filepath.Dir(f)})
			}
			c.Seed = 7
			r := record(t, c, machine.SyncRecord{})
			want := interposed(r.out)
			if len(want) == 0 {
				t.Fatalf("no counts in %q", r.out)
			}
			got := r.called()
			for name, n := range want {
				if got[name] != n {
					t.Errorf("%s: %d recorded, %d counted", name, got[name], n)
				}
			}
			r.nested(t)
		})
	}
}

// TestOperationsThatDoNotSimplyReturn compares with the program's own log.
func TestOperationsThatDoNotSimplyReturn(t *testing.T) {
	plugin := build(t, "plugin.c", "-shared", "-fPIC")
	bin := build(t, "edges.c", "-ldl")
	for seed := uint64(1); seed <= 3; seed++ {
		c := config(bin, plugin)
		c.Seed = seed
		c.Mounts = []machine.Mount{{Host: filepath.Dir(plugin), Guest: filepath.Dir(plugin)}}
		r := record(t, c, machine.SyncRecord{Custom: []syncops.Custom{{Name: "special", Effect: "acquire"}}})
		own := r.ownCode(t, bin)
		got := r.sayings(t, func(e event.Sync) bool {
			name := r.threads[e.Thread] // other processes are silent
			return (name == "1" || name == "1.1") && own(e)
		})
		if got != r.out {
			t.Errorf("seed %d: %s", seed, firstDifference(got, r.out))
		}
		r.nested(t)
	}
}

// TestExceptions compares with the program's own log.
func TestExceptions(t *testing.T) {
	bin := build(t, "exceptions.cc")
	r := record(t, config(bin), machine.SyncRecord{})
	got := r.sayings(t, r.ownCode(t, bin))
	// The program cannot say that a call did not return.
	want := strings.ReplaceAll(r.out, "0 caught\n", "")
	got = strings.ReplaceAll(strings.ReplaceAll(got, "0 once unwound\n", ""), "1 cond_wait unwound\n", "")
	if got != want {
		t.Error(firstDifference(got, want))
	}
	ends := map[event.Phase]int{}
	for _, e := range r.syncs {
		if e.Op == event.OpOnce && strings.Contains(r.objects[e.Object].Name, "exceptions") {
			ends[e.Phase]++
		}
	}
	if ends[event.Enter] != 3 || ends[event.Unwound] != 2 || ends[event.Return] != 1 {
		t.Errorf("once operations: %v", ends)
	}
	r.nested(t)
}
