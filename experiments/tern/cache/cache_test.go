package cache_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// term is a truth about the first byte of the first argument.
type term func(p *symbolic.Pool, x *symbolic.Expr) *symbolic.Expr

func below(n uint64) term {
	return func(p *symbolic.Pool, x *symbolic.Expr) *symbolic.Expr { return p.ULT(x, p.Word(n, 8)) }
}

func above(n uint64) term {
	return func(p *symbolic.Pool, x *symbolic.Expr) *symbolic.Expr { return p.ULT(p.Word(n, 8), x) }
}

// file is a schedule of a program with a number of operations and with preconditions.
func file(program string, operations int, terms ...term) *hybrid.File {
	p := symbolic.NewPool()
	set := &preconditions.Set{Args: 2, Env: []string{"A=b"}}
	for _, t := range terms {
		set.Terms = append(set.Terms, t(p, p.Symbol("argv[1][0]", 8)))
	}
	s := &event.Schedule{Threads: []string{"1"}, Objects: map[event.ObjectID]string{}, Portable: true}
	for range operations {
		s.Operations = append(s.Operations, event.Operation{Part: event.SystemCall, Number: 1})
	}
	return &hybrid.File{
		Kind: "hybrid", Args: []string{"p", "x"}, Dir: "/", Model: "sc", Program: program, Schedule: s, Preconditions: set.Lines(),
	}
}

