package export

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Tracks of store buffers have ids after those of the cores: slices of one track
// must nest, and stores that wait at the same time do not, so a core has as many
// tracks as stores waited at a time, up to maxLanes; the other stores are left out.
const (
	firstBuffer = 1 << 10
	maxLanes    = 1 << 8
)

// drawDelays draws the stores that waited while other threads ran.
func (p *perfetto) drawDelays(r *trace.Reader) {
	var lanes [][]nanos // by core: when each of its tracks is free again
	for d, err := range trace.Get[event.Delay](r, trace.Key{Kind: trace.Delays}, trace.Where{}) {
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		if d.Core < 0 || d.Core >= firstBuffer {
			continue
		}
		for int(d.Core) >= len(lanes) {
			lanes = append(lanes, nil)
		}
		from := p.nanos(d.Made)
		// Clocks of cores differ: a commit can be at an earlier time.
		to := max(p.nanos(d.Time), from+1)
		lane := freeLane(lanes[d.Core], from)
		tid := firstBuffer + int32(d.Core)*maxLanes + int32(lane)
		if lane == len(lanes[d.Core]) {
			if lane == maxLanes {
				continue
			}
			lanes[d.Core] = append(lanes[d.Core], 0)
			p.writeMetadata("thread_name", coresPID, tid, fmt.Sprintf("core %d: stores that wait", d.Core))
		}
		lanes[d.Core][lane] = to
		p.writeSlice(coresPID, tid, slice{name: fmt.Sprintf("%#x = %#x", uint64(d.Addr), d.Value), category: "store", at: from, args: map[string]any{
			"thread": d.Thread, "address": fmt.Sprintf("%#x", uint64(d.Addr)), "size": d.Size,
			"value": fmt.Sprintf("%#x", d.Value), "decided": d.Decided,
		}}, to)
	}
}

// freeLane is the track that is free at a time and was in use last, or a new one.
func freeLane(lanes []nanos, at nanos) int {
	best := len(lanes)
	for i, until := range lanes {
		if until <= at && (best == len(lanes) || until > lanes[best]) {
			best = i
		}
	}
	return best
}
