package trace

import (
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Tables lists the kinds that have a table: those whose records are events.
func Tables() []Kind {
	list := make([]Kind, 0, len(kinds))
	for k := range kinds {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// header is the archive that takes the names of the fields alone.
type header struct{ names []string }

func (h *header) numberField(name string, _ format, v uint64) uint64 {
	h.names = append(h.names, name)
	return v
}

func (h *header) nameField(name string, _ []string, v uint64) uint64 {
	return h.numberField(name, decimal, v)
}

func (h *header) textField(name, v string) string {
	h.names = append(h.names, name)
	return v
}

func (h *header) bytesField(name string, v []byte) []byte {
	h.names = append(h.names, name)
	return v
}

func (h *header) listField(name string, _ int, _ func(int), _ func(int)) {
	h.names = append(h.names, name)
}

// Header is the first line of the table of a kind, without its end.
func Header(kind Kind) string {
	var h header
	if e := newEvent(kind); e != nil {
		eventFields(&h, e)
	}
	return strings.Join(h.names, ",")
}

// row is the archive that makes a line of a table. A list is one cell.
type row struct {
	cells []string
	list  *printer // the list that is under way, or nil
}

func (r *row) appendCell(text string) {
	if strings.ContainsAny(text, ",\"\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	r.cells = append(r.cells, text)
}

func (r *row) numberField(name string, as format, v uint64) uint64 {
	if r.list != nil {
		return r.list.numberField(name, as, v)
	}
	r.appendCell(string(appendNumber(nil, as, v)))
	return v
}

func (r *row) nameField(_ string, list []string, v uint64) uint64 {
	if v < uint64(len(list)) {
		r.appendCell(list[v])
	} else {
		r.appendCell(strconv.FormatUint(v, 10))
	}
	return v
}

func (r *row) textField(_, v string) string {
	r.appendCell(v)
	return v
}

func (r *row) bytesField(_ string, v []byte) []byte {
	r.appendCell(hex.EncodeToString(v))
	return v
}

func (r *row) listField(_ string, n int, _ func(int), item func(int)) {
	r.list = &printer{}
	for i := range n {
		item(i)
	}
	text := string(r.list.b)
	r.list = nil
	r.appendCell(text)
}

// Rows iterates over the lines of the table of a stream of events, as far as
// they are selected. Damage gives an error in its place.
func (r *Reader) Rows(key Key, where Where) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for record, err := range r.Records(key, where) {
			e := newEvent(key.Kind)
			switch {
			case err != nil:
			case e == nil || !decodeInto(e, record):
				err = errDamage.New(r.name, 0, "a record of stream "+string(key.Kind)+" is no event")
			case !where.Has(stampOf(e)):
				continue
			}
			var line row
			if err == nil {
				eventFields(&line, e)
			}
			if !yield(strings.Join(line.cells, ","), err) {
				return
			}
		}
	}
}
