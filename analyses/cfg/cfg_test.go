package cfg_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// graph returns the graph of a C program's function, by name, and of all that it calls.
func graph(t *testing.T, source, function string) (*cfg.Graph, *cfg.Function) {
	t.Helper()
	bin := gcctest.C(t, source, "-fno-inline", "-fno-tree-switch-conversion", "-no-pie", "-fcf-protection=none")
	m, err := cfg.OpenImage(bin, 0)
	if err != nil {
		t.Fatal(err)
	}
	y, ok := m.FunctionNamed(function)
	if !ok {
		t.Fatalf("no function %s", function)
	}
	g := cfg.Build(m, cfg.DefaultModels(), &cfg.Observations{Entries: []uint64{y.Addr}})
	return g, g.FunctionAt(y.Addr)
}

// calling returns the block of a function that calls an import.
func calling(t *testing.T, f *cfg.Function, name string) *cfg.Block {
	t.Helper()
	for _, b := range f.Blocks {
		if b.Import == name {
			return b
		}
	}
	t.Fatalf("%s does not call %s", f.Name, name)
	return nil
}

// dominates reports whether a is on every path from b to the end.
func dominates(a, b *cfg.Block) bool {
	for d := b; d != nil; d = d.PostDominator() {
		if d == a {
			return true
		}
	}
	return false
}

const program = `
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
static void fatal(const char *text) { puts(text); exit(1); }
int branches(int a, int b) {
  if (a > b) putchar('x');
  else getchar();
  for (int i = 0; i < a; i++) rand();
  assert(b > 0);
  if (a == 77) fatal("77");
  abs(a);
  return atoi("1");
}
int choose(int k) {
  switch (k) {
  case 0: return puts("zero");
  case 1: return getchar();
  case 2: return rand();
  case 3: return putchar(3);
  case 4: return system("true");
  case 5: return atoi("5");
  }
  return 0;
}
int pick(int (*f)(int), int x) { return f(x) + 1; }
int main(int argc, char **argv) { return branches(argc, 2) + choose(argc) + pick(choose, argc); }
`

func TestStructure(t *testing.T) {
	g, f := graph(t, program, "branches")
	put, get, loop, last := calling(t, f, "putchar"), calling(t, f, "getchar"), calling(t, f, "rand"), calling(t, f, "atoi")
	first := f.First
	for _, b := range []*cfg.Block{put, get, loop} {
		if dominates(b, first) {
			t.Errorf("the call of %s is on every way", b.Import)
		}
	}
	if dominates(last, first) {
		t.Error("atoi is called if the assertion fails")
	}
	if fail := calling(t, f, "__assert_fail"); !fail.NoReturn || len(fail.Next) > 0 {
		t.Error("__assert_fail returns")
	}
	fatal := slices.IndexFunc(g.Functions, func(f *cfg.Function) bool { return strings.HasPrefix(f.Name, "fatal") })
	if fatal < 0 {
		t.Fatal("fatal is not in the graph")
	}
	for _, b := range f.Blocks {
		if slices.Contains(b.Calls, g.Functions[fatal]) && (!b.NoReturn || len(b.Next) > 0) {
			t.Error("fatal returns, and only calls exit in the end")
		}
	}
	if d := put.Next[0].PostDominator(); put.Next[0] != get.Next[0] && d == nil {
		t.Error("the two ways do not meet")
	}
}

// A switch through a table has all its cases, although nothing was executed; the target of
// a call through a pointer is unknown.
func TestTables(t *testing.T) {
	_, f := graph(t, program, "choose")
	for _, name := range []string{"puts", "getchar", "rand", "putchar", "system", "atoi"} {
		calling(t, f, name)
	}
	for _, b := range f.Blocks {
		if b.Unknown {
			t.Errorf("%#x goes who knows where", b.Addr)
		}
	}
	_, f = graph(t, program, "pick")
	unknown := 0
	for _, b := range f.Blocks {
		if b.Unknown {
			unknown++
		}
	}
	if unknown != 1 {
		t.Errorf("%d blocks go who knows where, want 1", unknown)
	}
}

// Post-dominators of random graphs agree with the definition: the blocks on every path to
// the end.
func TestPostDominators(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		n := 2 + r.IntN(14)
		blocks := make([]*cfg.Block, n)
		for i := range blocks {
			blocks[i] = &cfg.Block{Index: i}
		}
		text := ""
		for i, b := range blocks {
			for range r.IntN(4) {
				next := blocks[r.IntN(n)]
				if !slices.Contains(b.Next, next) {
					b.Next = append(b.Next, next)
					text += fmt.Sprintf(" %d-%d", i, next.Index)
				}
			}
			b.Leaves = len(b.Next) == 0
		}
		got := cfg.PostDominators(blocks)
		for i, b := range blocks {
			if !reaches(b, nil) {
				continue
			}
			if want := nearest(blocks, b); got[i] != want {
				t.Fatalf("round %d, %s: the post-dominator of %d is %v, want %v", round, text, i, number(got[i]), number(want))
			}
		}
	}
}

func number(b *cfg.Block) int {
	if b == nil {
		return -1
	}
	return b.Index
}

