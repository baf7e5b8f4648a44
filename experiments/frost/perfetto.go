package frost

import (
	"encoding/json"
	"fmt"
	"io"
)

// slice is an event of the JSON trace format that ui.perfetto.dev reads ("Trace
// Event Format", Chromium): a name on a track (X) or the track's own name (M).
type slice struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Begin float64        `json:"ts"` // microseconds
	Time  float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// tracks are the names of the replicas' tracks.
var tracks = []string{"thread-parallel", "epoch-parallel 1", "epoch-parallel 2", "unpreempted"}

// WritePerfetto writes the epochs as a timeline: a track for each replica, in the
// virtual time of Report.Pipeline.
func (r *Report) WritePerfetto(w io.Writer) error {
	var events []slice
	for i, name := range tracks {
		events = append(events, slice{Name: "thread_name", Phase: "M", PID: 1, TID: i + 1, Args: map[string]any{"name": name}})
	}
	for _, e := range r.Epochs {
		for i := range e.Replicas {
			events = append(events, e.perfettoSlice(i))
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

// perfettoSlice is one replica of an epoch.
func (e *Epoch) perfettoSlice(i int) slice {
	x := &e.Replicas[i]
	s := slice{
		Name: fmt.Sprintf("epoch %d", e.Number), Phase: "X", Begin: 1000 * e.Begin, Time: 1000 * x.Milliseconds, PID: 1, TID: i + 1,
		Args: map[string]any{"instructions": x.Instructions, "committed": e.Committed},
	}
	if e.Attempt > 0 {
		s.Name += fmt.Sprintf(", again %d", e.Attempt)
	}
	for name, text := range map[string]string{
		"combination": string(e.Combination), "failed": x.Failed, "diverged": x.Diverged, "commit": e.Commit,
	} {
		if text != "" {
			s.Args[name] = text
		}
	}
	return s
}
