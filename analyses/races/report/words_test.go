package report_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// wordsRun is a run of a program that synchronizes by atomic instructions.
type wordsRun struct {
	engine string
	seed   uint64
	args   []string
}

func (w *wordsRun) run(t *testing.T, what machine.Record) {
	t.Helper()
	c := machine.DefaultConfig()
	c.Engine, c.Args, c.Dir, c.Cores, c.Seed = w.engine, w.args, filepath.Dir(w.args[0]), 3, w.seed
	c.Sched.Policy, c.Sched.Quantum = "random", 50
	c.Record, c.Stdout = &what, io.Discard
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%v: %+v, %v", w.args, r, err)
	}
}

// report analyses a run while it takes place.
func (w *wordsRun) report(t *testing.T, words report.Words) *report.Report {
	t.Helper()
	live := report.NewLive("run", report.Options{Benign: report.Mark, Words: words})
	defer live.Close()
	what := everything()
	what.Listener = live
	w.run(t, what)
	r, err := live.Report()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reportOfTrace analyses a run that was stored.
func (w *wordsRun) reportOfTrace(t *testing.T, words report.Words) *report.Report {
	t.Helper()
	var stored bytes.Buffer
	what := everything()
	what.To = &stored
	w.run(t, what)
	in, err := trace.NewReader("run", bytes.NewReader(stored.Bytes()), int64(stored.Len()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Make("run", in, report.Options{Benign: report.Mark, Words: words})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// racingVariables are the variables of a report's races, each once.
func racingVariables(r *report.Report) []string {
	var list []string
	for _, race := range r.Races {
		list = append(list, race.At.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestWords: with OrderWords a lock, a message and a stack of atomic instructions have no races, and plain data
// that they do not order has; with RaceWords what they order has races, too. The report of a trace is that of
// the run.
func TestWords(t *testing.T) {
	bin := compile(t, "words.c", "-O1", "-pthread")
	cases := []struct {
		args  []string
		words report.Words
		want  []string
	}{
		{[]string{"spin"}, report.OrderWords, nil},
		{[]string{"pass"}, report.OrderWords, nil},
		{[]string{"stack"}, report.OrderWords, nil},
		{[]string{"fork"}, report.OrderWords, nil},
		{[]string{"fork", "more"}, report.OrderWords, []string{""}}, // no variable
		{[]string{"spin", "more"}, report.OrderWords, []string{"unguarded"}},
		{[]string{"stack", "more"}, report.OrderWords, []string{"plain"}},
		{[]string{"spin"}, report.RaceWords, []string{"guarded", "lock_word"}},
		{[]string{"spin"}, report.AutoWords, []string{"guarded", "lock_word"}},
		{[]string{"pass"}, report.RaceWords, []string{"message"}},
	}
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		for _, c := range cases {
			w := wordsRun{engine, 3, append([]string{bin}, c.args...)}
			r := w.report(t, c.words)
			// No process races with one that has ended before it begins: in few runs they all do.
			for len(r.Races) == 0 && len(c.want) > 0 && w.seed < 10 {
				w.seed++
				r = w.report(t, c.words)
			}
			if got := racingVariables(r); !slices.Equal(got, c.want) {
				t.Errorf("engine %s, %v, %s: races at %v, want %v", engine, c.args, c.words, got, c.want)
			}
			if stored := w.reportOfTrace(t, c.words); !bytes.Equal(stored.JSON(), r.JSON()) {
				t.Errorf("engine %s, %v, %s: the trace has another report", engine, c.args, c.words)
			}
		}
	}
}

// Programs with a variable that locks, channels and counts of the languages order, and one that they do not.
const (
	goWords = `package main

import "sync"

var ordered, unordered int

func main() {
	var mu sync.Mutex
	var all sync.WaitGroup
	results := make(chan int, 3)
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 100 {
				mu.Lock()
				ordered += i
				mu.Unlock()
				unordered++
			}
			results <- i
		}()
	}
	for range 8 {
		<-results
	}
	all.Wait()
	println(ordered)
}
`
	rustWords = `use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread;
static mut ORDERED: u64 = 0;
static mut MESSAGE: u64 = 0;
static mut UNORDERED: u64 = 0;
fn main() {
    let lock = Arc::new(Mutex::new(0u64));
    let (send, receive) = mpsc::channel();
    // Bounded channels and flags have plain loads and stores alone.
    let (give, take) = mpsc::sync_channel::<Box<u64>>(2);
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let giver = thread::spawn(move || {
        for i in 0..20 { give.send(Box::new(i)).unwrap(); }
        unsafe { MESSAGE = 1 };
        raised.store(true, Ordering::Release);
    });
    let given: u64 = take.iter().map(|b| *b).sum();
    while !flag.load(Ordering::Acquire) { thread::yield_now(); }
    unsafe { assert!(MESSAGE == 1 && given == 190) };
    giver.join().unwrap();
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4).map(|i| {
        let (lock, send, start) = (lock.clone(), send.clone(), start.clone());
        thread::spawn(move || {
            start.wait();
            for _ in 0..100 {
                let mut sum = lock.lock().unwrap();
                *sum += i;
                unsafe { ORDERED += *sum };
                drop(sum);
                unsafe { UNORDERED += 1 };
            }
            send.send(i).unwrap();
        })
    }).collect();
    for t in threads { t.join().unwrap(); }
    drop(send);
    println!("{} {}", lock.lock().unwrap(), receive.iter().sum::<u64>());
}
`
)

// TestLanguages: the races of programs in Go and Rust are those of the variable that nothing orders. Under some
// seeds the goroutines that access it have the same thread.
func TestLanguages(t *testing.T) {
	for _, c := range []struct {
		file, source string
		compiler     []string
		pack         string
	}{
		{"words.go", goWords, []string{"go", "build", "-o"}, "golang"},
		{"words.rs", rustWords, []string{"rustc", "-A", "static_mut_refs", "-g", "-o"}, "rustc"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if _, err := exec.LookPath(c.compiler[0]); err != nil {
				t.Skipf("there is no %s: install the package %s", c.compiler[0], c.pack)
			}
			source, bin := filepath.Join(t.TempDir(), c.file), filepath.Join(t.TempDir(), "words")
			if err := os.WriteFile(source, []byte(c.source), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(c.compiler[0], append(c.compiler[1:], bin, source)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			found := 0
			for seed := range uint64(4) {
				w := wordsRun{engines.Direct, seed, []string{bin}}
				r := w.report(t, report.AutoWords)
				got := racingVariables(r)
				if r.Words != report.OrderWords || len(got) > 1 || len(got) == 1 && !strings.Contains(strings.ToLower(got[0]), "unordered") {
					t.Errorf("seed %d: %s, races at %v", seed, r.Words, got)
				}
				found += len(got)
			}
			if found == 0 {
				t.Error("no seed shows the race")
			}
		})
	}
}

// TestAtomicTypes: with debug information plain loads and stores of C++'s atomic types synchronize, too.
func TestAtomicTypes(t *testing.T) {
	bin := compile(t, "atomics.cc", "-lstdc++")
	for words, want := range map[report.Words][]string{
		report.OrderWords: {"unordered"}, report.AutoWords: {"unordered"}, report.RaceWords: {"flag", "message", "unordered"},
	} {
		for _, engine := range []string{engines.Direct, engines.Unicorn} {
			w := wordsRun{engine, 1, []string{bin}}
			if got := racingVariables(w.report(t, words)); !slices.Equal(got, want) {
				t.Errorf("engine %s, %s: races at %v, want %v", engine, words, got, want)
			}
		}
	}
}

// TestReferenceCounts: the reference counts of C++'s library order the end of an object after all of its uses, also in
// a program without debug information.
func TestReferenceCounts(t *testing.T) {
	bin := compile(t, "pointers.cc", "-g0", "-O2", "-pthread", "-lstdc++")
	for words, want := range map[report.Words][]string{report.AutoWords: {"unordered"}, report.RaceWords: {"", "unordered"}} {
		var found []string
		for seed := range uint64(4) {
			found = append(found, racingVariables((&wordsRun{engines.Auto, seed + 1, []string{bin}}).report(t, words))...)
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, want) {
			t.Errorf("%s: races at %q, want %q", words, found, want)
		}
	}
}

// TestOpenMP: what the constructs of OpenMP order has no races by default, although the threads of its library wait
// for each other by plain and atomic accesses, and what they do not order has.
func TestOpenMP(t *testing.T) {
	bin := compile(t, "openmp.c", "-O1", "-fopenmp")
	for _, c := range []struct {
		name string
		want []string
	}{
		{"worksharing", nil},
		{"exclusion", nil},
		{"tasks", nil},
		{"dependences", nil},
		{"unguarded", []string{"total"}},
		{"nowait", []string{"items"}},
		{"untied", []string{"total"}},
	} {
		var found []string
		for seed := range uint64(4) {
			w := wordsRun{engines.Auto, seed + 1, []string{bin, c.name}}
			r := w.report(t, report.AutoWords)
			found = append(found, racingVariables(r)...)
			if r.Words != report.CodeWords {
				t.Errorf("%s: the words are treated as by %s", c.name, r.Words)
			}
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, c.want) {
			t.Errorf("%s: races at %v, want %v", c.name, found, c.want)
		}
	}
}
