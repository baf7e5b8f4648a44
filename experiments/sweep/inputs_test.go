package sweep

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/job"
)

func contents(t *testing.T, kind string, size job.Size, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := (Input{Generate: kind, Size: size, Seed: seed}).writeGenerated(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGeneratorsMakeTheSameOfTheSameSeed(t *testing.T) {
	for _, kind := range GeneratorNames() {
		for _, size := range []job.Size{1, 7, 4096, 100_001} {
			one, two := contents(t, kind, size, 1), contents(t, kind, size, 1)
			if len(one) != int(size) || !bytes.Equal(one, two) {
				t.Errorf("%s of %d bytes: %d bytes, equal: %v", kind, size, len(one), bytes.Equal(one, two))
			}
		}
		if kind != "zeros" && bytes.Equal(contents(t, kind, 4096, 1), contents(t, kind, 4096, 2)) {
			t.Errorf("%s does not depend on its seed", kind)
		}
		// A longer one begins like a shorter one.
		if !bytes.HasPrefix(contents(t, kind, 5000, 3), contents(t, kind, 4000, 3)) {
			t.Errorf("%s depends on its size", kind)
		}
	}
}

// TestTextCompressesLikeProse: English prose shrinks to 30 to 40 % under gzip.
func TestTextCompressesLikeProse(t *testing.T) {
	text := contents(t, "text", 1<<20, 1)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if share := float64(b.Len()) / float64(len(text)); share < 0.2 || share > 0.5 {
		t.Errorf("compressed to %.2f of its size", share)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if len(line) > 100 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestNumbersAreNumbers(t *testing.T) {
	lines := strings.Split(string(contents(t, "numbers", 10_000, 1)), "\n")
	for _, line := range lines[:len(lines)-1] {
		if _, err := strconv.ParseUint(line, 10, 32); err != nil {
			t.Error(err)
		}
	}
}

func TestPrepare(t *testing.T) {
	host := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(host, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	x := &Experiment{Inputs: []Input{{Name: "text", Generate: "text", Size: 100}, {Name: "tool", File: host}}}
	dir := filepath.Join(t.TempDir(), "inputs")
	first, err := x.prepareInputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "text"))
	if err != nil {
		t.Fatal(err)
	}
	// Damage one and add another; both are put right.
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	second, err := x.prepareInputs(dir)
	if err != nil || first["tool"] != second["tool"] || first["text"] != second["text"] {
		t.Errorf("digests %v, then %v, %v", first, second, err)
	}
	again, err := os.Stat(filepath.Join(dir, "text"))
	if err != nil || !os.SameFile(info, again) {
		t.Errorf("an input that was right was made anew: %v", err)
	}
	if tool, err := os.Stat(filepath.Join(dir, "tool")); err != nil || tool.Mode().Perm() != 0o755 {
		t.Errorf("the program's mode is %v, %v", tool.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestInputsOfShards: sweeps that start at the same time find or make the same inputs, and one that finds them
// right writes nothing into the folder.
func TestInputsOfShards(t *testing.T) {
	x := &Experiment{Inputs: []Input{{Name: "text", Generate: "text", Size: 300_000}, {Name: "zeros", Generate: "zeros", Size: 70_000}}}
	dir := filepath.Join(t.TempDir(), "inputs")
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := x.prepareInputs(dir)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.prepareInputs(dir); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(dir); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the folder was changed: %v", err)
	}
	// One byte less, one more, another, and another mode are not right.
	path := filepath.Join(dir, "text")
	right, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(right)
	other[250_000]++
	for name, content := range map[string][]byte{"shorter": right[1:], "longer": append(bytes.Clone(right), 'x'), "other": other, "empty": nil} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if x.Inputs[0].isMade(path) {
			t.Errorf("%s is right", name)
		}
	}
	if err := os.WriteFile(path, right, 0o644); err != nil || !x.Inputs[0].isMade(path) {
		t.Errorf("the right one is not: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil || x.Inputs[0].isMade(path) {
		t.Errorf("another mode is right: %v", err)
	}
}
