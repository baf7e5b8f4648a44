package strangers

import (
	"encoding/json"
	"errors"
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
	Refused State = "refused" // by heddle, with a sentence
	Limit   State = "limit"   // of time or memory was exceeded
	Defect  State = "defect"  // a wrong result, a crash, or a run that leaves its schedule
)

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
