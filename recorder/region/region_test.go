package region_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/region"
	"github.com/heddle-dmt/heddle/sched"
)

// program has a function of which the number of instructions is known, exact, and a parallel part. exact(n) has
// 2n + 2 instructions.
const program = `
#include <pthread.h>
#include <setjmp.h>
#include "heddle.h"
long exact(long n);
__asm__(".globl exact\n.type exact, @function\nexact: mov %rdi, %rax\n1: dec %rax\njnz 1b\nret\n.size exact, .-exact");
static jmp_buf back;
__attribute__((noinline)) void leaves(int n) { if (n) longjmp(back, 1); __asm__ volatile(""); }
__attribute__((noinline)) int recursive(int n) { int r = n ? recursive(n - 1) + 1 : 0; __asm__ volatile("" : "+r"(r)); return r; }
__attribute__((noinline)) void start(void) { __asm__ volatile(""); }
__attribute__((noinline)) void stop(void) { __asm__ volatile(""); }
static void *thread(void *p) { exact(50000); return p; }
__attribute__((noinline)) void parallel(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, thread, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  __asm__ volatile("");
}
int main(void) {
  exact(1000000);
  recursive(5);
  if (setjmp(back) == 0) leaves(1);
  heddle_region_begin(); start();
  parallel();
  stop(); heddle_region_end();
  exact(2000000);
  return 0;
}`

func compile(t *testing.T) string {
	t.Helper()
	headers, err := filepath.Abs("../../guest/programs/suite/common")
	if err != nil {
		t.Fatal(err)
	}
	return gcctest.C(t, program, "-I"+headers)
}

func configOf(bin string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Stderr = []string{bin}, filepath.Dir(bin), io.Discard, io.Discard
	return c
}

// measure runs a program with a region.
func measure(t *testing.T, c machine.Config, text string) (*machine.Result, *region.Result, error) {
	t.Helper()
	spec, ok := region.Parse(text)
	if !ok || spec.String() != text {
		t.Fatalf("%q is read as %v", text, spec)
	}
	w := region.Watch(spec)
	r, err := machine.Run(context.Background(), c, job.WithRegion(w))
	if err != nil {
		t.Fatal(err)
	}
	return r, w.Result(), w.Check()
}

// TestInstructions: the instructions of a function that runs alone are those of its source, however the machine
// divides the run.
func TestInstructions(t *testing.T) {
	bin := compile(t)
	for name, change := range map[string]func(*machine.Config){
		"direct":  func(c *machine.Config) { c.Engine = "direct" },
		"unicorn": func(c *machine.Config) { c.Engine = "unicorn" },
		"random": func(c *machine.Config) {
			c.Sched = sched.Options{Policy: sched.Random, Granularity: "instruction", Quantum: 77}
		},
		"recorded": func(c *machine.Config) {
			c.Record = &machine.Record{To: io.Discard, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := configOf(bin)
			change(&c)
			plain, err := machine.Run(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			check := func(text string, entered, least, most uint64) *region.Result {
				t.Helper()
				r, got, err := measure(t, c, text)
				if err != nil {
					t.Fatal(err)
				}
				if r.Digest != plain.Digest || r.Cycles != plain.Cycles {
					t.Errorf("%s: the run is another one", text)
				}
				if got.Entered != entered || got.Instructions < least || got.Instructions > most || got.Open {
					t.Errorf("%s: %+v, want %d times, %d to %d instructions", text, got, entered, least, most)
				}
				return got
			}
			const threads = 3 * (2*50000 + 2)
			leaves, leaf := check("function:leaves", 1, 1, 60000), check("function:recursive", 1, 6, 100)
			if leaves.Jumped != 1 || leaf.Jumped != 0 {
				t.Errorf("calls that did not return: %d and %d, want 1 and 0", leaves.Jumped, leaf.Jumped)
			}
			if leaves.Begin < leaf.End {
				t.Errorf("recursive ends at %d, and leaves begins at %d", leaf.End, leaves.Begin)
			}
			marks := check("marks", 1, threads, threads+60000)
			calls := check("calls:start,stop", 1, threads, threads+60000)
			function := check("function:parallel", 1, threads, threads+60000)
			auto := check("auto", 1, threads, threads+60000)
			for _, x := range [][2]*region.Result{{marks, calls}, {calls, function}, {function, auto}} {
				if x[0].Instructions < x[1].Instructions || x[0].Begin > x[1].Begin || x[0].End < x[1].End {
					t.Errorf("%+v does not contain %+v", *x[0], *x[1])
				}
			}
		})
	}
}

// TestAlone: exact(1000000) and exact(2000000) run alone, and exact(50000) in three threads.
func TestAlone(t *testing.T) {
	c := configOf(compile(t))
	c.Cores, c.Sched = 1, sched.Options{Policy: sched.RR, Quantum: 1000}
	_, got, err := measure(t, c, "function:exact")
	if err != nil {
		t.Fatal(err)
	}
	const alone, parallel = 2*1000000 + 2 + 2*2000000 + 2, 3 * (2*50000 + 2)
	if got.Instructions < alone+parallel || got.Instructions > alone+parallel+60000 {
		t.Errorf("%+v, want at least %d instructions", got, alone+parallel)
	}
}

// TestMissing: a region that the program lacks, or does not enter, is said to be so.
func TestMissing(t *testing.T) {
	bin := compile(t)
	for text, want := range map[string]string{
		"function:nothing":   "no such function or mark",
		"calls:start,never":  "no such function or mark",
		"calls:stop,start":   "", // it is open at the end of the run
		"function:unreached": "no such function or mark",
	} {
		_, r, err := measure(t, configOf(bin), text)
		if want == "" && (err != nil || !r.Open) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %+v", text, err, r)
		}
	}
	one := gcctest.C(t, "int f(void) { return 1; } int main(void) { return 0; }")
	for _, text := range []string{"auto", "function:f"} {
		if _, _, err := measure(t, configOf(one), text); err == nil || !strings.Contains(err.Error(), "no thread has entered it") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := measure(t, configOf(one), "marks"); err == nil || !strings.Contains(err.Error(), "no such function or mark") {
		t.Errorf("marks: %v", err)
	}
	for _, text := range []string{"", "Auto", "function:", "function", "calls:a", "calls:,b", "calls:a,", "main"} {
		if spec, ok := region.Parse(text); ok {
			t.Errorf("%q is read as %v", text, spec)
		}
	}
}
