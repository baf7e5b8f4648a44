// Package program is what program heddle-plot does: it draws plots, and writes tables as Parquet.
package program

import (
	"io"
	"slices"

	"github.com/heddle-dmt/heddle/experiments/plots/draw"
	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile"
	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile/encode"
)

// Serve reads a request as JSON. Without arguments it is a plots.Request, whose files are written; with
// parquetfile.Argument it is a parquetfile.Table, which is written as Parquet.
func Serve(args []string, from io.Reader, to io.Writer) error {
	if slices.Equal(args, []string{parquetfile.Argument}) {
		return encode.Serve(from, to)
	}
	return draw.Serve(from)
}
