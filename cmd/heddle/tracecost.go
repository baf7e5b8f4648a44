package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// printTracingCost says what tracing the branches would have cost on a
// processor: the bytes of the core that wrote most, at the cost of the timing
// model (pt_byte), as a part of the run's cycles. The run itself did not pay it.
func printTracingCost(w io.Writer, r *trace.Reader, summary []byte) {
	var end struct {
		Result struct {
			Cycles uint64 `json:"cycles"`
		} `json:"result"`
	}
	all, most := branchBytes(r)
	if all == 0 || summary == nil || json.Unmarshal(summary, &end) != nil || end.Result.Cycles == 0 {
		return
	}
	cost := float64(most) * float64(costsOf(r).PTByte)
	fmt.Fprintf(w, "branch trace\t%d bytes; writing them is modelled as %.1f %% of the cycles\n",
		all, 100*cost/float64(end.Result.Cycles))
}

// branchBytes is how many bytes the branch traces of all cores have, and the one
// that has most.
func branchBytes(r *trace.Reader) (all, most uint64) {
	for _, id := range r.IDs(trace.PT) {
		n := uint64(0)
		for _, c := range r.Chunks(trace.Key{Kind: trace.PT, ID: id}) {
			n += uint64(c.Raw)
		}
		all, most = all+n, max(most, n)
	}
	return all, most
}

// costsOf is the timing model of the recorded machine. A cost that its heddle did
// not have yet is the default.
func costsOf(r *trace.Reader) emu.Costs {
	run := struct {
		Costs emu.Costs `json:"costs"`
	}{emu.DefaultCosts()}
	if text, err := r.Manifest(); err == nil {
		_ = json.Unmarshal(text, &run) // what cannot be read leaves the default
	}
	return run.Costs
}
