package machine_test

import (
	"bytes"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder"
)

// lockstep is a Recording that runs the interpreter of libVEX's code beside the
// machine: a block ahead, on the machine's memory, without writing to it. The
// machine is halted where the block ends, and must have the same registers and
// have stored the same bytes.
//
// Before a block the interpreter has the machine's pages come in that it reads;
// otherwise the run is the one that it would be.
type lockstep struct {
	recorder.Nothing
	threads map[arch.ThreadID]*vexThread
	blocks  map[blockPlace]*vexBlock
	log     *memlog.Buffer
	cpu     emu.CPU
	kernel  *kernel.Kernel
	report  func(format string, args ...any)

	// The turn of the thread that runs.
	task *kernel.Task
	now  *vexThread
	base uint64 // instructions of the run that are compared
	// The machine's, where the last block ended.
	mxcsr uint32

	instructions, compared uint64
	skipped                map[string]uint64 // instructions that are not compared, by the reason
	failures               int
	spoil                  func(*vex.State) // makes the interpreter wrong, to see that it is found
}

// vexThread is a thread on the side of the interpreter.
type vexThread struct {
	vex.Machine
	before vex.State // at the block's begin
	block  *vexBlock
	skip   string // why the instruction is not compared, if it is not
	count  uint64 // instructions of the block that were executed
	loads  []access
	stores []access
	replay bool // loads come from those of before
	next   int
}

type access struct {
	addr  uint64
	size  int
	bytes [16]byte
}

func (a *access) data() []byte { return a.bytes[:a.size] }

type blockPlace struct {
	process int32
	pc      uint64
}

// vexBlock is code with its lifted form.
type vexBlock struct {
	*vex.Block
	code []byte
	// Undefined are the flags that the processor leaves undefined.
	undefined uint64
}

func newLockstep(report func(format string, args ...any)) *lockstep {
	return &lockstep{
		threads: map[arch.ThreadID]*vexThread{}, blocks: map[blockPlace]*vexBlock{}, log: memlog.NewBuffer(),
		report: report, skipped: map[string]uint64{},
	}
}

// Begin implements recorder.Recording: the kernel may have changed everything.
func (l *lockstep) Begin(r *recorder.Recorder, t *kernel.Task) {
	v := l.threads[t.ID()]
	if v == nil {
		v = &vexThread{}
		v.CPUID = r.CPU().CPUID
		l.threads[t.ID()] = v
	}
	l.cpu, l.kernel, l.task, l.now, l.base = r.CPU(), r.Kernel(), t, v, 0
	v.Memory = l
	l.take()
	l.discardLog()
	l.predict()
}

// Stopped implements recorder.Recording.
func (l *lockstep) Stopped(_ *recorder.Recorder, _ *kernel.Task, s arch.Stop) {
	v := l.now
	switch done := s.Instructions - l.base; {
	case s.Reason == arch.StopFault || s.Reason == arch.StopLog && done < v.count:
		if s.Reason == arch.StopLog {
			l.fail("the log of memory is full within a block")
		}
		return
	case done > v.count:
		l.fail("the machine ran %d instructions, not %d", done, v.count)
		l.take()
	case v.skip != "":
		l.skipped[v.skip] += done
		l.take()
	case done > 0:
		if done < v.count {
			l.rerun(done)
		}
		if l.spoil != nil {
			l.spoil(&v.State)
		}
		l.compare(s)
		l.compared += done
	}
	l.discardLog()
	l.instructions += s.Instructions - l.base
	l.base = s.Instructions
	if s.Reason == arch.StopBreakpoint || s.Reason == arch.StopLog {
		l.predict()
	}
}

// discardLog discards the accesses that the machine has logged.
func (l *lockstep) discardLog() { l.cpu.SwapMemory(l.log) }