// reaches reports whether a path leads from a block to the end that avoids another block.
func reaches(from, without *cfg.Block) bool {
	seen := map[*cfg.Block]bool{}
	work := []*cfg.Block{from}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		if seen[b] || b == without {
			continue
		}
		seen[b] = true
		if b.Leaves {
			return true
		}
		work = append(work, b.Next...)
	}
	return false
}

// nearest returns the post-dominator of a block that all its other post-dominators
// post-dominate.
func nearest(blocks []*cfg.Block, b *cfg.Block) *cfg.Block {
	var all []*cfg.Block
	for _, d := range blocks {
		if d != b && reaches(d, nil) && !reaches(b, d) {
			all = append(all, d)
		}
	}
	for _, d := range all {
		if !slices.ContainsFunc(all, func(e *cfg.Block) bool { return e != d && reaches(d, e) }) {
			return d
		}
	}
	return nil
}

func TestModels(t *testing.T) {
	m := cfg.DefaultModels()
	if !m.Of("exit").NoReturn || m.Of("malloc").Result != "fresh" || !m.Of("pthread_mutex_lock").Event {
		t.Error("exit, malloc or pthread_mutex_lock")
	}
	if u := m.Of("unheard_of"); !u.Event || len(u.Writes) != 6 {
		t.Errorf("a function without a model: %+v", u)
	}
	for text, want := range map[string]string{
		"- {result: fresh}":                "no function",
		"- {function: f, result: gold}":    `result "gold"`,
		"- {function: f, writes: [7]}":     "argument 7",
		"- {function: f, allocates: true}": "allocates",
	} {
		if _, err := cfg.ReadModels(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	mine, err := cfg.ReadModels(strings.NewReader("- {function: pool_get, result: fresh, opaque: true}"))
	if err != nil || m.With(mine).Of("pool_get").Result != "fresh" {
		t.Errorf("%v", err)
	}
}

// TestLibrariesOfAnImage: calls between the files of an image lead to the function that the dynamic linker finds, calls of
// other files to an import, and a variable that the program copies has the library's value.
func TestLibrariesOfAnImage(t *testing.T) {
	library := gcctest.C(t, `
		#include <stdio.h>
		int shared[2] = {7, 8};
		int both(int x) { return x; }
		int twice(int x) { puts("twice"); return both(2 * x); }`, "-shared", "-fPIC")
	program := gcctest.C(t, `
		extern int shared[2];
		extern int twice(int);
		int both(int x) { return x + 1; }
		int main(void) { return twice(shared[1]); }`, "-fcf-protection=none", library)
	const at, libraryAt = 0x10000000, 0x20000000
	m, err := cfg.OpenImage(program, at, cfg.File{Path: library, Bias: libraryAt})
	if err != nil {
		t.Fatal(err)
	}
	main, _ := m.FunctionNamed("main")
	g := cfg.Build(m, cfg.DefaultModels(), &cfg.Observations{Entries: []uint64{main.Addr}})
	called := func(f *cfg.Function) (list []uint64, imports []string) {
		for _, b := range f.Blocks {
			for _, c := range b.Calls {
				list = append(list, c.Entry)
			}
			if b.Import != "" {
				imports = append(imports, b.Import)
			}
		}
		return list, imports
	}
	in, of := gcctest.Symbols(t, program), gcctest.Symbols(t, library)
	calls, imports := called(g.FunctionAt(main.Addr))
	if want := libraryAt + of["twice"].Value; !slices.Equal(calls, []uint64{want}) || len(imports) > 0 {
		t.Errorf("main calls %#x and %v, want %#x", calls, imports, want)
	}
	calls, imports = called(g.FunctionAt(libraryAt + of["twice"].Value))
	if want := at + in["both"].Value; !slices.Equal(calls, []uint64{want}) || !slices.Equal(imports, []string{"puts"}) {
		t.Errorf("twice calls %#x and %v, want %#x and puts", calls, imports, want)
	}
	var word [8]byte
	if m.Read(at+in["shared"].Value, word[:]); word != [8]byte{7, 0, 0, 0, 8} {
		t.Errorf("the copied variable has % x", word)
	}
	if m.Contains(0x18000000) || !m.Contains(libraryAt) || m.OwnsCode(at) {
		t.Error("the image contains what lies between its files, or not its files")
	}
}

// TestStackProtection: the branch to __stack_chk_fail is no branch, since accesses stay within their objects.
func TestStackProtection(t *testing.T) {
	m, err := cfg.OpenImage(gcctest.C(t, `
		void fill(char *);
		__attribute__((noinline)) int plain(void) { char b[16]; fill(b); return b[3]; }
		void fill(char *b) { b[3] = 5; }
		int main(void) { return plain(); }`, "-fstack-protector-all", "-no-pie"), 0)
	if err != nil {
		t.Fatal(err)
	}
	y, _ := m.FunctionNamed("plain")
	g := cfg.Build(m, cfg.DefaultModels(), &cfg.Observations{Entries: []uint64{y.Addr}})
	fails := calling(t, g.FunctionAt(y.Addr), "__stack_chk_fail")
	if !g.IsImpossible(fails) || len(fails.Prev) > 0 {
		t.Errorf("%d blocks lead to __stack_chk_fail", len(fails.Prev))
	}
}
