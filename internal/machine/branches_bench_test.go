package machine_test

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// BenchmarkBranchTrace decodes the trace of a run of pbzip2 on one core with
// heddle's decoder and with libipt's block decoder, and reports the million
// branches that each decodes per second of processor time, and the size of the
// trace before and after compression.
func BenchmarkBranchTrace(b *testing.B) {
	r, result := recorded(b)
	var stream []byte
	var code []event.Code
	var err error
	if stream, err = io.ReadAll(r.Bytes(trace.Key{Kind: trace.PT})); err != nil {
		b.Fatal(err)
	}
	for c, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			b.Fatal(err)
		}
		code = append(code, c)
	}
	branches := branchesIn(b, stream)
	file, sections := codeFile(b, code)
	var mine, theirs time.Duration
	for b.Loop() {
		began := processorTime(b)
		n := decodeAll(b, stream, code)
		between := processorTime(b)
		m, err := libipt.Instructions(stream, file, sections)
		mine, theirs = mine+between-began, theirs+processorTime(b)-between
		if err != nil || m != n {
			b.Fatalf("libipt has %d instructions, heddle %d: %v", m, n, err)
		}
	}
	all := float64(branches) * float64(b.N) / 1e6
	b.ReportMetric(all/mine.Seconds(), "Mbranches/s")
	b.ReportMetric(all/theirs.Seconds(), "Mbranches/s(libipt)")
	b.ReportMetric(8*float64(len(stream))/float64(result.Instructions), "bits/instruction")
	b.ReportMetric(8*float64(stored(r))/float64(result.Instructions), "stored-bits/instruction")
}

// stored is how many bytes of the trace's file the packets take.
func stored(r *trace.Reader) (n int) {
	for _, c := range r.Chunks(trace.Key{Kind: trace.PT}) {
		n += c.Stored
	}
	return n
}

// recorded is the trace of pbzip2.
func recorded(b *testing.B) (*trace.Reader, *machine.Result) {
	input := filepath.Join(b.TempDir(), "input")
	text, err := os.ReadFile("/usr/bin/pbzip2")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(input, bytes.Repeat(text, 6), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(filepath.Join(b.TempDir(), "trace"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	c, out := machinetest.Config(b, "/usr/bin/pbzip2", "-p4", "-b1", "-c", "-k", input)
	c.Cores, c.Dir = 1, filepath.Dir(input)
	c.Record = &machine.Record{To: f, PT: &pt.Config{PSBPeriod: 64 << 10, RetCompression: true}}
	result := machinetest.Run(b, c)
	if result.ExitCode != 0 {
		b.Fatalf("exit %d: %s%s", result.ExitCode, result.Message, out)
	}
	r, err := trace.Open(f.Name())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	return r, result
}

// branchesIn counts the outcomes and targets in a stream.
func branchesIn(b *testing.B, stream []byte) (n uint64) {
	for at := 0; at < len(stream); {
		p, err := pt.Parse(stream[at:])
		if err != nil {
			b.Fatal(err)
		}
		switch p.Kind {
		case pt.TNT:
			n += uint64(p.Aux)
		case pt.TIP:
			n++
		}
		at += p.Size
	}
	return n
}

func decodeAll(b *testing.B, stream []byte, code []event.Code) uint64 {
	image := decode.NewImage()
	for _, c := range code {
		image.Add(c.Space, c.Counts[0], uint64(c.Addr), c.Bytes)
	}
	d := decode.NewDecoder(bytes.NewReader(stream), image, decode.Options{})
	steps := make([]decode.Step, 4096)
	for {
		if _, _, err := d.Next(steps); err == io.EOF {
			return d.Count()
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

// codeFile writes the code into a file of pages, each a section.
func codeFile(b *testing.B, code []event.Code) (string, []libipt.Section) {
	const size = 4096
	pages := map[uint64][]byte{}
	for _, c := range code {
		for i, x := range c.Bytes {
			at := uint64(c.Addr) + uint64(i)
			if pages[at/size] == nil {
				pages[at/size] = make([]byte, size)
			}
			pages[at/size][at%size] = x
		}
	}
	var text []byte
	var sections []libipt.Section
	for _, n := range slices.Sorted(maps.Keys(pages)) {
		if last := len(sections) - 1; last >= 0 && sections[last].Addr+sections[last].Size == n*size {
			sections[last].Size += size
		} else {
			sections = append(sections, libipt.Section{Offset: uint64(len(text)), Size: size, Addr: n * size})
		}
		text = append(text, pages[n]...)
	}
	file := filepath.Join(b.TempDir(), "code")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return file, sections
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
