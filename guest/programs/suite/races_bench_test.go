package suite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// raceyArguments make about as many races as PEREGRINE counts in its racey, whose
// arguments the paper does not give: 167,974 (table 2).
const raceyArguments = "-p 8 -i 19200"

// BenchmarkRaceyRaces is the time to record racey at its full size with the recordings
// that races need, and to find them relative to the recorded order.
func BenchmarkRaceyRaces(b *testing.B) {
	p, err := Find("racey")
	if err != nil {
		b.Fatal(err)
	}
	command := append([]string{build(b, p, Variant{Form: Buggy, Optimize: 2, Debug: true})}, p.CommandLine(raceyArguments, 8)...)
	var recording, finding time.Duration
	var hb, schedule uint64
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "trace")
		file, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		emulateRecorded(b, machineSetup{cores: 8, seed: 1}, &machine.Record{
			To: file, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{},
		}, command...)
		between := time.Now()
		schedule = countRaces(b, path, races.ScheduleRelative)
		recording, finding = recording+between.Sub(began), finding+time.Since(between)
		hb = countRaces(b, path, races.HappensBefore)
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(recording.Seconds()/float64(b.N), "s-recording")
	b.ReportMetric(finding.Seconds()/float64(b.N), "s-finding")
	b.ReportMetric(float64(schedule), "races(schedule)")
	b.ReportMetric(float64(hb), "races(hb)")
}

func countRaces(b *testing.B, path string, order races.Order) uint64 {
	b.Helper()
	in, err := trace.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	r, err := report.Make(path, in, report.Options{Order: order, Benign: report.Keep})
	if err != nil {
		b.Fatal(err)
	}
	return r.Dynamic
}