func openFile(t *testing.T, dir string) *cache.Cache {
	t.Helper()
	c, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func add(t *testing.T, c *cache.Cache, f *hybrid.File) cache.AddResult {
	t.Helper()
	a, err := c.Add(f)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func readEntries(t *testing.T, c *cache.Cache, program string) []*cache.Entry {
	t.Helper()
	list, damaged, err := c.Entries(program)
	if err != nil || len(damaged) > 0 {
		t.Fatal(damaged, err)
	}
	return list
}

// find returns the number of operations of the entry that admits an argument; 0: there is
// no such entry.
func find(t *testing.T, c *cache.Cache, program, argument string) int {
	t.Helper()
	in := &preconditions.Input{Args: []string{"q", argument}, Env: []string{"A=b"}}
	e := cache.NewTree(readEntries(t, c, program)).Find(in, func(*cache.Entry) bool { return true })
	if e == nil {
		return 0
	}
	return len(e.File.Schedule.Operations)
}

// The schedules that are kept, TERN sections 5.3 and 6.
func TestMerging(t *testing.T) {
	c := openFile(t, t.TempDir())
	if a := add(t, c, file("a", 1, below(10))); !a.New {
		t.Error("the first schedule is not new")
	}
	for _, x := range []struct {
		name     string
		f        *hybrid.File
		isNew    bool
		replaced int
		left     int
	}{
		{"the same again", file("a", 1, below(10)), false, 0, 1},
		{"stronger preconditions, another schedule", file("a", 2, below(5)), false, 0, 1},
		{"others", file("a", 3, above(20)), true, 0, 2},
		{"the same preconditions, another schedule: a backup", file("a", 4, below(10)), true, 0, 3},
		{"weaker ones, the same schedule", file("a", 1, below(11)), true, 1, 3},
		{"weaker ones, another schedule", file("a", 5, above(15)), true, 0, 4},
		{"another build", file("b", 1, below(10)), true, 0, 4},
	} {
		a := add(t, c, x.f)
		if n := len(readEntries(t, c, "a")); a.New != x.isNew || len(a.Replaced) != x.replaced || n != x.left {
			t.Errorf("%s: %+v, %d entries", x.name, a, n)
		}
	}
}

// Invariant 3, the order by rates, and the removal of an entry that is not followed.
func TestFinding(t *testing.T) {
	c := openFile(t, t.TempDir())
	first := add(t, c, file("a", 1, below('f')))
	add(t, c, file("a", 2, above('c'), below('k')))
	if n := find(t, c, "a", "b"); n != 1 {
		t.Errorf("b: schedule %d", n)
	}
	if n := find(t, c, "a", "g"); n != 2 {
		t.Errorf("g: schedule %d", n)
	}
	if n := find(t, c, "a", "z"); n != 0 {
		t.Errorf("z: schedule %d", n)
	}
	if n := find(t, c, "another build", "b"); n != 0 {
		t.Errorf("another build: schedule %d", n)
	}
	if n := find(t, c, "a", "d"); n != 1 {
		t.Errorf("d: schedule %d", n)
	}
	for i := range 4 {
		evicted, err := c.RecordTry(first.Name, false)
		if err != nil || evicted != (i == 3) {
			t.Fatalf("try %d: %v %v", i, evicted, err)
		}
		if n := find(t, c, "a", "d"); n != 2 {
			t.Errorf("d, after %d failures: schedule %d", i+1, n)
		}
	}
	if len(readEntries(t, c, "a")) != 1 {
		t.Error("a schedule that is never followed was kept")
	}
}

// Invariant 2.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	c := openFile(t, dir)
	a := add(t, c, file("a", 1, below(10)))
	add(t, c, file("a", 2, above(20)))
	db, err := sql.Open("sqlite3", filepath.Join(dir, "schedules.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE entries SET schedule = CAST(replace(CAST(schedule AS TEXT), 'term', 'temr') AS BLOB) WHERE name = ?", a.Name); err != nil {
		t.Fatal(err)
	}
	list, damaged, err := c.Entries("a")
	if err != nil || len(list) != 1 || len(damaged) != 1 || !strings.Contains(damaged[0].Error(), a.Name[:12]) {
		t.Fatalf("%v, %v, %v", list, damaged, err)
	}
	if len(readEntries(t, c, "a")) != 1 {
		t.Error("the damaged entry is still there")
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "schedules.db"), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Open(dir); err == nil {
		t.Error("a file that is no database was opened")
	}
	if _, err := cache.OpenExisting(t.TempDir()); err == nil {
		t.Error("a cache that is not there was opened")
	}
}

// A pack is one file, finds the same entries as the cache, and never changes.
func TestPack(t *testing.T) {
	c := openFile(t, t.TempDir())
	a := add(t, c, file("a", 1, below('f')))
	add(t, c, file("b", 2, below('f')))
	path := filepath.Join(t.TempDir(), "pack")
	if n, err := c.Pack(path, "a"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("%v", files)
	}
	if _, err := cache.Open(path); err == nil {
		t.Error("a pack is opened to be added to")
	}
	p, err := cache.OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if find(t, p, "a", "b") != 1 || find(t, p, "b", "b") != 0 {
		t.Error("the pack lacks entries")
	}
	if _, err := p.Add(file("a", 3, above('x'))); err == nil {
		t.Error("something was added to a pack")
	}
	if _, err := p.RecordTry(a.Name, false); err != nil || readEntries(t, p, "")[0].Tries != 0 {
		t.Error("a pack has changed")
	}
	other := openFile(t, t.TempDir())
	if n, damaged, err := other.Unpack(p); n != 1 || len(damaged) > 0 || err != nil {
		t.Fatal(n, damaged, err)
	}
	if find(t, other, "a", "b") != 1 {
		t.Error("an unpacked entry is not found")
	}
}

// Two caches open on one folder, used by several goroutines, lose nothing.
func TestSharing(t *testing.T) {
	dir := t.TempDir()
	one, two := openFile(t, dir), openFile(t, dir)
	var all sync.WaitGroup
	for i := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			c := []*cache.Cache{one, two}[i%2]
			f := file("a", i+1, above(uint64(10*i)), below(uint64(10*i+5)))
			if _, err := c.Add(f); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if n := len(readEntries(t, one, "a")); n != 10 {
		t.Errorf("%d entries of 10", n)
	}
}

// adder names the folder to which this process, started again, adds entries until it is
// killed.
const adder = "HEDDLE_CACHE_ADDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(adder); dir != "" {
		c, err := cache.Open(dir)
		for i := 0; err == nil; i++ {
			if _, err = c.Add(file(fmt.Sprint(i%3), i+1, above(uint64(i%250)), below(uint64(i%250+2)))); err == nil {
				fmt.Println(i)
			}
		}
		panic(err)
	}
	os.Exit(m.Run())
}

