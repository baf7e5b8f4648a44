package machine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/programs/conformance"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// path is a path of instructions through a program: hashes of pieces of it, so
// that any length can be compared.
type path struct {
	n      uint64
	rest   []byte
	pieces []uint64
}

const pathPiece = 8 << 10 // bytes, of 1024 instructions

func (p *path) add(addresses []uint64) {
	p.n += uint64(len(addresses))
	for _, a := range addresses {
		p.rest = binary.LittleEndian.AppendUint64(p.rest, a)
		if len(p.rest) == pathPiece {
			p.pieces = append(p.pieces, xxh3.Hash(p.rest))
			p.rest = p.rest[:0]
		}
	}
}

// difference returns where two paths differ.
func (p *path) difference(q *path) error {
	for i := range min(len(p.pieces), len(q.pieces)) {
		if p.pieces[i] != q.pieces[i] {
			return fmt.Errorf("differs between instructions %d and %d", i*pathPiece/8, (i+1)*pathPiece/8)
		}
	}
	if p.n != q.n {
		return fmt.Errorf("%d instructions, executed were %d", p.n, q.n)
	}
	if !bytes.Equal(p.rest, q.rest) {
		return errors.New("differs in the last instructions")
	}
	return nil
}

// executed collects the instructions that the engine's hook sees.
type executed struct {
	cores   []path
	threads []map[arch.ThreadID]*path // by core
}

func (e *executed) take(at event.Stamp, pcs []uint64) {
	e.cores[at.Core].add(pcs)
	threadPath(e.threads, at.Core, at.Thread).add(pcs)
}

// instructionLog passes on the instructions that the engine's hook sees.
type instructionLog struct {
	recorder.Nothing
	t     *testing.T
	take  func(at event.Stamp, pcs []uint64)
	inRun uint64 // instructions of the run so far, a repeated one once
}

func (l *instructionLog) Begin(*recorder.Recorder, *kernel.Task) { l.inRun = 0 }

func (l *instructionLog) Stopped(r *recorder.Recorder, _ *kernel.Task, s arch.Stop) {
	completed := s.Instructions - s.Repeated
	pcs, err := r.CPU().TakeInstructions(completed - l.inRun)
	if err != nil {
		l.t.Errorf("%v: %v", s.Reason, err)
	}
	l.inRun = completed
	l.take(r.At(), pcs)
}

// threadPath is the path of a thread on a core.
func threadPath(paths []map[arch.ThreadID]*path, core arch.CoreID, thread arch.ThreadID) *path {
	if paths[core] == nil {
		paths[core] = map[arch.ThreadID]*path{}
	}
	if paths[core][thread] == nil {
		paths[core][thread] = &path{}
	}
	return paths[core][thread]
}

// watched runs a program with its branches recorded and every instruction
// watched.
func watched(t *testing.T, c machine.Config, cfg pt.Config) (*machine.Result, *trace.Reader, *executed) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Record = &machine.Record{To: f, PT: &cfg}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := &executed{cores: make([]path, c.Cores), threads: make([]map[arch.ThreadID]*path, c.Cores)}
	if err := m.Watch(&instructionLog{t: t, take: e.take}); err != nil {
		t.Fatal(err)
	}
	result, err := m.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return result, r, e
}

// codeOf is the code of a trace for one core, for both decoders.
func codeOf(t *testing.T, r *trace.Reader, core int) (*decode.Image, []libipt.Code) {
	image := decode.NewImage()
	var all []libipt.Code
	for c, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		image.Add(c.Space, c.Counts[core], uint64(c.Addr), c.Bytes)
		all = append(all, libipt.Code{At: c.Counts[core], Space: c.Space << 12, Addr: uint64(c.Addr), Bytes: c.Bytes})
	}
	return image, all
}

// switchesOf is the sideband by core.
func switchesOf(t *testing.T, r *trace.Reader) map[arch.CoreID][]event.Switch {
	all := map[arch.CoreID][]event.Switch{}
	for s, err := range trace.Get[event.Switch](r, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[s.Core] = append(all[s.Core], s)
	}
	return all
}

// decodeCore decodes a stream with heddle's decoder, and hands out the path of
// each thread too.
func decodeCore(stream []byte, image *decode.Image, switches []event.Switch, thread func(arch.ThreadID) *path) (*path, error) {
	d := decode.NewDecoder(bytes.NewReader(stream), image, decode.Options{})
	byThread := decode.NewThreads(d, switches)
	steps := make([]decode.Step, 1024)
	var addresses []uint64
	var p path
	for {
		n, e, err := byThread.Next(steps)
		addresses = addresses[:0]
		for _, s := range steps[:n] {
			addresses = s.AppendAddresses(addresses)
		}
		p.add(addresses)
		for ; e.Kind == decode.Enabled && len(switches) > 0 && switches[0].Offset <= e.Offset; switches = switches[1:] {
			if count := switches[0].CoreInstructions; count != e.Count {
				return &p, fmt.Errorf("after %d instructions a switch that says %d", e.Count, count)
			}
		}
		if n > 0 {
			thread(byThread.Thread()).add(addresses)
		}
		if err == io.EOF && !d.On() {
			return &p, nil
		}
		if err != nil {
			return &p, err
		}
	}
}

