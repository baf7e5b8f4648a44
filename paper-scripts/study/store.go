package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

// Plan is a table whose rows are measured one by one.
type Plan struct {
	Head  []table.Column
	Notes []string
	Rows  []Row
}

// Row is a row that is to be measured.
type Row struct {
	// Name is unique in the table. Key is all that the row depends on besides the
	// command itself; it goes into JSON.
	Name string
	Key  any
	// Measure makes the row's cells.
	Measure func(context.Context) ([]string, error)
}

// storedTable is a stored table.
type storedTable struct {
	Head  []table.Column
	Notes []string
	Rows  []storedRow
}

// storedRow is a stored row; its key has the settings with which it was measured.
type storedRow struct {
	Name, Key string
	Cells     []string
}

func (r *storedTable) toTable() *table.Table {
	t := &table.Table{Head: r.Head, Notes: r.Notes}
	for _, x := range r.Rows {
		t.Rows = append(t.Rows, x.Cells)
	}
	return t
}

// loadTable reads a stored table; without a file it is empty, and the error says so.
func loadTable(file string) (*storedTable, error) {
	r := &storedTable{}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no result of this command (%w): remove it", file, err)
	}
	for i, x := range r.Rows {
		if len(x.Cells) != len(r.Head) {
			return nil, fmt.Errorf("%s is no result of this command (row %d has %d cells and the head %d): remove it",
				file, i+1, len(x.Cells), len(r.Head))
		}
	}
	return r, nil
}

// saveTo writes a table, at once or not at all.
func (r *storedTable) saveTo(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return outfile.WriteBytes(file, append(text, '\n'))
}

// measureRows makes the table: rows that are stored with the same key are taken from
// there, all others measured, and stored as they are finished. A row that fails does not stop the others.
func (p *Plan) measureRows(ctx context.Context, o *Options, old *storedTable, file string) (*table.Table, error) {
	r := &storedTable{Head: p.Head, Notes: p.Notes}
	var failures []error
	for i, planned := range p.Rows {
		id, err := resultIdentity(planned.Key)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(old.Rows, func(x storedRow) bool {
			return x.Name == planned.Name && x.Key == id && len(x.Cells) == len(p.Head)
		})
		if at >= 0 {
			r.Rows = append(r.Rows, old.Rows[at])
			continue
		}
		o.Say("%d of %d: %s", i+1, len(p.Rows), planned.Name)
		cells, err := planned.Measure(ctx)
		if ctx.Err() != nil { // what was measured until then, and any error, may be of runs that were cut off
			return nil, ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", planned.Name, err)
			if errors.Is(err, context.Canceled) {
				return nil, err
			}
			o.Say("  %v", err)
			failures = append(failures, err)
			continue
		}
		r.Rows = append(r.Rows, storedRow{planned.Name, id, cells})
		kept := *r
		kept.Rows = append(slices.Clone(r.Rows), otherRows(old.Rows, r)...)
		if err := kept.saveTo(file); err != nil {
			return nil, err
		}
	}
	return r.toTable(), errors.Join(failures...)
}

// otherRows are the rows whose names are not among those of a result, if they have as many
// cells: an older command may have had other columns.
func otherRows(rows []storedRow, done *storedTable) (list []storedRow) {
	for _, x := range rows {
		if len(x.Cells) == len(done.Head) && !slices.ContainsFunc(done.Rows, func(d storedRow) bool { return d.Name == x.Name }) {
			list = append(list, x)
		}
	}
	return list
}

// resultIdentity is the digest of everything that a result depends on: the command that makes it,
// and the key.
func resultIdentity(key any) (string, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	self, err := executableDigest()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(slices.Clone(self), text...))
	return hex.EncodeToString(sum[:]), nil
}

// executableDigest is the digest of the running command.
var executableDigest = sync.OnceValues(func() ([]byte, error) {
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	_, err = io.Copy(h, file)
	return h.Sum(nil), errors.Join(err, file.Close())
})
