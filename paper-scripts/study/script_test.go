package study

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// counting is a script whose only artefact counts how often its rows are measured.
type counting struct {
	Script
	measured int
	fail     error
	key      int
	more     bool // a column more
}

func newCounting() *counting {
	c := &counting{}
	c.Script = Script{Name: "counting", Short: "Count", Progress: io.Discard, Artefacts: []Artefact{{
		Name: "figure1", Title: "Figure 1: numbers", Plan: c.plan, Chart: &sheet.Chart{Kind: plots.Bars, Y: plots.Axis{Title: "number"}, Columns: []string{"first", "second"}},
	}}}
	return c
}

func (c *counting) plan(*Options) (*Plan, error) {
	p := &Plan{Head: []table.Column{{Name: "name", Key: "name"}, {Name: "1st", Key: "first", Number: true}, {Name: "2nd", Key: "second", Number: true}}}
	if c.more {
		p.Head = append(p.Head, table.Column{Name: "3rd", Key: "third"})
	}
	for i := range 3 {
		p.Rows = append(p.Rows, Row{Name: fmt.Sprint("row", i), Key: []int{c.key, i}, Measure: func(context.Context) ([]string, error) {
			if i == 2 && c.fail != nil {
				return nil, c.fail
			}
			c.measured++
			return []string{fmt.Sprint("row", i), fmt.Sprint(i), "-", "-"}[:len(p.Head)], nil
		}})
	}
	return p, nil
}

// run runs the script's command line with a store.
func (c *counting) run(store string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.Run(context.Background(), &out, append([]string{"--store", store}, args...), func(*pflag.FlagSet) {})
	return out.String(), err
}

// A result is stored row by row, printed again without being measured, and measured again when
// anything that it depends on changes.
func TestStoredResults(t *testing.T) {
	c, store := newCounting(), t.TempDir()
	if _, err := c.run(store, "--stored", "figure1"); err == nil || !strings.Contains(err.Error(), "nothing is stored in "+store) {
		t.Errorf("nothing stored: %v", err)
	}
	c.fail = context.Canceled
	if _, err := c.run(store, "figure1"); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted: %v", err)
	}
	c.fail = nil
	for _, x := range []struct {
		flag     string
		key      int
		measured int
	}{{"--format=text", 0, 3}, {"--stored", 0, 3}, {"--format=csv", 0, 3}, {"--again", 0, 6}, {"--format=latex", 1, 9}} {
		c.key = x.key
		out, err := c.run(store, x.flag, "figure1")
		if err != nil || c.measured != x.measured {
			t.Errorf("%s: %v, %d rows were measured, not %d", x.flag, err, c.measured, x.measured)
		}
		for i := range 3 {
			if !strings.Contains(out, fmt.Sprint("row", i)) {
				t.Errorf("%s: no row %d in\n%s", x.flag, i, out)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(store, "figure1.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(store, "figure1"); err == nil || !strings.Contains(err.Error(), "is no result of this command") {
		t.Errorf("a damaged store: %v", err)
	}
}

// A result with other columns is measured again, one row after the other.
func TestOtherColumns(t *testing.T) {
	c, store := newCounting(), t.TempDir()
	if _, err := c.run(store, "figure1"); err != nil {
		t.Fatal(err)
	}
	c.more, c.fail = true, context.Canceled
	if _, err := c.run(store, "figure1"); err == nil {
		t.Fatal("was not interrupted")
	}
	c.fail = nil
	if _, err := c.run(store, "figure1"); err != nil || c.measured != 6 {
		t.Errorf("%v, %d rows were measured, not 6", err, c.measured)
	}
}

// A row that is measured while the command is interrupted is not stored, with or without an error.
func TestCutOffRow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "table.json")
	p := &Plan{Head: []table.Column{{Name: "name", Key: "name"}}}
	for i, err := range []error{nil, nil, errors.New("wrong")} {
		p.Rows = append(p.Rows, Row{Name: fmt.Sprint("row", i), Measure: func(context.Context) ([]string, error) {
			if i > 0 {
				cancel()
			}
			return []string{"cell"}, err
		}})
	}
	for _, rows := range [][]Row{p.Rows, {p.Rows[0], p.Rows[2]}} {
		p.Rows = rows
		if _, err := p.measureRows(ctx, &Options{Progress: io.Discard}, &storedTable{}, file); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if kept, err := loadTable(file); err != nil || len(kept.Rows) != 1 {
			t.Errorf("%v: %+v", err, kept)
		}
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

// A row that fails does not stop the others, which are stored; the error names all that fail.
func TestFailingRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	p := &Plan{Head: []table.Column{{Name: "name", Key: "name"}}}
	for i, err := range []error{errors.New("first"), nil, errors.New("third")} {
		p.Rows = append(p.Rows, Row{Name: fmt.Sprint("row", i), Measure: func(context.Context) ([]string, error) { return []string{"cell"}, err }})
	}
	_, err := p.measureRows(t.Context(), &Options{Progress: io.Discard}, &storedTable{}, file)
	if err == nil || err.Error() != "row0: first\nrow2: third" {
		t.Errorf("%v", err)
	}
	if kept, err := loadTable(file); err != nil || len(kept.Rows) != 1 || kept.Rows[0].Name != "row1" {
		t.Errorf("%v: %+v", err, kept)
	}
}

// A mistake in a command line is reported.
func TestWrongCommandLines(t *testing.T) {
	for args, says := range map[string]string{
		"":                         "requires at least 1 arg",
		"figure2":                  "invalid argument \"figure2\"",
		"--format xml figure1":     "--format xml: one of text, csv, latex, json",
		"--stored --again figure1": "use one of them",
		"--colour figure1":         "unknown flag: --colour",
	} {
		if _, err := newCounting().run(t.TempDir(), strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if out, err := newCounting().run(t.TempDir(), "--help"); err != nil || !strings.Contains(out, "Figure 1: numbers") {
		t.Errorf("%v: help is\n%s", err, out)
	}
}

// The forms of a table are read by others, and figures are files of their kinds.
func TestForms(t *testing.T) {
	c, store := newCounting(), t.TempDir()
	out, err := c.run(store, "--format=csv", "figure1")
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 4 || rows[0][1] != "first" {
		t.Errorf("%v: %v", err, rows)
	}
	file, err := os.Open(filepath.Join(store, "figure1.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(store, "figure1.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"row1", "2nd", "Figure 1: numbers"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("figure1.svg does not have %q", want)
		}
	}
}