// Invariant 1: a process that is killed while it adds leaves a valid cache with everything
// that it had added.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	rounds := 4
	if testing.Short() {
		rounds = 3
	}
	total := 0
	for round := range rounds {
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), adder+"="+filepath.Join(dir, fmt.Sprint(round)))
		said, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		read := bufio.NewScanner(said)
		lines := 0
		for lines <= 2*round && read.Scan() {
			lines++
		}
		_ = p.Process.Kill() // at any point
		for read.Scan() {
			lines++
		}
		_ = p.Wait()
		c := openFile(t, filepath.Join(dir, fmt.Sprint(round)))
		list := readEntries(t, c, "")
		if len(list) < lines || len(list) > lines+1 {
			t.Errorf("round %d: %d entries, and %d were reported", round, len(list), lines)
		}
		total += len(list)
		if slices.ContainsFunc(list, func(e *cache.Entry) bool { return e.File == nil }) {
			t.Error("an entry without its schedule")
		}
		db, err := sql.Open("sqlite3", filepath.Join(dir, fmt.Sprint(round), "schedules.db"))
		if err != nil {
			t.Fatal(err)
		}
		var verdict string
		if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Errorf("round %d: %s %v", round, verdict, err)
		}
		db.Close()
	}
	t.Logf("%d entries", total)
}

// A look-up finds what the tree of all entries finds, through literal arguments, other terms, and none; and in a cache of
// the format that had no lookups.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	c := openFile(t, dir)
	literal := func(text string) *hybrid.File {
		f, p := file("a", len(text), nil...), symbolic.NewPool()
		set := &preconditions.Set{Args: 2, Env: []string{"A=b"}}
		for i, b := range []byte(text + "\x00") {
			set.Terms = append(set.Terms, p.Eq(p.Symbol(fmt.Sprintf("argv[1][%d]", i), 8), p.Word(uint64(b), 8)))
		}
		f.Preconditions = set.Lines()
		return f
	}
	for _, f := range []*hybrid.File{literal("abc"), literal("abcd"), file("a", 7, above('x')), file("b", 8), literal("")} {
		add(t, c, f)
	}
	db, err := sql.Open("sqlite3", filepath.Join(dir, "schedules.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 2 {
		for _, x := range []struct {
			program string
			args    []string
			want    int
		}{
			{"a", []string{"abc"}, 3},
			{"a", []string{"abcd"}, 4},
			{"a", []string{"ab"}, 0},
			{"a", []string{"y"}, 7},
			{"a", []string{"abc", "d"}, 0},
			{"b", []string{"abc"}, 8},
			{"d", []string{"abc"}, 0},
		} {
			in := &preconditions.Input{Args: append([]string{"q"}, x.args...), Env: []string{"A=b"}}
			e, damaged, err := c.Lookup(x.program, in, func(*cache.Entry) bool { return true })
			found := 0
			if e != nil {
				found = len(e.File.Schedule.Operations)
			}
			if found != x.want || err != nil || len(damaged) > 0 {
				t.Errorf("%s %q: %d, want %d; %v %v", x.program, x.args, found, x.want, damaged, err)
			}
			if len(x.args) == 1 && find(t, c, x.program, x.args[0]) != x.want {
				t.Errorf("%s %q: the tree finds another entry", x.program, x.args)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("DROP TRIGGER removed; DROP TABLE lookups; PRAGMA user_version = 1"); err != nil {
			t.Fatal(err)
		}
		c = openFile(t, dir)
	}
}

// What a look-up reads of an entry goes with the entry, and an entry that differs from it is damaged.
func TestLookupOfChangedEntry(t *testing.T) {
	dir := t.TempDir()
	c := openFile(t, dir)
	kept, removed := add(t, c, file("a", 1, below(9))), add(t, c, file("a", 2, above('x')))
	if err := c.Remove(removed.Name); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(dir, "schedules.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM lookups").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d lookups of one entry: %v", n, err)
	}
	if _, err := db.Exec("UPDATE lookups SET preconditions = ?", "args 2\nenv \"A=b\""); err != nil {
		t.Fatal(err)
	}
	in := &preconditions.Input{Args: []string{"q", "z"}, Env: []string{"A=b"}}
	e, damaged, err := c.Lookup("a", in, func(*cache.Entry) bool { return true })
	if e != nil || len(damaged) != 1 || err != nil || !strings.Contains(damaged[0].Error(), kept.Name[:12]) {
		t.Errorf("%v, %v, %v", e, damaged, err)
	}
}
