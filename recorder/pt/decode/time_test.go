package decode_test

import (
	"bytes"
	"testing"

	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// TestTime: TSC packets give the time at which tracing is enabled, exactly and by
// both decoders; CYC packets also that of the packets after, MTC packets to within
// their period.
func TestTime(t *testing.T) {
	for name, timing := range map[string]pt.Timing{
		"tsc":         {TSC: true},
		"cyc":         {TSC: true, CYC: true},
		"mtc":         {TSC: true, MTCPeriod: 2},
		"all":         {TSC: true, MTCPeriod: 1, CYC: true},
		"cyc, faster": {TSC: true, CYC: true, TSCRatio: 3000},
		"mtc, slower": {TSC: true, MTCPeriod: 4, TSCRatio: 500},
	} {
		t.Run(name, func(t *testing.T) {
			stream, w := record(3, pt.Config{PSBPeriod: 512, Timing: timing}, pttest.Options{Threads: 2}, 3000)
			ratio := timing.TSCRatio
			if ratio == 0 {
				ratio = 1024
			}
			_, events, _ := mine(decode.NewDecoder(bytes.NewReader(stream), image(w.Code), decode.Options{Timing: timing}))
			var got []decode.Event
			for _, e := range events {
				if e.Kind == decode.Enabled || e.Kind == decode.Disabled || e.Kind == decode.Interrupted {
					got = append(got, e)
				}
			}
			if len(got) != len(w.Told) {
				t.Fatalf("tracing was turned on and off %d times, should be %d", len(got), len(w.Told))
			}
			for i, e := range got {
				want := w.Told[i] * ratio >> 10
				slack := uint64(0)
				if ratio%1024 != 0 && e.Kind != decode.Enabled {
					slack = 1 // ticks are rounded down twice
				}
				if e.Kind != decode.Enabled && !timing.CYC {
					slack += timing.MTCPeriod * pt.CrystalTicks
					if timing.MTCPeriod == 0 {
						continue // no packet has the time within
					}
				}
				if e.TSC > want || e.TSC+slack < want {
					t.Fatalf("event %d of kind %d is at %d, should be %d, at most %d later", i, e.Kind, e.TSC, want, slack)
				}
			}
			compareTimes(t, stream, w, timing, got)
		})
	}
}

// compareTimes compares the times at which tracing was enabled with libipt's.
func compareTimes(t *testing.T, stream []byte, w *pttest.Walk, timing pt.Timing, mine []decode.Event) {
	t.Helper()
	_, theirs, _ := intel(t, stream, w.Code, timing, 1<<30)
	n := 0
	for _, e := range theirs {
		if e.Kind != libipt.Enabled {
			continue
		}
		for mine[n].Kind != decode.Enabled {
			n++
		}
		if e.TSC != mine[n].TSC {
			t.Fatalf("tracing is enabled at %d, by libipt at %d", mine[n].TSC, e.TSC)
		}
		n++
	}
	if n == 0 {
		t.Fatal("libipt has no event")
	}
}

// TestTimeEvents: asked for, the changes of time come in order.
func TestTimeEvents(t *testing.T) {
	timing := pt.Timing{TSC: true, CYC: true}
	stream, w := record(3, pt.Config{Timing: timing}, pttest.Options{}, 1000)
	_, events, _ := mine(decode.NewDecoder(bytes.NewReader(stream), image(w.Code), decode.Options{Timing: timing, Time: true}))
	last, n := uint64(0), 0
	for _, e := range events {
		if e.TSC < last {
			t.Fatalf("time goes back from %d to %d", last, e.TSC)
		}
		last = e.TSC
		if e.Kind == decode.Time {
			n++
		}
	}
	if n < 20 {
		t.Errorf("%d time events", n)
	}
}
