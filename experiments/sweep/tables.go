package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errStoreOfSeveral = errs.Define("table-one-store",
	"one result store is named for {count} experiments",
	"With `heddle experiment table --store` the results of an experiment are read from that file, which cannot be those of several.",
	"Leave the store out, or name one experiment file.")

// Tables is the table of an experiment or, of several files, one table with the columns of all, the
// first of which names the experiment.
func Tables(paths []string, o Options, s Selection) (*table.Table, error) {
	if len(paths) > 1 && o.Store != "" {
		return nil, errStoreOfSeveral.New(len(paths))
	}
	var names []string
	var tables []*table.Table
	for _, path := range paths {
		x, err := Load(path)
		if err != nil {
			return nil, err
		}
		t, err := x.Table(o, s)
		if err != nil && len(paths) > 1 {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if err != nil {
			return nil, err
		}
		names, tables = append(names, x.Name), append(tables, t)
	}
	if len(tables) == 1 {
		return tables[0], nil
	}
	return joinTables(names, tables), nil
}

// joinTables makes one table of several. A column of one table comes after the columns that precede it
// there.
func joinTables(names []string, tables []*table.Table) *table.Table {
	all := &table.Table{Head: []table.Column{{Name: "experiment", Key: "experiment"}}}
	for _, t := range tables {
		at := 1
		for _, column := range t.Head {
			if i := all.Find(column.Key); i >= 0 {
				at = max(at, i+1)
				continue
			}
			all.Head = slices.Insert(all.Head, at, column)
			at++
		}
	}
	for i, t := range tables {
		for _, cells := range t.Rows {
			row := []string{names[i]}
			for _, column := range all.Head[1:] {
				cell := missing
				if k := t.Find(column.Key); k >= 0 {
					cell = cells[k]
				}
				row = append(row, cell)
			}
			all.Rows = append(all.Rows, row)
		}
		for _, note := range t.Notes {
			if note = strings.TrimSpace(note); !slices.Contains(all.Notes, note) {
				all.Notes = append(all.Notes, note)
			}
		}
	}
	return all
}
