package trace

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// encoder is the archive that makes the binary form: numbers as varints, names
// as their place in the list, text and bytes with their length before them.
type encoder struct{ b []byte }

func (e *encoder) numberField(_ string, as format, v uint64) uint64 {
	if as == signed {
		e.b = binary.AppendVarint(e.b, int64(v))
	} else {
		e.b = binary.AppendUvarint(e.b, v)
	}
	return v
}

func (e *encoder) nameField(_ string, _ []string, v uint64) uint64 {
	e.b = binary.AppendUvarint(e.b, v)
	return v
}

func (e *encoder) textField(_ string, v string) string {
	e.b = binary.AppendUvarint(e.b, uint64(len(v)))
	e.b = append(e.b, v...)
	return v
}

func (e *encoder) bytesField(_ string, v []byte) []byte {
	e.b = binary.AppendUvarint(e.b, uint64(len(v)))
	e.b = append(e.b, v...)
	return v
}

func (e *encoder) listField(_ string, n int, _ func(int), item func(int)) {
	e.b = binary.AppendUvarint(e.b, uint64(n))
	for i := range n {
		item(i)
	}
}

// The decoder is the archive that reads it.

func (d *decoder) numberField(_ string, as format, _ uint64) uint64 {
	if as == signed {
		return uint64(d.takeVarint())
	}
	return d.takeUvarint()
}

func (d *decoder) nameField(string, []string, uint64) uint64 { return d.takeUvarint() }

func (d *decoder) textField(string, string) string { return string(d.takeBytes(d.takeUvarint())) }

func (d *decoder) bytesField(string, []byte) []byte {
	return slices.Clone(d.takeBytes(d.takeUvarint()))
}

func (d *decoder) listField(_ string, _ int, grow func(int), item func(int)) {
	n := int(min(d.takeUvarint(), uint64(len(d.b))))
	if n > 0 {
		grow(n)
	}
	for i := range n {
		item(i)
	}
}

// Put appends an event to its stream.
func Put[E Event](s *Stream, e *E) { PutAt(s, e, stampOf(any(e))) }

// PutAt is Put for an event that has no stamp of its own.
func PutAt[E Event](s *Stream, e *E, at event.Stamp) {
	switch {
	case s.w.muted && !s.repeats:
		if s.w.keeper != nil {
			s.w.keeper(e)
		}
		return
	case s.w.listener != nil:
		s.w.listener.Event(e)
		return
	}
	a := encoder{s.scratch[:0]}
	eventFields(&a, any(e))
	s.scratch = a.b
	s.Append(a.b, at)
}

var errRecord = errors.New("it has not the fields of its kind")

// Decode reads the binary form of an event. The event does not refer to the
// record.
func Decode[E Event](record []byte) (e E, err error) {
	d := decoder{b: record}
	eventFields(&d, any(&e))
	if d.bad || len(d.b) > 0 {
		return e, errRecord
	}
	return e, nil
}

// Get iterates over the events of a stream that are selected. A damaged chunk
// gives an error in its place; continuing gives the events after it.
func Get[E Event](r *Reader, key Key, where Where) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		for c := range r.Parts(key, where) {
			for record, err := range c.Records() {
				if err != nil {
					if !yield(none, err) {
						return
					}
					continue
				}
				e, err := Decode[E](record)
				if err != nil {
					err = errDamage.Wrap(err, r.name, c.Chunk.payloadAt(), "a record of "+c.Chunk.description()+" cannot be read")
				} else if !where.Has(stampOf(any(&e))) {
					continue
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}
