package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-dmt/heddle/internal/output"
)

// pageRows is the number of rows that are read at once.
const pageRows = 1000

// readPages yields the rows of a table in the order in which they were written, each after its
// rowid, a page at a time: between pages the store can be used otherwise.
func (s *Store) readPages(table string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for last := int64(-1 << 63); ; {
			rows, err := s.db.Query("SELECT rowid, * FROM "+table+" WHERE rowid > ? ORDER BY rowid LIMIT ?", last, pageRows)
			var page [][]any
			if err == nil {
				page, err = readValues(rows)
			}
			if err != nil {
				yield(nil, errOpen.Wrap(err, s.path))
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
			if len(page) < pageRows {
				return
			}
			last = page[len(page)-1][0].(int64)
		}
	}
}

// readChecked yields the rows of a table without their checksums. A damaged row comes with its first
// column, or, of the table runs, its first two, and an error of kind ErrDamaged.
func (s *Store) readChecked(table string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range s.readPages(table) {
			if err != nil {
				yield(nil, err)
				return
			}
			last := len(row) - 1
			if rowChecksum(row[1:last]) != row[last] {
				err = s.damaged(table, row[1:])
			}
			if !yield(row[1:last], err) {
				return
			}
		}
	}
}

// damaged is the error of a damaged row.
func (s *Store) damaged(table string, row []any) error {
	name := fmt.Sprint(row[0])
	if table == "runs" {
		name = fmt.Sprintf("%v repetition %v", row[columnSlot], row[columnRepetition])
	}
	return ErrDamaged.New(name, table, s.path)
}

// Runs yields all records, without their labels, in the order in which they were stored. A damaged
// one comes with an error of kind ErrDamaged and only its slot and repetition, as far as those are
// whole; the rest follows. Any other error is the last.
func (s *Store) Runs() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for row, err := range s.readChecked("runs") {
			var r Record
			if errors.Is(err, ErrDamaged) {
				r.Slot, _ = row[columnSlot].(string)
				repetition, _ := row[columnRepetition].(int64)
				r.Repetition = int(repetition)
			} else if err == nil {
				r, err = s.decodeRun(row)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// decodeRun is the record in a row of the table runs.
func (s *Store) decodeRun(row []any) (r Record, err error) {
	text := func(column int) string { return row[column].(string) }
	r.Slot, r.Repetition = text(columnSlot), int(row[columnRepetition].(int64))
	r.Key, r.Manifest, r.Failure, r.Class = text(columnKey), text(columnManifest), text(columnFailure), text(columnClass)
	if err := json.Unmarshal([]byte(text(columnReport)), &r.Report); err != nil {
		return r, errOpen.Wrap(err, s.path)
	}
	return r, nil
}

// Natives returns the results of all commands on the host, by their keys. Damaged rows are left
// out; the first is the error, of kind ErrDamaged, beside the others. Conflicts does the same.
func (s *Store) Natives() (map[string]Native, error) {
	all := map[string]Native{}
	err := s.eachWhole("native", func(row []any) error {
		var n Native
		err := json.Unmarshal([]byte(row[1].(string)), &n)
		all[row[0].(string)] = n
		return err
	})
	return all, err
}

// Conflicts returns the keys of runs that were seen to differ.
func (s *Store) Conflicts() (map[string]bool, error) {
	all := map[string]bool{}
	err := s.eachWhole("conflicts", func(row []any) error {
		all[row[0].(string)] = true
		return nil
	})
	return all, err
}

// eachWhole visits the rows of a table that are whole, and returns the first damage.
func (s *Store) eachWhole(table string, visit func([]any) error) (damage error) {
	for row, err := range s.readChecked(table) {
		switch {
		case errors.Is(err, ErrDamaged):
			if damage == nil {
				damage = err
			}
		case err != nil:
			return err
		default:
			if err := visit(row); err != nil {
				return errOpen.Wrap(err, s.path)
			}
		}
	}
	return damage
}

// PutBuild notes a build of heddle that writes to the store: the SHA-256 of its program file, and
// its version.
func (s *Store) PutBuild(build, version string) error { return s.putRow("builds", build, version) }

// Builds returns the builds that wrote to the store, with their versions. A store of an older heddle
// names none.
func (s *Store) Builds() (map[string]string, error) {
	all := map[string]string{}
	err := s.eachWhole("builds", func(row []any) error {
		all[row[0].(string)] = row[1].(string)
		return nil
	})
	return all, err
}

// encoder and decoder are for texts as a whole; making them with these options cannot fail.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder { e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); return e })
	decoder = sync.OnceValue(func() *zstd.Decoder { d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); return d })
)

// PutOutput keeps the text of an output. Equal texts are kept once.
func (s *Store) PutOutput(sum output.Sum, text []byte) error {
	return s.putRow("outputs", sum.SHA256, encoder().EncodeAll(text, []byte{}))
}

// HasOutput reports whether the text of an output is kept.
func (s *Store) HasOutput(sum output.Sum) (bool, error) {
	var n int
	if err := s.db.QueryRow("SELECT count(*) FROM outputs WHERE sha256 = ?", sum.SHA256).Scan(&n); err != nil {
		return false, errOpen.Wrap(err, s.path)
	}
	return n > 0, nil
}

// Output returns the text of an output; ok is false if it was not kept.
func (s *Store) Output(sum output.Sum) (text []byte, ok bool, err error) {
	rows, err := s.getRows("outputs", "sha256 = ?", sum.SHA256)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	if text, err = decoder().DecodeAll(rows[0][1].([]byte), nil); err != nil {
		return nil, false, errOpen.Wrap(err, s.path)
	}
	return text, true, nil
}

// Slots returns the slots of all runs, sorted.
func (s *Store) Slots() (slots []string, err error) {
	rows, err := s.db.Query("SELECT DISTINCT slot FROM runs ORDER BY slot")
	if err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	all, err := readValues(rows)
	if err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	for _, row := range all {
		slots = append(slots, row[0].(string))
	}
	return slots, nil
}
