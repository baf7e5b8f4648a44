package direct

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// The layouts of testdata/oracle.c.
const (
	oracleData    = 0x10000000
	oracleCode    = 0x20000000
	oracleCodeMax = 64
	oracleChanges = 96
)

// cpuState is a thread's registers as the oracle has them. FP is an XSAVE image.
type cpuState struct {
	Regs arch.Regs
	FP   [stateBytes]byte
}

// oracleCase is code to execute from a state, Steps instructions of it; 0: up to code of no
// case.
type oracleCase struct {
	State  cpuState
	CodeAt uint64
	NCode  uint32
	Steps  uint32
	Code   [oracleCodeMax]byte
}

type memoryWord struct{ At, Value uint64 }

// oracleResult is the processor's result of a case.
type oracleResult struct {
	State                              cpuState
	Signal, Trap, Error, Address, Done uint64
	NChanges                           uint64
	Changes                            [oracleChanges]memoryWord
}

// oracle executes cases on the host's processor.
type oracle struct {
	in  io.WriteCloser
	out io.Reader
	cmd *exec.Cmd
}

// oracleDir is where the oracle is, once it is built.
var oracleDir string

var buildOracle = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "heddle-oracle")
	if err != nil {
		return "", err
	}
	oracleDir = dir
	bin := filepath.Join(dir, "oracle")
	args := []string{
		"-O1", "-std=gnu11", "-static", "-nostdlib", "-fno-stack-protector", "-mgeneral-regs-only", "-fno-builtin",
		"-Wl,-Ttext-segment=0x6edb00000000", "-Wl,--no-relax",
		"-o", bin, filepath.Join("testdata", "oracle.c"),
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if oracleDir != "" {
		os.RemoveAll(oracleDir)
	}
	os.Exit(code)
}

// newOracle starts an oracle whose data pages have the given bytes.
func newOracle(t testing.TB, data *[3 * arch.PageSize]byte) *oracle {
	t.Helper()
	bin, err := buildOracle()
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{cmd: exec.Command(bin)}
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if o.out, err = o.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.in.Close(); _ = o.cmd.Wait() })
	// The limit of one of Linux's segments, which LSL reads, is the number of the core. The guest's core is 0.
	var first unix.CPUSet
	first.Set(0)
	if err := unix.SchedSetaffinity(o.cmd.Process.Pid, &first); err != nil {
		t.Logf("the oracle runs on any core, so that LSL may differ: %v", err)
	}
	if _, err := o.in.Write(data[:]); err != nil {
		t.Fatal(err)
	}
	return o
}

func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(list[0])))
}

// run executes the cases and returns the results.
func (o *oracle) run(t testing.TB, cases []oracleCase) []oracleResult {
	t.Helper()
	results := make([]oracleResult, len(cases))
	failed := make(chan error, 1)
	go func() {
		_, err := o.in.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(cases))))
		if err == nil {
			_, err = o.in.Write(bytesOf(cases))
		}
		failed <- err
	}()
	if _, err := io.ReadFull(o.out, bytesOf(results)); err != nil {
		t.Fatalf("the oracle stopped: %v (%v)", err, <-failed)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return results
}

// world is memory like the oracle's.
type world struct {
	ram   *mem.RAM
	space *mem.Space
	data  *[3 * arch.PageSize]byte
	pages [3]mem.Page
	code  [2]mem.Page
}

func newWorld(t testing.TB, data *[3 * arch.PageSize]byte) *world {
	t.Helper()
	ram, err := mem.NewRAM(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ram: ram, space: mem.NewSpace(ram), data: data}
	put := func(at arch.Addr, perm arch.Perm) mem.Page {
		p, ok := ram.Alloc()
		if !ok {
			t.Fatal("no memory")
		}
		w.space.Set(at, mem.MakePTE(p, perm, false))
		return p
	}
	for i := range w.pages {
		perm := arch.Read | arch.Write
		if i == 2 {
			perm = arch.Read
		}
		w.pages[i] = put(oracleData+arch.Addr(i)*arch.PageSize, perm)
		copy(ram.Bytes(w.pages[i]), data[i*arch.PageSize:])
	}
	for i := range w.code {
		w.code[i] = put(oracleCode+arch.Addr(i)*arch.PageSize, arch.Read|arch.Exec)
		copy(ram.Bytes(w.code[i]), bytes.Repeat([]byte{0xcc}, arch.PageSize))
	}
	return w
}

