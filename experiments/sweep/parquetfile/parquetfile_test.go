package parquetfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/plots/program"
	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile"
)

// TestMain is heddle-plot if the program is started by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != plots.Program {
		os.Exit(m.Run())
	}
	if err := program.Serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestWrite has the program write a table, and one with a cell of another kind.
func TestWrite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, plots.Program)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	table := parquetfile.Table{Columns: []parquetfile.Column{{Name: "seed", Kind: parquetfile.Unsigned}}, Rows: [][]string{{"18446744073709551615"}, {""}}}
	var file bytes.Buffer
	if err := table.Write(&file); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Seed *uint64 `parquet:"seed"`
	}
	got, err := parquet.Read[row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(got) != 2 || *got[0].Seed != 1<<64-1 || got[1].Seed != nil {
		t.Errorf("%v %v", got, err)
	}
	table.Rows[0][0] = "many"
	if err := table.Write(&file); err == nil || !strings.Contains(err.Error(), "seed") {
		t.Errorf("a word in a column of numbers: %v", err)
	}
}
