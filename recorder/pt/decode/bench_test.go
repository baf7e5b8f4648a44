package decode_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// BenchmarkDecode decodes the same stream of a program with a usual mix of
// branches with this decoder and with libipt's block decoder, which is its
// fastest.
func BenchmarkDecode(b *testing.B) {
	const base = 0x401000
	var stream bytes.Buffer
	enc := pt.NewEncoder(&stream, pt.Config{PSBPeriod: 1 << 16, RetCompression: true})
	p := pttest.NewProgram(1, base, 4000, pttest.Typical)
	w := pttest.NewWalk(p, enc, 1, pttest.Options{Calm: true, Loop: 90})
	w.Run(10_000_000)
	if err := enc.Flush(); err != nil {
		b.Fatal(err)
	}
	report := func(b *testing.B, began time.Duration) {
		b.ReportMetric(float64(w.Branches)*float64(b.N)/(processorTime(b)-began).Seconds()/1e6, "Mbranches/s")
		b.ReportMetric(8*float64(stream.Len())/float64(w.Count), "bits/instruction")
	}
	b.Run("heddle", func(b *testing.B) {
		began := processorTime(b)
		steps := make([]decode.Step, 4096)
		for b.Loop() {
			d := decode.NewDecoder(bytes.NewReader(stream.Bytes()), image(w.Code), decode.Options{})
			for {
				if _, _, err := d.Next(steps); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			if d.Count() != w.Count {
				b.Fatalf("%d instructions, executed were %d", d.Count(), w.Count)
			}
		}
		report(b, began)
	})
	b.Run("libipt", func(b *testing.B) {
		_, text := p.Text()
		file := filepath.Join(b.TempDir(), "text")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			b.Fatal(err)
		}
		began := processorTime(b)
		for b.Loop() {
			n, err := libipt.Instructions(stream.Bytes(), file, []libipt.Section{{Size: uint64(len(text)), Addr: base}})
			if err != nil || n != w.Count {
				b.Fatalf("%d instructions, executed were %d: %v", n, w.Count, err)
			}
		}
		report(b, began)
	})
}

// processorTime is the processor time of the process, which a busy host distorts less
// than the time of a clock.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