// putCode writes code to where it is executed.
func (w *world) putCode(c *oracleCase, code []byte) {
	for i, b := range code {
		at := c.CodeAt + uint64(i) - oracleCode
		w.ram.Bytes(w.code[at/arch.PageSize])[at%arch.PageSize] = b
	}
	w.ram.Written(w.code[0])
	w.ram.Written(w.code[1])
}

// takeChanges puts the words of data that have changed into the result, and restores them.
func (w *world) takeChanges(r *oracleResult) {
	for i, p := range w.pages {
		now, was := w.ram.Bytes(p), w.data[i*arch.PageSize:(i+1)*arch.PageSize]
		for at := 0; at < arch.PageSize; at += 8 {
			v := binary.LittleEndian.Uint64(now[at:])
			if v == binary.LittleEndian.Uint64(was[at:]) {
				continue
			}
			if r.NChanges < oracleChanges {
				r.Changes[r.NChanges] = memoryWord{oracleData + uint64(i*arch.PageSize+at), v}
			}
			r.NChanges++
			copy(now[at:at+8], was[at:])
		}
	}
}

// An executor executes a case, and leaves memory as it was.
type executor interface {
	run(c *oracleCase) (oracleResult, arch.Stop)
	faultAddress() arch.Addr
}

// subject is an engine whose memory is like the oracle's.
type subject struct {
	*world
	cpu *CPU
	ctx arch.Context
}

func newSubject(t testing.TB, level arch.Level, data *[3 * arch.PageSize]byte) *subject {
	t.Helper()
	if !HostHas(level) {
		t.Skipf("the host's processor lacks instructions of %v", level)
	}
	w := newWorld(t, data)
	cpu, err := NewCPU(w.ram, 4, arch.DefaultCosts(), level)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cpu.Close(); w.ram.Close() })
	cpu.setHeat(12) // programs here are short
	s := &subject{world: w, cpu: cpu, ctx: cpu.NewContext()}
	cpu.Load(s.ctx, s.space)
	return s
}

func (s *subject) run(c *oracleCase) (r oracleResult, stop arch.Stop) {
	s.putCode(c, c.Code[:c.NCode])
	defer s.putCode(c, bytes.Repeat([]byte{0xcc}, int(c.NCode)))
	s.ctx.Release()
	s.ctx = s.cpu.NewContext()
	s.cpu.Load(s.ctx, s.space)
	s.cpu.SetRegs(&c.State.Regs)
	s.cpu.setState(&c.State.FP)
	stop = s.cpu.Run(arch.Limit{Instructions: max(uint64(c.Steps), 1), Exact: true})
	s.cpu.Regs(&r.State.Regs)
	s.cpu.state(&r.State.FP)
	s.takeChanges(&r)
	return r, stop
}

func (s *subject) faultAddress() arch.Addr { return s.cpu.FaultAddr() }

// newData makes data pages with numbers of all kinds in them.
func newData(rnd *rand.Rand) *[3 * arch.PageSize]byte {
	var data [3 * arch.PageSize]byte
	for i := 0; i < len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], randomWord(rnd))
	}
	return &data
}

// randomWord is a number of one of the kinds that instructions treat apart: small, near a
// boundary, floating-point of either width (also infinite, not a number, denormal), any.
func randomWord(rnd *rand.Rand) uint64 {
	double := func() uint64 {
		special := []uint64{0, 1, 0x000fffffffffffff, 0x0010000000000000, 0x3ff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x43e0000000000000, 0x41dfffffffc00000}
		if rnd.IntN(2) == 0 {
			return special[rnd.IntN(len(special))] | uint64(rnd.IntN(2))<<63
		}
		return uint64(rnd.IntN(2))<<63 | uint64(0x3ff+rnd.IntN(129)-64)<<52 | rnd.Uint64()>>12
	}
	single := func() uint64 {
		special := []uint32{0, 1, 0x007fffff, 0x00800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, 0x4f000000, 0x5f000000}
		if rnd.IntN(2) == 0 {
			return uint64(special[rnd.IntN(len(special))] | uint32(rnd.IntN(2))<<31)
		}
		return uint64(uint32(rnd.IntN(2))<<31 | uint32(127+rnd.IntN(65)-32)<<23 | rnd.Uint32()>>9)
	}
	switch rnd.IntN(8) {
	case 0:
		return uint64(rnd.IntN(66))
	case 1:
		return -uint64(rnd.IntN(66))
	case 2:
		return 1<<rnd.IntN(64) - uint64(rnd.IntN(3)) + 1
	case 3, 4:
		return double()
	case 5, 6:
		return single() | single()<<32
	}
	return rnd.Uint64()
}

