package export

import (
	"bufio"
	"io"

	"github.com/heddle-dmt/heddle/recorder/trace"
)

// CSV writes the records of a kind that are selected as a table (RFC 4180) with
// of names first. It returns the damage that it found, or the error that ended its
// output.
func CSV(out io.Writer, r *trace.Reader, kind trace.Kind, where trace.Where) []error {
	b := bufio.NewWriterSize(out, 1<<16)
	errs := append([]error(nil), r.Damage()...)
	b.WriteString(trace.Header(kind) + "\r\n")
	for _, id := range r.IDs(kind) {
		for row, err := range r.Rows(trace.Key{Kind: kind, ID: id}, where) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			b.WriteString(row + "\r\n")
		}
	}
	if err := b.Flush(); err != nil {
		errs = append(errs, err)
	}
	return errs
}
