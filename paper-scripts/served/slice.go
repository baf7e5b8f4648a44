package served

import (
	"context"
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/experiments/window"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/recorder"
)

// withFile calls do with a temporary file.
func withFile(do func(*os.File) error) error {
	file, err := os.CreateTemp("", "heddle-served-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	return do(file)
}

// measureSlice slices the second window of a load: requests from the first one after as many as a window has.
func measureSlice(ctx context.Context, _ *study.Options, _ *settings, l *load) (values map[string]string, err error) {
	err = withFile(func(file *os.File) error {
		at := func(n int) recorder.Place {
			return recorder.Place{Kind: recorder.AtRequest, Port: l.server.Port, N: uint64(n)}
		}
		record := &machine.Record{
			To: file, Inputs: true, Sync: &machine.SyncRecord{Heap: true}, Stretch: recorder.Stretch{From: at(l.Window + 1), To: at(2*l.Window + 1)},
		}
		if _, err := l.run(ctx, way{record: record}); err != nil {
			return err
		}
		r, err := window.Make(ctx, file.Name(), window.Options{})
		if err != nil {
			return err
		}
		ratio := func(mode string) string {
			return fmt.Sprintf("%.4f", float64(r.SlicedInstructions[mode])/float64(max(r.Instructions, 1)))
		}
		values = map[string]string{
			"instructions": fmt.Sprint(r.Instructions / 1000), "branches": fmt.Sprint(r.Branches), "plain": fmt.Sprint(r.Kept["plain"]),
			"simplified": fmt.Sprint(r.Kept["simplified"]), "lower": fmt.Sprint(r.Kept["lower"]), "symbolic": study.Seconds(r.Followed),
			"slicing": study.Seconds(r.Sliced["plain"]), "simplification": study.Seconds(r.Sliced["simplified"]),
			"ratio_plain": ratio("plain"), "ratio_simplified": ratio("simplified"),
		}
		return nil
	})
	return values, err
}

// measureRecording compares the processor time of a run with all loads and stores recorded with that of one without.
func measureRecording(ctx context.Context, _ *study.Options, _ *settings, l *load) (map[string]string, error) {
	plain, err := study.ProcessorTimeOf(func() error { _, err := l.run(ctx, way{}); return err })
	if err != nil {
		return nil, err
	}
	var text string
	err = withFile(func(file *os.File) error {
		recorded, err := study.ProcessorTimeOf(func() error {
			_, err := l.run(ctx, way{record: &machine.Record{To: file, Memory: &recorder.MemoryConfig{}}})
			return err
		})
		text = fmt.Sprintf("%.1f", recorded.Seconds()/plain.Seconds())
		return err
	})
	return map[string]string{"recording": text}, err
}
