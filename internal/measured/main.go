// Command measured measures the tables of docs whose figures come from single commands, tests and benchmarks, as
// docs/measured.yaml lists them, and writes them into the pages:
//
//	go run ./internal/measured racey-pruning
//	go run ./internal/measured -documents
//
// The cells measured are kept in docs/measured.json, with a digest of the table's definition: a test says which tables
// were measured by other commands than the file has now. Without names all such tables are measured;
// -documents only writes the stored cells into the pages. A table is between the lines
//
//	<!-- begin: measured NAME -->
//	<!-- end: measured -->
//
// Tables of the papers are made by paper-scripts/papers, and that of docs/performance.md by internal/bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	documents := flag.Bool("documents", false, "only write the stored tables into the pages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stderr, ".", *documents, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "measured:", err)
		os.Exit(1)
	}
}

// run measures the named tables of a repository, or all that are out of date, and writes the pages. A table that
// cannot be measured does not stop the others.
func run(ctx context.Context, progress io.Writer, root string, documents bool, names []string) error {
	p, err := load(root)
	if err != nil {
		return err
	}
	if documents {
		return p.writePages()
	}
	tables, err := p.choose(names)
	if err != nil {
		return err
	}
	var failures []error
	for _, t := range tables {
		fmt.Fprintf(progress, "measured: %s\n", t.Name)
		rows, err := t.measure(ctx, root)
		if ctx.Err() != nil {
			return errors.New("interrupted; the tables measured so far are stored")
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.Name, err))
			continue
		}
		if p, err = load(root); err != nil { // with tables that others have measured meanwhile
			return err
		}
		p.stored[t.Name] = &stored{Definition: t.digest(), Rows: rows}
		if err := errors.Join(p.store(), p.writePages()); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// choose returns the tables of given names, or all that are out of date.
func (p *plan) choose(names []string) (chosen []*table, err error) {
	var known []string
	for i := range p.Tables {
		t := &p.Tables[i]
		known = append(known, t.Name)
		if slices.Contains(names, t.Name) || len(names) == 0 && !p.isCurrent(t) {
			chosen = append(chosen, t)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s is no table of %s; there are %s", name, planFile, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