// predict runs the next block ahead of the machine, and has it halt at its end.
func (l *lockstep) predict() {
	v := l.now
	v.before, v.count, v.skip = v.State, 1, ""
	v.MXCSR = l.mxcsr
	v.block = l.liftBlock(v.State.Word(vex.OffsetRIP))
	for {
		if v.block == nil {
			v.skip = "code that is not there, or that libVEX does not know"
			break
		}
		v.loads, v.stores, v.replay = v.loads[:0], v.stores[:0], false
		v.State = v.before
		_, jump, err := v.Run(v.block.Block)
		v.count = uint64(v.Count)
		if err == nil && jump != vex.JumpNoDecode {
			break
		}
		// The instruction at which it ends is run by itself, and not compared.
		if err != nil && v.count == 1 {
			v.skip = reason(err)
			break
		}
		v.block = l.cut(v.block, v.PC)
	}
	if v.skip != "" {
		v.count = 1
	}
	l.cpu.HaltAt(l.base + v.count)
}

// reason is why an instruction is not compared.
func reason(err error) string {
	if err == nil {
		return "code that libVEX does not know"
	}
	_, text, _ := strings.Cut(err.Error(), ": ")
	return text
}

// rerun repeats the begin of the block, since the machine has gone no further.
func (l *lockstep) rerun(count uint64) {
	v := l.now
	pc, n := v.block.Addr+uint64(v.block.Size), uint64(0)
	for _, s := range v.block.Stmts {
		if m, ok := s.(*vex.Mark); ok {
			if n++; n > count {
				pc = m.Addr
				break
			}
		}
	}
	v.block = l.cut(v.block, pc)
	v.State, v.stores, v.replay, v.next = v.before, v.stores[:0], true, 0
	if _, _, err := v.Run(v.block.Block); err != nil {
		l.report("the begin of a block: %v", err)
	}
}

// cut is the block up to an instruction.
func (l *lockstep) cut(b *vexBlock, pc uint64) *vexBlock {
	return l.newBlock(b.code[:pc-b.Addr], b.Addr)
}

const longestBlock = 200

// liftBlock returns the block at an address, or nil.
func (l *lockstep) liftBlock(pc uint64) *vexBlock {
	var code [longestBlock]byte
	place := blockPlace{l.task.Process().PID(), pc}
	space := l.task.Space()
	if b := l.blocks[place]; b != nil {
		if n, _ := space.ReadAt(code[:len(b.code)], arch.Addr(pc)); bytes.Equal(code[:n], b.code) {
			return b
		}
	}
	n := l.read(code[:], pc, arch.AccessFetch)
	b := l.newBlock(code[:n], pc)
	l.blocks[place] = b
	return b
}

func (l *lockstep) newBlock(code []byte, pc uint64) *vexBlock {
	lifted, err := vex.Lift(code, pc)
	if err != nil {
		return nil
	}
	b := &vexBlock{Block: lifted, code: bytes.Clone(code[:lifted.Size])}
	for at := 0; at < len(b.code); {
		in, ok := zydis.Decode(b.code[at:], pc+uint64(at))
		if !ok {
			break
		}
		b.undefined = b.undefined&^in.Written | in.Undefined
		at += in.Length
	}
	return b
}

// read reads memory, which comes in if need be, and returns how much there is.
func (l *lockstep) read(b []byte, addr uint64, access arch.Access) int {
	for range 3 {
		n, _ := l.task.Space().ReadAt(b, arch.Addr(addr))
		if n == len(b) {
			return n
		}
		page := arch.Addr(addr+uint64(n)) &^ (arch.PageSize - 1)
		_, kind := l.task.Space().Walk(page, access)
		if kind != arch.Absent || !l.pageIn(page, access, kind) {
			return n
		}
	}
	return 0
}

func (l *lockstep) pageIn(page arch.Addr, access arch.Access, kind arch.FaultKind) bool {
	return l.kernel.PageIn(l.task, arch.Stop{Reason: arch.StopFault, Access: access, Kind: kind, Page: page})
}
