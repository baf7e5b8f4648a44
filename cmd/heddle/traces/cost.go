package traces

import (
	"fmt"
	"io"

	"github.com/heddle-dmt/heddle/experiments/clap"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// printTracingCost prints the cost that tracing the branches would have had on a
// processor: the bytes of the core that wrote most, at the cost of the timing
// model (pt_byte), as a part of the run's cycles. The run itself did not pay it.
func printTracingCost(w io.Writer, r *trace.Reader) {
	cost, err := clap.BranchTraceCost(r)
	if err != nil || cost.Bytes == 0 {
		return // the run did not reach its end, or there is no branch trace
	}
	fmt.Fprintf(w, "branch trace\t%d bytes; writing them is modelled as %.1f %% of the cycles\n", cost.Bytes, 100*cost.Overhead)
}
