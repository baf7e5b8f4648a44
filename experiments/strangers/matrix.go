package strangers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// Options choose the cells that are run.
type Options struct {
	// Heddle is the executable that is tried, Store the folder of results, and Published the file of results that
	// are used if the folder has none; empty: there is no such file.
	Heddle, Store, Published string
	// Programs and Columns are the names of those that are run; none: all.
	Programs, Columns []string
	// Again runs cells that are stored, too; Failed those that are stored and do not work.
	Again, Failed bool
	// Workers is the number of cells that are run at the same time; no result but times depends on it.
	Workers int
	// Progress gets a line for each cell; nil: none.
	Progress io.Writer
}

// Matrix are the results of a corpus: a row for each program and a cell in it for each column. A cell
// that was not run is nil.
type Matrix struct {
	Corpus *Corpus
	Cells  [][]*Cell
}

// selected returns the positions of the programs and columns that the options choose.
func (c *Corpus) selected(o Options) (programs, columns []int, err error) {
	var names, titles []string
	for _, p := range c.Programs {
		names = append(names, p.Name)
	}
	for _, col := range Columns() {
		titles = append(titles, col.Name)
	}
	if programs, err = positions("program", names, o.Programs); err == nil {
		columns, err = positions("column", titles, o.Columns)
	}
	return programs, columns, err
}

func positions(kind string, names, wanted []string) (list []int, err error) {
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, errNames.New(kind, w, strings.Join(names, ", "))
		}
	}
	for i, name := range names {
		if len(wanted) == 0 || slices.Contains(wanted, name) {
			list = append(list, i)
		}
	}
	return list, nil
}

// Stored reads the results made with this corpus that are in a folder or, if it does not have them, published.
func (c *Corpus) Stored(folder, published string) (*Matrix, error) {
	others, err := readPublished(published)
	if err != nil {
		return nil, err
	}
	m := &Matrix{Corpus: c}
	for _, p := range c.Programs {
		var row []*Cell
		for _, column := range Columns() {
			cell, err := store(folder).load(p.Name, column.Name)
			if err != nil {
				return nil, err
			}
			key, err := c.key(p, column)
			if err != nil {
				return nil, err
			}
			if cell == nil || cell.Key != key {
				cell = others[[2]string{p.Name, column.Name}]
			}
			if cell != nil && cell.Key != key {
				cell = nil
			}
			row = append(row, cell)
		}
		m.Cells = append(m.Cells, row)
	}
	return m, nil
}

// Run runs the chosen cells that are not stored yet, and returns all.
func (c *Corpus) Run(ctx context.Context, o Options) (*Matrix, error) {
	programs, columns, err := c.selected(o)
	if err != nil {
		return nil, err
	}
	m, err := c.Stored(o.Store, o.Published)
	if err != nil {
		return nil, err
	}
	type place struct{ program, column int }
	var missing []place
	for _, i := range programs {
		for _, j := range columns {
			if cell := m.Cells[i][j]; cell == nil || o.Again || o.Failed && cell.State != Works {
				missing = append(missing, place{i, j})
			}
		}
	}
	var mutex sync.Mutex
	var failed error
	done := 0
	var group sync.WaitGroup
	slots := make(chan struct{}, max(o.Workers, 1))
	for _, at := range missing {
		slots <- struct{}{}
		mutex.Lock()
		stop := errors.Is(failed, errStore) || ctx.Err() != nil
		mutex.Unlock()
		if stop {
			<-slots
			break
		}
		group.Add(1)
		go func() {
			defer func() { <-slots; group.Done() }()
			cell, err := c.measure(ctx, o, c.Programs[at.program], Columns()[at.column])
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				err = store(o.Store).save(*cell)
			}
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			m.Cells[at.program][at.column] = cell
			if done++; o.Progress != nil {
				fmt.Fprintf(o.Progress, "%d of %d: %s, %s: %s: %s (%.1f s)\n", done, len(missing), cell.Program, cell.Column, cell.State, cell.Text, cell.Seconds)
			}
		}()
	}
	group.Wait()
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	return m, failed
}

// measure runs a cell.
func (c *Corpus) measure(ctx context.Context, o Options, p Program, column Column) (*Cell, error) {
	key, err := c.key(p, column)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "heddle-strangers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &session{corpus: c, program: p, heddle: o.Heddle, dir: dir, budget: newBudget(c.Limits)}
	text, err := column.measure(s, ctx)
	cell := &Cell{Program: p.Name, Column: column.Name, Key: key, State: Works, Text: text, Seconds: float64(c.Limits.Seconds) - s.budget.seconds}
	var f failure
	if errors.As(err, &f) {
		cell.State, cell.Text = f.State, strings.ReplaceAll(f.Text, dir, "")
		err = nil
	}
	return cell, err
}