// randomState is a state in which address registers may point into the data pages.
func randomState(rnd *rand.Rand) cpuState {
	var s cpuState
	for i := range s.Regs.GPR {
		s.Regs.GPR[i] = randomWord(rnd)
		if rnd.IntN(3) == 0 {
			s.Regs.GPR[i] = randomAddress(rnd)
		}
	}
	s.Regs.GPR[arch.RSP] = randomAddress(rnd)
	s.Regs.RFLAGS = 0x202 | rnd.Uint64()&0x8d5
	if rnd.IntN(4) == 0 {
		s.Regs.RFLAGS |= 0x400
	}
	s.Regs.FSBase, s.Regs.GSBase = oracleData+uint64(rnd.IntN(64)), oracleData+arch.PageSize+uint64(rnd.IntN(64))
	randomFloat(rnd, &s)
	return s
}

// randomAddress is an address in the data pages, often near the end of one.
func randomAddress(rnd *rand.Rand) uint64 {
	switch rnd.IntN(6) {
	case 0:
		return oracleData + arch.PageSize*uint64(1+rnd.IntN(3)) - uint64(rnd.IntN(34))
	case 1:
		return oracleData + uint64(rnd.IntN(3*arch.PageSize))
	}
	return oracleData + 64 + uint64(rnd.IntN(2*arch.PageSize/64-4))*64 + []uint64{0, 0, 0, 16, 32, 8, 4, 1}[rnd.IntN(8)]
}

func randomFloat(rnd *rand.Rand, s *cpuState) {
	fp := s.FP[:]
	binary.LittleEndian.PutUint16(fp[0:], 0x37f&^0xf00|uint16(rnd.IntN(16))<<8)
	if rnd.IntN(8) == 0 {
		fp[0] &^= 1 << rnd.IntN(6) // an unmasked exception
	}
	if rnd.IntN(2) == 0 {
		binary.LittleEndian.PutUint16(fp[2:], uint16(rnd.IntN(8))<<11|uint16(rnd.IntN(2))<<14|uint16(rnd.IntN(8))<<8)
		fp[4] = byte(rnd.Uint32())
	}
	mxcsr := 0x1f80 | uint32(rnd.IntN(4))<<13
	if rnd.IntN(4) == 0 {
		mxcsr |= uint32(rnd.IntN(2))<<15 | uint32(rnd.IntN(2))<<6 | uint32(rnd.IntN(64))
	}
	if rnd.IntN(8) == 0 {
		mxcsr &^= 1 << (7 + rnd.IntN(6))
	}
	binary.LittleEndian.PutUint32(fp[24:], mxcsr)
	binary.LittleEndian.PutUint32(fp[28:], 0xffff)
	for i := range 8 {
		binary.LittleEndian.PutUint64(fp[32+16*i:], rnd.Uint64()|1<<63)
		exponent := uint16(0x3fff + rnd.IntN(129) - 64)
		switch rnd.IntN(8) {
		case 0:
			exponent = 0x7fff
		case 1:
			exponent = 0
		case 2:
			binary.LittleEndian.PutUint64(fp[32+16*i:], randomWord(rnd))
		case 3:
			binary.LittleEndian.PutUint64(fp[32+16*i:], 0)
			exponent = 0
		}
		binary.LittleEndian.PutUint16(fp[40+16*i:], exponent|uint16(rnd.IntN(2))<<15)
	}
	for at := 160; at < 416; at += 8 {
		binary.LittleEndian.PutUint64(fp[at:], randomWord(rnd))
		binary.LittleEndian.PutUint64(fp[at+416:], randomWord(rnd))
	}
	binary.LittleEndian.PutUint64(fp[512:], 7)
}
