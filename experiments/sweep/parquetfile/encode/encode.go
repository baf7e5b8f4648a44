// Package encode writes tables as Parquet files: the part of heddle-plot that package parquetfile starts.
package encode

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile"
)

// Serve reads a parquetfile.Table as JSON and writes it as Parquet.
func Serve(from io.Reader, to io.Writer) error {
	var t parquetfile.Table
	if err := json.NewDecoder(from).Decode(&t); err != nil {
		return err
	}
	return Write(to, &t)
}

// types are the types of columns, of which nil is a missing value.
var types = map[parquetfile.Kind]reflect.Type{
	parquetfile.Text: reflect.TypeFor[*string](), parquetfile.Integer: reflect.TypeFor[*int64](), parquetfile.Unsigned: reflect.TypeFor[*uint64](),
	parquetfile.Real: reflect.TypeFor[*float64](), parquetfile.Boolean: reflect.TypeFor[*bool](),
}

// Write writes a table as a Parquet file, whose columns are optional and of their kinds; an empty cell is null. It fails
// if a cell is not of its column's kind.
func Write(w io.Writer, t *parquetfile.Table) error {
	var fields []reflect.StructField
	for i, c := range t.Columns {
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: types[c.Kind], Tag: reflect.StructTag(`parquet:"` + c.Name + `"`)})
	}
	row := reflect.StructOf(fields)
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(row).Interface()), parquet.Compression(&parquet.Snappy))
	for _, cells := range t.Rows {
		values := reflect.New(row)
		for i, cell := range cells {
			if cell == "" {
				continue
			}
			v, err := parseCell(cell, t.Columns[i].Kind)
			if err != nil {
				return fmt.Errorf("column %s: %w", t.Columns[i].Name, err)
			}
			to := reflect.New(fields[i].Type.Elem())
			to.Elem().Set(reflect.ValueOf(v))
			values.Elem().Field(i).Set(to)
		}
		if err := out.Write(values.Interface()); err != nil {
			return err
		}
	}
	return out.Close()
}

// parseCell is the value of a cell that is not empty.
func parseCell(cell string, kind parquetfile.Kind) (any, error) {
	switch kind {
	case parquetfile.Integer:
		return strconv.ParseInt(cell, 10, 64)
	case parquetfile.Unsigned:
		return strconv.ParseUint(cell, 10, 64)
	case parquetfile.Real:
		return strconv.ParseFloat(cell, 64)
	case parquetfile.Boolean:
		return strconv.ParseBool(cell)
	}
	return cell, nil
}
