// Command install builds every program of the suite into a folder, in every variant or in the
// variants that are named by their folders: FOLDER/O2-static-g/fft and the like, and
// fft-buggy for buggy forms.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/guest/programs/suite"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: install FOLDER [VARIANT...]")
		os.Exit(2)
	}
	if err := install(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "install: %v\n", err)
		os.Exit(1)
	}
}

type job struct {
	program suite.Program
	variant suite.Variant
}

// install builds with as many compilers at once as the host has processors. It
// continues after a failure and reports all failures.
func install(dir string, variants []string) error {
	all, err := suite.All()
	if err != nil {
		return err
	}
	var known []string
	for _, v := range suite.Variants(suite.Fixed) {
		known = append(known, v.Folder())
	}
	for _, v := range variants {
		if !slices.Contains(known, v) {
			return fmt.Errorf("found the variant %q, expected one of %v", v, known)
		}
	}
	jobs := make(chan job)
	failures := make(chan error)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for j := range jobs {
				if err := j.do(dir); err != nil {
					failures <- err
				}
			}
		}()
	}
	go func() {
		for _, p := range all {
			for _, form := range p.Forms {
				for _, v := range suite.Variants(form) {
					if len(variants) == 0 || slices.Contains(variants, v.Folder()) {
						jobs <- job{p, v}
					}
				}
			}
		}
		close(jobs)
		workers.Wait()
		close(failures)
	}()
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return err
}

// do puts the build at its place in the folder, unless it is already there.
func (j job) do(dir string) error {
	built, err := j.program.Build(j.variant)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, j.variant.Folder(), j.variant.File(j.program))
	if same(built, to) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	tmp := to + ".new"
	_ = os.Remove(tmp)
	if os.Link(built, tmp) != nil {
		if err := copyFile(built, tmp); err != nil {
			return err
		}
	}
	return os.Rename(tmp, to)
}

func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
