package strangers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/internal/outfile"
)

// State says how a cell ended.
type State string

// The states of cells.
const (
	Works   State = "works"
	Weaker  State = "weaker"  // an answer for the same input alone, with a sentence
	Refused State = "refused" // by heddle, with a sentence
	Limit   State = "limit"   // of time or memory was exceeded
	Defect  State = "defect"  // a wrong result, a crash, or a run that leaves its schedule
)

// states are the states, in the order of the table.
var states = []State{Works, Weaker, Refused, Limit, Defect}

// Cell is one analysis of one program.
type Cell struct {
	Program string `json:"program"`
	Column  string `json:"column"`
	Key     string `json:"key"`
	State   State  `json:"state"`
	// Text has the figures of a cell that works, or the sentence of another.
	Text string `json:"text"`
	// Seconds are the processor time of all processes.
	Seconds float64 `json:"seconds"`
}

// store is the folder of the results, with a file for each cell.
type store string

func (s store) file(program, column string) string {
	return filepath.Join(string(s), program+"."+column+".json")
}

// load returns a stored cell, or nil if it is not stored.
func (s store) load(program, column string) (*Cell, error) {
	file := s.file(program, column)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c := &Cell{}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		return nil, errStore.Wrap(err, file)
	}
	return c, nil
}

// readPublished reads the results that are published with the documentation, by program and column; no file: none.
func readPublished(file string) (map[[2]string]*Cell, error) {
	text, err := os.ReadFile(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []*Cell
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, errStore.Wrap(err, file)
	}
	cells := map[[2]string]*Cell{}
	for _, c := range list {
		cells[[2]string{c.Program, c.Column}] = c
	}
	return cells, nil
}

// Publish writes all results to a file from which Stored reads them, a line for each.
func (m *Matrix) Publish(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("[")
	var failed error
	m.eachCell(func(_ Program, _ Column, cell *Cell) {
		if cell == nil {
			return
		}
		if b.Len() > 1 {
			b.WriteString(",")
		}
		text, err := json.Marshal(cell)
		failed = errors.Join(failed, err)
		b.WriteString("\n" + string(text))
	})
	b.WriteString("\n]\n")
	if failed != nil {
		return failed
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (s store) save(c Cell) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.MkdirAll(string(s), 0o755)
	}
	file := s.file(c.Program, c.Column)
	if err == nil {
		err = outfile.WriteBytes(file, append(text, '\n'))
	}
	if err != nil {
		return errStore.Wrap(err, file)
	}
	return nil
}