// decodeByIntel does the same with libipt.
func decodeByIntel(stream []byte, code []libipt.Code) (*path, error) {
	d, err := libipt.NewDecoder(stream, code, libipt.Config{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var p path
	if err := d.Sync(); err != nil {
		return &p, err
	}
	buf := make([]uint64, 4096)
	for {
		n, _, err := d.Next(buf)
		p.add(buf[:n])
		var fail *libipt.Error
		if errors.As(err, &fail) && fail.Code == libipt.EndOfStream {
			return &p, nil
		}
		if err != nil {
			return &p, err
		}
	}
}

// checkTrace compares, for each core, the instructions of both decoders with those of the hook.
func checkTrace(t *testing.T, r *trace.Reader, e *executed) {
	t.Helper()
	switches := switchesOf(t, r)
	threads := make([]map[arch.ThreadID]*path, len(e.cores))
	instructions, size := uint64(0), 0
	for core := range e.cores {
		want := &e.cores[core]
		stream, err := io.ReadAll(r.Bytes(trace.Key{Kind: trace.PT, ID: uint32(core)}))
		if err != nil {
			t.Fatal(err)
		}
		if want.n == 0 && len(stream) == 0 {
			continue
		}
		image, code := codeOf(t, r, core)
		got, err := decodeCore(stream, image, switches[arch.CoreID(core)], func(thread arch.ThreadID) *path {
			return threadPath(threads, arch.CoreID(core), thread)
		})
		if err == nil {
			err = got.difference(want)
		}
		if err != nil {
			t.Errorf("core %d, heddle, after %d of %d instructions: %v", core, got.n, want.n, err)
		}
		for thread, want := range e.threads[core] {
			if err := threadPath(threads, arch.CoreID(core), thread).difference(want); err != nil {
				t.Errorf("core %d, thread %d: %v", core, thread, err)
			}
		}
		got, err = decodeByIntel(stream, code)
		if err == nil {
			err = got.difference(want)
		}
		if err != nil {
			t.Errorf("core %d, libipt, after %d of %d instructions: %v", core, got.n, want.n, err)
		}
		instructions += want.n
		size += len(stream)
	}
	t.Logf("%d instructions, %.2f bits each", instructions, 8*float64(size)/float64(instructions))
}

// branchPrograms are the programs whose traces are checked, as commands.
func branchPrograms(t *testing.T) map[string][]string {
	t.Helper()
	racey := ""
	programList, err := suite.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programList {
		if p.Name == "racey" {
			bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2})
			if err != nil {
				t.Fatal(err)
			}
			racey = bin
		}
	}
	// Eight blocks for eight threads, mostly of runs, which are soon compressed.
	input := filepath.Join(t.TempDir(), "input")
	var text []byte
	for i := range byte(8) {
		text = append(append(text, bytes.Repeat([]byte{i}, 97_000)...), bytes.Repeat([]byte("what is traced is what ran. "), 100)...)
	}
	if err := os.WriteFile(input, text, 0o600); err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{
		"racey":  {racey, "-p8", "-i2000"},
		"pbzip2": {"/usr/bin/pbzip2", "-p8", "-b1", "-c", "-k", input},
		"python": {"/usr/bin/python3", "-I", "-S", "-c", "print(sorted({i * 7919 % 101 for i in range(500)}))"},
	}
	for _, p := range conformance.Programs() {
		switch p.Name {
		case "sig_storm", "sig_longjmp", "sig_nested", "sig_fp_state", "sig_alarm", "jit_dual_mapping", "jit_mprotect", "jit_self_modifying", "sig_fork_exec", "exec_from_thread":
			bin, err := p.Build(false)
			if err != nil {
				t.Fatal(err)
			}
			list[p.Name] = []string{bin}
		}
	}
	return list
}

// TestBranchTraces: the branch traces of real programs decode, by Intel's
// decoder and by heddle's, to exactly the instructions that ran. Machines and forms of
// traces are taken in turn.
func TestBranchTraces(t *testing.T) {
	configs := []pt.Config{
		{PSBPeriod: 4096, RetCompression: true},
		{PSBPeriod: 1 << 16, Timing: pt.Timing{TSC: true, MTCPeriod: 64, CYC: true}},
		{RetCompression: true, PSBPeriod: 256, Timing: pt.Timing{TSC: true}},
	}
	programs := branchPrograms(t)
	names := slices.Sorted(maps.Keys(programs))
	for turn, name := range testsize.Sample(names, testsize.Pick(4, len(names), len(names)), 0) {
		args := programs[name]
		for _, i := range testsize.Sample([]int{0, 1, 2}, 1, turn) {
			cores := []int{4, 1, 8}[i]
			t.Run(fmt.Sprintf("%s/%d", name, cores), func(t *testing.T) {
				c, out := machinetest.Config(t, args...)
				c.Cores, c.Seed, c.Dir = cores, uint64(i+1), "/tmp"
				plain := machinetest.Run(t, c)
				result, r, e := watched(t, c, configs[i])
				if result.ExitCode != 0 || result.Message != "" {
					t.Fatalf("exit %d: %s\n%s", result.ExitCode, result.Message, out)
				}
				if result.Digest != plain.Digest {
					t.Errorf("digest %s, without recording %s", result.Digest, plain.Digest)
				}
				checkTrace(t, r, e)
			})
		}
	}
}
