package tern_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/tern"
	"github.com/heddle-dmt/heddle/experiments/tern/cache"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// memoizer names the folder with a program and a cache; this process, started again with
// it, memoizes the program until it is killed.
const memoizer = "HEDDLE_MEMOIZER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(memoizer); dir != "" {
		panic(memoizeForever(dir))
	}
	os.Exit(m.Run())
}

// memoizeForever memoizes one input after the other, and prints its progress.
func memoizeForever(dir string) error {
	c, err := cache.Open(filepath.Join(dir, "cache"))
	for i := 2; err == nil; i = 2 + (i-1)%6 {
		err = memoizeOne(dir, strconv.Itoa(i), c)
	}
	return err
}

func memoizeOne(dir, argument string, c *cache.Cache) error {
	file, err := os.CreateTemp(dir, "trace")
	if err != nil {
		return err
	}
	defer file.Close()
	defer os.Remove(file.Name())
	fmt.Println("begun")
	if _, err := tern.Record(context.Background(), divided(dir, argument), file); err != nil {
		return err
	}
	fmt.Println("recorded")
	m, err := tern.Make(context.Background(), file.Name(), tern.Options{})
	if err != nil {
		return err
	}
	fmt.Println("made")
	if _, err := c.Add(m.File); err != nil {
		return err
	}
	fmt.Println("added")
	return nil
}

// divided is a run of figure 3's program with a number of threads.
func divided(dir, threads string) machine.Config {
	return config(dir, filepath.Join(dir, "divide"), threads, threads, "0")
}

// A memoizer that is killed at any point leaves a valid cache with everything that it had
// added, and the next one continues with it.
func TestKilledMemoizer(t *testing.T) {
	dir := t.TempDir()
	if err := os.Link(gcctest.File(t, "../concolicrun/testdata/divide.c", "-fno-inline", "-no-pie"), filepath.Join(dir, "divide")); err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{}
	// Kill after these lines: while it starts, records, makes a schedule, adds it, and
	// begins again.
	for _, lines := range []int{0, 1, 2, 3, 4, 6, 7} {
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), memoizer+"="+dir)
		said, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		read := bufio.NewScanner(said)
		count := 0
		for count < lines && read.Scan() {
			count++
		}
		_ = p.Process.Kill()
		for read.Scan() {
			count++
		}
		_ = p.Wait()
		for i := range count / 4 {
			added[strconv.Itoa(2+i)] = true
		}
		valid(t, dir, added)
	}
	if len(added) == 0 {
		t.Error("nothing was ever added")
	}
}

// valid checks that a cache is intact, and admits inputs.
func valid(t *testing.T, dir string, inputs map[string]bool) {
	t.Helper()
	c, err := cache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for input := range inputs {
		with := divided(dir, input)
		e, damaged, err := tern.Lookup(&with, c)
		if e == nil || len(damaged) > 0 || err != nil {
			t.Errorf("%s was added, and is not found: %v %v", input, damaged, err)
		}
	}
	db, err := sql.Open("sqlite3", filepath.Join(dir, "cache", "schedules.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("%s %v", verdict, err)
	}
}
