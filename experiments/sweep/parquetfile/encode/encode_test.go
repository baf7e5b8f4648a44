package encode_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile"
	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile/encode"
)

// TestParquet: the columns of a Parquet file have their order and types, a seed of more than 63 bits is whole, and what
// is missing is null. The file is read by its own schema.
func TestParquet(t *testing.T) {
	columns := []parquetfile.Column{{Name: "word", Kind: parquetfile.Text}, {Name: "seed", Kind: parquetfile.Unsigned}, {Name: "cycles", Kind: parquetfile.Integer}, {Name: "rate", Kind: parquetfile.Real}, {Name: "as_native", Kind: parquetfile.Boolean}}
	var file bytes.Buffer
	rows := [][]string{{"one", "18446744073709551615", "-7", "0.25", "true"}, {"", "1", "", "", ""}}
	if err := encode.Write(&file, &parquetfile.Table{Columns: columns, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	read, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names, types []string
	for _, f := range read.Schema().Fields() {
		names, types = append(names, f.Name()), append(types, f.Type().String())
		if !f.Optional() {
			t.Errorf("%s may not be null", f.Name())
		}
	}
	if !slices.Equal(names, []string{"word", "seed", "cycles", "rate", "as_native"}) {
		t.Errorf("columns %q", names)
	}
	if !slices.Equal(types, []string{"STRING", "INT(64,false)", "INT(64,true)", "DOUBLE", "BOOLEAN"}) {
		t.Errorf("types %q", types)
	}
	type row struct {
		Word   *string  `parquet:"word"`
		Seed   *uint64  `parquet:"seed"`
		Cycles *int64   `parquet:"cycles"`
		Rate   *float64 `parquet:"rate"`
		Native *bool    `parquet:"as_native"`
	}
	got, err := parquet.Read[row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if r := got[0]; *r.Word != "one" || *r.Seed != 1<<64-1 || *r.Cycles != -7 || *r.Rate != 0.25 || !*r.Native {
		t.Errorf("%v", r)
	}
	if r := got[1]; r.Word != nil || *r.Seed != 1 || r.Cycles != nil || r.Rate != nil || r.Native != nil {
		t.Errorf("%v", r)
	}
}
