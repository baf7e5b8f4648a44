package memtrace

import (
	"encoding/hex"
	"fmt"
	"iter"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Text is the text form of the stream: trace.Twin.
type Text struct{ Select Select }

// Lines implements trace.Twin: a line for each access that both selections have.
func (t Text) Lines(records iter.Seq2[[]byte, error], where trace.Where) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		d := NewDecoder()
		more := true
		for record, err := range records {
			if err == nil {
				err = d.Block(record)
			}
			if err != nil {
				more = yield("", err)
			} else {
				more = d.eachAccess(&t.Select, func(m *event.Memory, err error) bool {
					if err == nil && !where.Has(m.Stamp) {
						return true
					}
					if err != nil {
						return yield("", err)
					}
					return yield(Format(m), nil)
				})
			}
			if !more {
				return
			}
		}
	}
}

// Format is one access as text.
func Format(m *event.Memory) string {
	at := fmt.Sprintf("%s seq=%d sync=%d thread=%d core=%d branches=%d", m.Kind, m.Seq, m.Sync, m.Thread, m.Core, m.Branches)
	switch m.Kind {
	case event.Load, event.Store:
		text := fmt.Sprintf("%s pc=%#x addr=%#x size=%d value=%s atomic=%t page=%d", at, uint64(m.PC), uint64(m.Addr), m.Size,
			formatValue(m), m.Atomic, m.Page)
		if m.Parts > 0 {
			text += fmt.Sprintf(" part=%d/%d", m.Part+1, m.Parts)
		}
		return text
	case event.KernelStore, event.KernelLoad, event.View:
		return fmt.Sprintf("%s addr=%#x length=%d page=%d data=%s", at, uint64(m.Addr), m.Length, m.Page, hex.EncodeToString(m.Data))
	case event.Copy:
		return fmt.Sprintf("%s page=%d from=%d", at, m.Page, m.From)
	default:
		return fmt.Sprintf("%s page=%d data=%s", at, m.Page, hex.EncodeToString(m.Data))
	}
}

// formatValue is that of a load or store: one of more than 8 bytes has two words.
func formatValue(m *event.Memory) string {
	if m.Size > 8 {
		return fmt.Sprintf("%#x:%016x", m.Value[1], m.Value[0])
	}
	return fmt.Sprintf("%#x", m.Value[0])
}
